"""Frames that a call brings along, beside those of the machine."""

from __future__ import annotations

from collections.abc import Iterable

from viam.gen.common.v1 import common_pb2 as common

from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.resource.neighbours import Frames
from cogwork.resource.poses import from_message
from cogwork.spatial.chain import WORLD
from cogwork.spatial.tree import Part


def supplements(transforms: Iterable[common.Transform], frames: Frames) -> list[Part]:
    """Each with a name that is free: whoever brings one that the machine has means another."""
    brought: dict[str, Part] = {}
    for transform in transforms:
        part = _part(transform)
        if part.name == WORLD or part.name in brought or _stands(part.name, frames):
            raise InvalidRequest(
                f'a supplemental transform cannot be called "{part.name}", which there is already: '
                "each needs a name of its own"
            )
        brought[part.name] = part
    return list(brought.values())


def _part(transform: common.Transform) -> Part:
    observed = transform.pose_in_observer_frame
    if not transform.reference_frame or not observed.reference_frame:
        raise InvalidRequest("a supplemental transform names its frame and the frame it stands on")
    return Part(transform.reference_frame, observed.reference_frame, from_message(observed.pose))


def _stands(name: str, frames: Frames) -> bool:
    try:
        return bool(frames.parent(name))
    except CogworkError:
        return False

"""Additional frames that a call defines for its own duration."""

from __future__ import annotations

from collections.abc import Iterable

from viam.gen.common.v1 import common_pb2 as common

from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.resource.machine_access import CoordinateFrames
from cogwork.resource.messages.pose_proto import pose_from_proto
from cogwork.spatial.chain import WORLD
from cogwork.spatial.frame_tree import FramePart


def read_supplemental_transforms(
    transforms: Iterable[common.Transform], frames: CoordinateFrames
) -> list[FramePart]:
    """Parse the transforms.

    The name of each transform must be unique and differ from all frames of the machine, so that no
    name is ambiguous.
    """
    parts: dict[str, FramePart] = {}
    for transform in transforms:
        part = _parse_transform(transform)
        if part.name == WORLD or part.name in parts or _frame_exists(part.name, frames):
            raise InvalidRequest(
                f'a supplemental transform cannot be called "{part.name}", because a frame with '
                "that name already exists; choose another name"
            )
        parts[part.name] = part
    return list(parts.values())


def _parse_transform(transform: common.Transform) -> FramePart:
    observed = transform.pose_in_observer_frame
    if not transform.reference_frame or not observed.reference_frame:
        raise InvalidRequest("a supplemental transform must name its frame and its parent frame")
    return FramePart(
        transform.reference_frame, observed.reference_frame, pose_from_proto(observed.pose)
    )


def _frame_exists(name: str, frames: CoordinateFrames) -> bool:
    try:
        return bool(frames.parent(name))
    except CogworkError:
        return False

"""Converts the frames of another machine to frames of this machine. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from viam.gen.common.v1 import common_pb2 as common

from cogwork.config.schema.machine import RemoteConfig
from cogwork.core.errors import InvalidRequest
from cogwork.graph.name import REMOTE_SEPARATOR, ResourceName
from cogwork.graph.spec import Spec
from cogwork.remotes.names import MAX_HOPS, MAX_RESOURCES, RemoteName
from cogwork.resource.messages.pose_proto import pose_from_proto
from cogwork.robot.placed_frame import JOINTED, PlacedFrame
from cogwork.spatial.kinematics import WORLD

_WORLD_SUFFIX: Final = "_world"
_MAX_NAME: Final = 512
_MAX_DEPTH: Final = 100
"""Maximum number of frames between a frame and the world."""


def place_frames(
    config: RemoteConfig,
    transforms: Iterable[common.Transform],
    resources: Iterable[Spec],
) -> Sequence[PlacedFrame]:
    """Attach the frames of a remote to its `frame`; return none if it has no `frame`.

    The world of the remote `line2` becomes the frame `line2_world`. `resources` are the resources
    of the remote, including its arms and gantries, from which joint positions are read.
    """
    if config.frame is None:
        return ()
    world = config.frame.id or config.name + _WORLD_SUFFIX
    jointed = _find_jointed(config.prefix, resources)
    frames = {world: PlacedFrame(world, config.frame.parent, config.frame.pose, None)}
    for transform in transforms:
        if len(frames) > MAX_RESOURCES:
            break
        frame = _place(config.prefix, world, transform, jointed)
        if frame is not None:
            frames.setdefault(frame.name, frame)
    near = _find_near(frames)
    return tuple(frame for name, frame in frames.items() if name in near)


def _find_jointed(prefix: str, resources: Iterable[Spec]) -> dict[str, ResourceName]:
    """Return the arms and gantries of the remote, by their frame names on this machine."""
    found: dict[str, ResourceName] = {}
    for spec in resources:
        if spec.name.api in JOINTED and isinstance(spec.settings, RemoteName):
            frame = prefix + spec.settings.name.rpartition(REMOTE_SEPARATOR)[2]
            found.setdefault(frame, spec.name)
    return found


def _place(
    prefix: str, world: str, transform: common.Transform, jointed: dict[str, ResourceName]
) -> PlacedFrame | None:
    """Return the frame; None if it is invalid."""
    name, given = prefix + transform.reference_frame, transform.pose_in_observer_frame
    if not transform.reference_frame or len(name) > _MAX_NAME:
        return None
    parent = world if given.reference_frame in ("", WORLD) else prefix + given.reference_frame
    try:
        pose = pose_from_proto(given.pose)
    except InvalidRequest:
        return None
    geometry = None
    if transform.HasField("physical_object"):
        geometry = common.Geometry()
        geometry.CopyFrom(transform.physical_object)
    return PlacedFrame(name, parent, pose, jointed.get(name), geometry)


class _Distance(NamedTuple):
    """Distance of a frame from the root of its tree."""

    frames: int
    worlds: int
    """Number of machines between this machine and the frame."""


def _find_near(frames: Mapping[str, PlacedFrame]) -> set[str]:
    """Return the frames that are not too many machines away: the limit is the same as for
    resources.

    Without the limit, machines that are remotes of each other would repeat their frames endlessly.
    Frames in a cycle, or too deep in the tree, are also omitted.
    """
    distances: dict[str, _Distance | None] = {}
    for name in frames:
        path: list[PlacedFrame] = []
        while name in frames and name not in distances:
            distances[name] = None  # provisional: if a frame leads back here, it is in a cycle
            path.append(frames[name])
            name = frames[name].parent
        distance = distances[name] if name in frames else _Distance(0, 0)
        for frame in reversed(path):
            distance = _add_frame(distance, frame)
            distances[frame.name] = distance
    return {name for name, distance in distances.items() if distance is not None}


def _add_frame(parent: _Distance | None, frame: PlacedFrame) -> _Distance | None:
    """Return the distance of the frame; None if it is too far away."""
    if parent is None or parent.frames >= _MAX_DEPTH:
        return None
    is_world = frame.component is None and frame.name.endswith(_WORLD_SUFFIX)
    worlds = parent.worlds + is_world
    return _Distance(parent.frames + 1, worlds) if worlds <= MAX_HOPS else None

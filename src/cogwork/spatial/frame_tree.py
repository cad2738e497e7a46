"""The coordinate frames of a machine: their parents, and their poses in the world."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from cogwork.spatial.chain import WORLD, BadKinematics, Chain
from cogwork.spatial.pose import Pose

Inputs = Mapping[str, Sequence[float]]
"""The joint positions of each part with a chain, in radians and millimeters."""

_MAX_LISTED = 20


class UnknownFrame(LookupError):
    """A frame is not in the tree."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, slots=True)
class FramePart:
    """A part of the machine: its pose relative to its parent, and its chain if it moves."""

    name: str
    parent: str
    pose: Pose
    chain: Chain | None = None

    @property
    def origin(self) -> str:
        """The frame at the pose of the part. If the part has a chain, this is the base of the
        chain."""
        return f"{self.name}_origin" if self.chain is not None else self.name

    @property
    def frames(self) -> tuple[str, ...]:
        return (self.origin, self.name) if self.chain is not None else (self.name,)


class FrameTree:
    """Parts whose parents lead to the world.

    A part with a chain has two frames: `<name>_origin`, the base of the chain, and `<name>`,
    its end. A part with the parent `<name>` is attached to the end.
    """

    def __init__(self, parts: Iterable[FramePart] = ()) -> None:
        self._all_parts = tuple(parts)
        self._broken: dict[str, str] = {}
        owners = self._index_frames()
        self._ordered = tuple(self._topological_order(owners))
        self._owners = {frame: part for part in self._ordered for frame in part.frames}

    @property
    def parts(self) -> tuple[FramePart, ...]:
        """The parts that are connected to the world, parents first."""
        return self._ordered

    @property
    def frames(self) -> tuple[str, ...]:
        """The names of all frames, parents first, including the world."""
        return (WORLD, *self._owners)

    @property
    def broken(self) -> Mapping[str, str]:
        """The names of the parts that are not in the tree, with the reasons."""
        return self._broken

    def with_extra(self, parts: Iterable[FramePart]) -> FrameTree:
        """Return a tree with additional parts. Existing parts take precedence."""
        return FrameTree((*self._all_parts, *parts))

    def path(self, name: str) -> tuple[str, ...]:
        """Return the frames on the path from the world to the frame `name`, including both."""
        self._check_known(name)
        upward = [name]
        while upward[-1] != WORLD:
            upward.append(self._parent_frame(upward[-1]))
        return tuple(reversed(upward))

    def pose(self, name: str, inputs: Inputs) -> Pose:
        """Return the pose of a frame in the world."""
        return self._compose(self.path(name)[1:], inputs)

    def transform(self, pose: Pose, source: str, destination: str, inputs: Inputs) -> Pose:
        """Transform a pose from one frame to another."""
        here, there = self.path(source), self.path(destination)
        # Skip the common ancestors, which cancel out: their joint positions may be unknown.
        shared = sum(1 for one, other in zip(here, there, strict=False) if one == other)
        there_to_shared = self._compose(there[shared:], inputs).inverse()
        return there_to_shared.compose(self._compose(here[shared:], inputs)).compose(pose)

    def _index_frames(self) -> dict[str, FramePart]:
        """Map each frame to its part. Skip parts with a frame that an earlier part already has."""
        owners: dict[str, FramePart] = {}
        for part in self._all_parts:
            taken = next((frame for frame in part.frames if frame in owners), None)
            if WORLD in part.frames or not part.name:
                self._broken[part.name] = f'"{part.name}" is not a valid name; choose another'
            elif taken is not None:
                self._broken[part.name] = f'there are two frames called "{taken}"; using the first'
            else:
                owners.update(dict.fromkeys(part.frames, part))
        return owners

    def _topological_order(self, owners: Mapping[str, FramePart]) -> Iterator[FramePart]:
        """Yield the parts that are connected to the world, parents first."""
        placed = {WORLD}
        for part in self._all_parts:
            if owners.get(part.name) is not part:
                continue
            branch = self._unplaced_branch(part, owners, placed)
            for member in reversed(branch):
                placed.update(member.frames)
                yield member

    def _unplaced_branch(
        self, part: FramePart, owners: Mapping[str, FramePart], placed: set[str]
    ) -> list[FramePart]:
        """Return the part and its ancestors that are not placed yet.

        If the ancestors do not lead to the world, record why and return an empty list.
        """
        branch: dict[str, FramePart] = {}
        while part.name not in branch:
            if part.name in placed:
                return list(branch.values())
            branch[part.name] = part
            if part.parent in placed:
                return list(branch.values())
            if part.parent not in owners:
                break
            part = owners[part.parent]
        self._mark_broken(branch, part, owners)
        return []

    def _mark_broken(
        self, branch: Mapping[str, FramePart], last: FramePart, owners: Mapping[str, FramePart]
    ) -> None:
        """Record why each part of the branch is not connected. `last` is the part at the top of the
        branch."""
        names = list(branch)
        cycle = names[names.index(last.name) :] if last.parent in owners else []
        for name, part in branch.items():
            if name in cycle:
                self._broken[name] = "circular parents: " + _format_cycle(name, cycle)
            elif part.parent not in owners:
                self._broken[name] = f'its parent "{part.parent}" is not a frame'
            else:
                self._broken[name] = f'its parent "{part.parent}" is not connected to {WORLD}'

    def _parent_frame(self, frame: str) -> str:
        part = self._owners[frame]
        return part.origin if frame != part.origin else part.parent

    def _compose(self, frames: Iterable[str], inputs: Inputs) -> Pose:
        pose = Pose.identity()
        for frame in frames:
            part = self._owners[frame]
            pose = pose.compose(part.pose if frame == part.origin else _chain_end(part, inputs))
        return pose

    def _check_known(self, name: str) -> None:
        if name == WORLD or name in self._owners:
            return
        if name in self._broken:
            raise UnknownFrame(
                name, f'frame "{name}" is not connected to {WORLD}: {self._broken[name]}'
            )
        close = get_close_matches(name, self.frames, n=1)
        known = ", ".join(self.frames[:_MAX_LISTED]) + (
            ", …" if len(self.frames) > _MAX_LISTED else ""
        )
        hint = f'did you mean "{close[0]}"?' if close else f"the frames are {known}"
        raise UnknownFrame(name, f'there is no frame "{name}": {hint}')


def _chain_end(part: FramePart, inputs: Inputs) -> Pose:
    assert part.chain is not None
    values = inputs.get(part.name, () if not part.chain.joints else None)
    if values is None:
        raise BadKinematics(
            f'cannot compute the pose of "{part.name}": its joint positions are unknown'
        )
    return part.chain.pose(values)


def _format_cycle(name: str, cycle: list[str]) -> str:
    at = cycle.index(name)
    return " -> ".join(f'"{each}"' for each in (*cycle[at:], *cycle[:at], name))

"""The frames of a machine: what is attached to what, and where each is in the world."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from cogwork.spatial.chain import WORLD, BadKinematics, Chain
from cogwork.spatial.pose import Pose

Inputs = Mapping[str, Sequence[float]]
"""The joint positions of each part with a chain, in radians and millimetres."""

_SHOWN = 20


class UnknownFrame(LookupError):
    """A frame that is not in the tree."""

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(sentence)
        self.name = name


@dataclass(frozen=True, slots=True)
class Part:
    """Something that has a place: how it sits on its parent, and the chain that it moves."""

    name: str
    parent: str
    pose: Pose
    chain: Chain | None = None

    @property
    def origin(self) -> str:
        """The frame that its pose leads to: with a chain, the base of it."""
        return f"{self.name}_origin" if self.chain is not None else self.name

    @property
    def frames(self) -> tuple[str, ...]:
        return (self.origin, self.name) if self.chain is not None else (self.name,)


class FrameTree:
    """Parts that hang together down to the world.

    A part with a chain has two frames: `<name>_origin`, where its base is, and `<name>`,
    the end of its chain. What has `<name>` as its parent rides on that end.
    """

    def __init__(self, parts: Iterable[Part] = ()) -> None:
        self._given = tuple(parts)
        self._broken: dict[str, str] = {}
        owners = self._distinct()
        self._ordered = tuple(self._rooted(owners))
        self._owners = {frame: part for part in self._ordered for frame in part.frames}

    @property
    def parts(self) -> tuple[Part, ...]:
        """Those that have a place in the world, parents first."""
        return self._ordered

    @property
    def frames(self) -> tuple[str, ...]:
        """The names of all frames, with the world, parents first."""
        return (WORLD, *self._owners)

    @property
    def broken(self) -> Mapping[str, str]:
        """The parts that were left out, each with a sentence that says why."""
        return self._broken

    def with_extra(self, parts: Iterable[Part]) -> FrameTree:
        """The same tree with more parts. Those that it already has stay as they are."""
        return FrameTree((*self._given, *parts))

    def path(self, name: str) -> tuple[str, ...]:
        """The frames from the world to that one, both included."""
        self._check(name)
        upward = [name]
        while upward[-1] != WORLD:
            upward.append(self._above(upward[-1]))
        return tuple(reversed(upward))

    def pose(self, name: str, inputs: Inputs) -> Pose:
        """Where that frame is in the world."""
        return self._down(self.path(name)[1:], inputs)

    def transform(self, pose: Pose, source: str, destination: str, inputs: Inputs) -> Pose:
        """Where a pose that is seen from one frame is, seen from another."""
        here, there = self.path(source), self.path(destination)
        # What both ride on does not count, not even where it is.
        shared = sum(1 for one, other in zip(here, there, strict=False) if one == other)
        there_to_shared = self._down(there[shared:], inputs).inverse()
        return there_to_shared.then(self._down(here[shared:], inputs)).then(pose)

    def _distinct(self) -> dict[str, Part]:
        """Each frame with its part, without parts whose names are taken."""
        owners: dict[str, Part] = {}
        for part in self._given:
            taken = next((frame for frame in part.frames if frame in owners), None)
            if WORLD in part.frames or not part.name:
                self._broken[part.name] = f'"{part.name}" is no name for a part; choose another'
            elif taken is not None:
                self._broken[part.name] = f'there are two frames called "{taken}"; the first counts'
            else:
                owners.update(dict.fromkeys(part.frames, part))
        return owners

    def _rooted(self, owners: Mapping[str, Part]) -> Iterator[Part]:
        """Parts whose parents all lead to the world, parents first."""
        placed = {WORLD}
        for part in self._given:
            if owners.get(part.name) is not part:
                continue
            branch = self._branch(part, owners, placed)
            for member in reversed(branch):
                placed.update(member.frames)
                yield member

    def _branch(self, part: Part, owners: Mapping[str, Part], placed: set[str]) -> list[Part]:
        """A part and its parents that have no place yet; none if they do not lead to the world."""
        branch: dict[str, Part] = {}
        while part.name not in branch:
            if part.name in placed:
                return list(branch.values())
            branch[part.name] = part
            if part.parent in placed:
                return list(branch.values())
            if part.parent not in owners:
                break
            part = owners[part.parent]
        self._leave_out(branch, part, owners)
        return []

    def _leave_out(
        self, branch: Mapping[str, Part], last: Part, owners: Mapping[str, Part]
    ) -> None:
        """Says of each part why it has no place. `last` is where the way down ended."""
        names = list(branch)
        circle = names[names.index(last.name) :] if last.parent in owners else []
        for name, part in branch.items():
            if name in circle:
                self._broken[name] = "circular parents: " + _arrows(name, circle)
            elif part.parent not in owners:
                self._broken[name] = f'its parent "{part.parent}" is not a frame'
            else:
                self._broken[name] = f'its parent "{part.parent}" has no place itself'

    def _above(self, frame: str) -> str:
        part = self._owners[frame]
        return part.origin if frame != part.origin else part.parent

    def _down(self, frames: Iterable[str], inputs: Inputs) -> Pose:
        pose = Pose.zero()
        for frame in frames:
            part = self._owners[frame]
            pose = pose.then(part.pose if frame == part.origin else _end(part, inputs))
        return pose

    def _check(self, name: str) -> None:
        if name == WORLD or name in self._owners:
            return
        if name in self._broken:
            raise UnknownFrame(name, f'frame "{name}" has no place: {self._broken[name]}')
        close = get_close_matches(name, self.frames, n=1)
        known = ", ".join(self.frames[:_SHOWN]) + (", …" if len(self.frames) > _SHOWN else "")
        hint = f'did you mean "{close[0]}"?' if close else f"there are {known}"
        raise UnknownFrame(name, f'there is no frame "{name}": {hint}')


def _end(part: Part, inputs: Inputs) -> Pose:
    assert part.chain is not None
    values = inputs.get(part.name, () if not part.chain.joints else None)
    if values is None:
        raise BadKinematics(f'the joint positions of "{part.name}" are needed and not known')
    return part.chain.pose(values)


def _arrows(name: str, circle: list[str]) -> str:
    at = circle.index(name)
    return " -> ".join(f'"{each}"' for each in (*circle[at:], *circle[:at], name))

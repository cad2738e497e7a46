"""Frames of reference: where everything is, as the configuration says and as joints stand.

A component with a `frame` is a part of a tree that grows from the world. An arm or a gantry carries
what stands on it: their kinematics and their joints are asked for when a pose depends on them.
"""

from __future__ import annotations

import asyncio
import math
import weakref
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from grpclib import GRPCError

from cogwork.config.frame import Frame
from cogwork.config.schema import ComponentConfig
from cogwork.core.errors import CogworkError
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.kinematics import read_kinematics
from cogwork.spatial.kinematics import WORLD, Chain
from cogwork.spatial.pose import Pose
from cogwork.spatial.tree import FrameTree, Part, UnknownFrame

T = TypeVar("T")

ARM = Api.parse("rdk:component:arm")
GANTRY = Api.parse("rdk:component:gantry")

PATIENCE = 5.0
"""Seconds that an arm gets to say where it is."""


class NoFrame(CogworkError):
    """A frame that nobody has, or whose place cannot be known."""

    status = "NOT_FOUND"


class NoKinematics(CogworkError):
    """An arm or a gantry that does not say how it is built."""

    status = "FAILED_PRECONDITION"


@dataclass(frozen=True, slots=True)
class Placed:
    """A component that stands somewhere."""

    name: ResourceName
    frame: Frame

    @property
    def called(self) -> str:
        return self.frame.id or self.name.short

    @property
    def moves(self) -> bool:
        """Whether it carries what stands on it."""
        return self.name.api in (ARM, GANTRY)

    @property
    def part(self) -> Part:
        return Part(
            self.called, self.frame.parent, self.frame.pose, _UNKNOWN if self.moves else None
        )


_UNKNOWN = Chain("not asked for yet", ())


class _Standing:
    """Everything that stands somewhere, by one configuration; what moves has no chain yet."""

    def __init__(self, components: Sequence[ComponentConfig], remote: tuple[Part, ...]) -> None:
        self.components = components
        self.remote = remote
        self.placed = [
            Placed(component.full_name, component.frame)
            for component in components
            if component.frame is not None
        ]
        self.movers = [each for each in self.placed if each.moves]
        self.tree = FrameTree([*(each.part for each in self.placed), *remote])


class FrameSystem:
    def __init__(
        self,
        components: Callable[[], Sequence[ComponentConfig]],
        find: Callable[[ResourceName], object],
        remote_parts: Callable[[], Iterable[Part]] = tuple,
    ) -> None:
        """`remote_parts` are those of other machines, which stand on something of ours."""
        self._components = components
        self._find = find
        self._remote_parts = remote_parts
        self._known: _Standing | None = None
        self._chains: weakref.WeakKeyDictionary[object, Chain] = weakref.WeakKeyDictionary()

    def placed(self) -> list[Placed]:
        """Those whose place is known, parents first."""
        standing = self._standing()
        placed = {each.called: each for each in standing.placed}
        return [placed[part.name] for part in standing.tree.parts if part.name in placed]

    def parent(self, name: str) -> str:
        tree = self._standing().tree
        self._path(tree, name)
        return next((part.parent for part in tree.parts if name in part.frames), WORLD)

    async def transform(
        self, pose: Pose, source: str, destination: str, extra: Iterable[Part] = ()
    ) -> Pose:
        """The same pose, as it is seen from another frame. Empty names are the world."""
        standing, extra = self._standing(), tuple(extra)
        tree = standing.tree.with_extra(extra) if extra else standing.tree
        source, destination = _standing_for(tree, source), _standing_for(tree, destination)
        on_the_way = {*self._path(tree, source), *self._path(tree, destination)}
        movers = [each for each in standing.movers if each.called in on_the_way]
        if not movers:
            return tree.transform(pose, source, destination, {})
        states = await asyncio.gather(*(self._state(each) for each in movers))
        chains = {each.called: chain for each, (chain, _) in zip(movers, states, strict=True)}
        inputs = {each.called: joints for each, (_, joints) in zip(movers, states, strict=True)}
        way = FrameTree(
            replace(part, chain=chains.get(part.name, part.chain))
            for part in tree.parts
            if on_the_way.intersection(part.frames)
        )
        try:
            return way.transform(pose, source, destination, inputs)
        except ValueError as error:
            raise NoKinematics(f"where {source} is cannot be worked out: {error}") from None

    async def chain(self, placed: Placed) -> Chain | None:
        """How it is built, if it carries what stands on it."""
        return await self._chain(placed, self._find(placed.name)) if placed.moves else None

    def _standing(self) -> _Standing:
        """Made when the configuration changes, not with every call."""
        components, remote = self._components(), tuple(self._remote_parts())
        known = self._known
        if known is None or known.components is not components or known.remote != remote:
            known = self._known = _Standing(components, remote)
        return known

    def _path(self, tree: FrameTree, name: str) -> tuple[str, ...]:
        try:
            return tree.path(name)
        except UnknownFrame as error:
            why = tree.broken.get(name)
            raise NoFrame(f'frame "{name}" has no place: {why}' if why else str(error)) from None

    async def _state(self, placed: Placed) -> tuple[Chain, Sequence[float]]:
        resource: Any = self._find(placed.name)
        chain = await self._chain(placed, resource)
        return chain, await _told(placed, _inputs(placed, resource, chain))

    async def _chain(self, placed: Placed, resource: Any) -> Chain:
        chain = self._chains.get(resource)
        if chain is None:
            kinematics = await _told(placed, resource.get_kinematics())
            chain = self._chains[resource] = _read(placed, kinematics)
        return chain


async def _told(placed: Placed, answer: Awaitable[T]) -> T:
    """Raises NoKinematics where it does not say."""
    name = placed.name.short
    try:
        async with asyncio.timeout(PATIENCE):
            return await answer
    except TimeoutError:
        raise NoKinematics(
            f'"{name}" did not say within {PATIENCE:g}s how it is built or where its joints are'
        ) from None
    except (NotImplementedError, GRPCError) as error:
        raise NoKinematics(f'"{name}" does not say how it is built: {error}') from error


def _standing_for(tree: FrameTree, name: str) -> str:
    """What stands still is where its origin is, and clients may ask for either."""
    bare = name.removesuffix("_origin")
    return bare if name not in tree.frames and bare in tree.frames else name or WORLD


async def _inputs(placed: Placed, resource: Any, chain: Chain) -> Sequence[float]:
    """As the chain takes them: in radians and millimetres."""
    if placed.name.api == ARM:
        return _in_radians((await resource.get_joint_positions()).values, chain)
    return list(await resource.get_position())


def _in_radians(positions: Sequence[float], chain: Chain) -> list[float]:
    """The positions of what turns, which arms tell in degrees. What slides is in millimetres."""
    turning = [joint.turns for joint in chain.joints]
    each = zip(positions, turning, strict=False)
    inputs = [math.radians(value) if turns else value for value, turns in each]
    # One too many is for the chain to refuse.
    return [*inputs, *positions[len(inputs) :]]


def _read(placed: Placed, kinematics: Sequence[Any]) -> Chain:
    try:
        return read_kinematics(kinematics)
    except ValueError as error:
        raise NoKinematics(
            f'the kinematics of "{placed.name.short}" cannot be used: {error}'
        ) from None

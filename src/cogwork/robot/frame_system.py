"""The frame system: where everything is, given the configuration and the positions of the joints.

Components with a `frame` form a tree with the world as its root. Arms and gantries move the frames
attached to them: their kinematics and joint positions are read when a pose depends on them.
"""

from __future__ import annotations

import asyncio
import math
import weakref
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from grpclib import GRPCError

from cogwork.config.frame import FrameConfig
from cogwork.config.schema import ComponentConfig
from cogwork.core.errors import CogworkError
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.kinematics import read_kinematics
from cogwork.spatial.frame_tree import FramePart, FrameTree, UnknownFrame
from cogwork.spatial.kinematics import WORLD, Chain
from cogwork.spatial.pose import Pose

T = TypeVar("T")

ARM = Api.parse("rdk:component:arm")
GANTRY = Api.parse("rdk:component:gantry")

KINEMATICS_TIMEOUT = 5.0
"""Seconds for an arm or a gantry to report its kinematics or joint positions."""


class NoFrame(CogworkError):
    """The frame does not exist, or is not connected to the world."""

    status = "NOT_FOUND"


class NoKinematics(CogworkError):
    """An arm or a gantry does not report usable kinematics."""

    status = "FAILED_PRECONDITION"


@dataclass(frozen=True, slots=True)
class PlacedComponent:
    """A component with a frame."""

    name: ResourceName
    frame: FrameConfig

    @property
    def frame_name(self) -> str:
        return self.frame.id or self.name.short

    @property
    def has_joints(self) -> bool:
        """Whether the component moves the frames attached to it."""
        return self.name.api in (ARM, GANTRY)

    @property
    def part(self) -> FramePart:
        return FramePart(
            self.frame_name,
            self.frame.parent,
            self.frame.pose,
            _UNKNOWN_CHAIN if self.has_joints else None,
        )


_UNKNOWN_CHAIN = Chain("not loaded yet", ())


class _FrameSnapshot:
    """The frames of one configuration, without the kinematic chains of movable components."""

    def __init__(
        self, components: Sequence[ComponentConfig], remote: tuple[FramePart, ...]
    ) -> None:
        self.components = components
        self.remote = remote
        self.placed = [
            PlacedComponent(component.full_name, component.frame)
            for component in components
            if component.frame is not None
        ]
        self.jointed = [each for each in self.placed if each.has_joints]
        self.tree = FrameTree([*(each.part for each in self.placed), *remote])


class FrameSystem:
    def __init__(
        self,
        components: Callable[[], Sequence[ComponentConfig]],
        find: Callable[[ResourceName], object],
        remote_parts: Callable[[], Iterable[FramePart]] = tuple,
    ) -> None:
        """`remote_parts` returns the frames of other machines, attached to ours."""
        self._components = components
        self._find = find
        self._remote_parts = remote_parts
        self._snapshot: _FrameSnapshot | None = None
        self._chains: weakref.WeakKeyDictionary[object, Chain] = weakref.WeakKeyDictionary()

    def placed_components(self) -> list[PlacedComponent]:
        """Return the components that are connected to the world, parents first."""
        snapshot = self._current_snapshot()
        placed = {each.frame_name: each for each in snapshot.placed}
        return [placed[part.name] for part in snapshot.tree.parts if part.name in placed]

    def parent(self, name: str) -> str:
        tree = self._current_snapshot().tree
        self._path_to_world(tree, name)
        return next((part.parent for part in tree.parts if name in part.frames), WORLD)

    async def transform(
        self, pose: Pose, source: str, destination: str, extra: Iterable[FramePart] = ()
    ) -> Pose:
        """Transform a pose from one frame to another. An empty name is the world."""
        snapshot, extra = self._current_snapshot(), tuple(extra)
        tree = snapshot.tree.with_extra(extra) if extra else snapshot.tree
        source, destination = _resolve_frame(tree, source), _resolve_frame(tree, destination)
        on_path = {*self._path_to_world(tree, source), *self._path_to_world(tree, destination)}
        movers = [each for each in snapshot.jointed if each.frame_name in on_path]
        if not movers:
            return tree.transform(pose, source, destination, {})
        states = await asyncio.gather(*(self._read_state(each) for each in movers))
        chains = {each.frame_name: chain for each, (chain, _) in zip(movers, states, strict=True)}
        inputs = {each.frame_name: joints for each, (_, joints) in zip(movers, states, strict=True)}
        path_tree = FrameTree(
            replace(part, chain=chains.get(part.name, part.chain))
            for part in tree.parts
            if on_path.intersection(part.frames)
        )
        try:
            return path_tree.transform(pose, source, destination, inputs)
        except ValueError as error:
            raise NoKinematics(f'cannot compute the pose of "{source}": {error}') from None

    async def load_chain(self, placed: PlacedComponent) -> Chain | None:
        """Return the kinematic chain of an arm or a gantry; None for any other component."""
        return (
            await self._load_chain(placed, self._find(placed.name)) if placed.has_joints else None
        )

    def _current_snapshot(self) -> _FrameSnapshot:
        """Return the snapshot, which is rebuilt only when the configuration changes."""
        components, remote = self._components(), tuple(self._remote_parts())
        snapshot = self._snapshot
        if snapshot is None or snapshot.components is not components or snapshot.remote != remote:
            snapshot = self._snapshot = _FrameSnapshot(components, remote)
        return snapshot

    def _path_to_world(self, tree: FrameTree, name: str) -> tuple[str, ...]:
        try:
            return tree.path(name)
        except UnknownFrame as error:
            raise NoFrame(str(error)) from None

    async def _read_state(self, placed: PlacedComponent) -> tuple[Chain, Sequence[float]]:
        resource: Any = self._find(placed.name)
        chain = await self._load_chain(placed, resource)
        return chain, await _await_answer(placed, _read_inputs(placed, resource, chain))

    async def _load_chain(self, placed: PlacedComponent, resource: Any) -> Chain:
        chain = self._chains.get(resource)
        if chain is None:
            kinematics = await _await_answer(placed, resource.get_kinematics())
            chain = self._chains[resource] = _parse_kinematics(placed, kinematics)
        return chain


async def _await_answer(placed: PlacedComponent, answer: Awaitable[T]) -> T:
    """Await an answer of a component. Raise NoKinematics if it fails or takes too long."""
    name = placed.name.short
    try:
        async with asyncio.timeout(KINEMATICS_TIMEOUT):
            return await answer
    except TimeoutError:
        raise NoKinematics(
            f'"{name}" did not report its kinematics or joint positions within '
            f"{KINEMATICS_TIMEOUT:g}s"
        ) from None
    except (NotImplementedError, GRPCError) as error:
        raise NoKinematics(f'"{name}" does not report its kinematics: {error}') from error


def _resolve_frame(tree: FrameTree, name: str) -> str:
    """Resolve `x_origin` to `x` for a fixed frame: both are the same, and clients use either."""
    bare = name.removesuffix("_origin")
    return bare if name not in tree.frames and bare in tree.frames else name or WORLD


async def _read_inputs(placed: PlacedComponent, resource: Any, chain: Chain) -> Sequence[float]:
    """Return the joint positions in the chain's units: radians and millimeters."""
    if placed.name.api == ARM:
        return _to_radians((await resource.get_joint_positions()).values, chain)
    return list(await resource.get_position())


def _to_radians(positions: Sequence[float], chain: Chain) -> list[float]:
    """Convert rotary joints from degrees to radians. Prismatic joints stay in millimeters."""
    pairs = zip(positions, chain.joints, strict=False)
    inputs = [math.radians(value) if joint.is_rotary else value for value, joint in pairs]
    # Surplus positions are kept: the chain rejects them.
    return [*inputs, *positions[len(inputs) :]]


def _parse_kinematics(placed: PlacedComponent, kinematics: Sequence[Any]) -> Chain:
    try:
        return read_kinematics(kinematics)
    except ValueError as error:
        raise NoKinematics(
            f'the kinematics of "{placed.name.short}" are invalid: {error}'
        ) from None

"""The frame system: computes where everything is from the configuration and the joint positions.

Components with a `frame` form a tree with the world as its root. Arms and gantries move the frames
attached to them: their kinematics and joint positions are read when a pose depends on them.
"""

from __future__ import annotations

import asyncio
import math
import weakref
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from grpclib import GRPCError

from cogwork.config.schema.machine import ComponentConfig
from cogwork.core.errors import CogworkError
from cogwork.graph.name import ResourceName
from cogwork.resource.messages.kinematics import read_kinematics
from cogwork.robot.placed_frame import ARM, PlacedFrame, place_component
from cogwork.spatial.frame_tree import FramePart, FrameTree, UnknownFrame
from cogwork.spatial.kinematics import WORLD, Chain
from cogwork.spatial.pose import Pose

T = TypeVar("T")

KINEMATICS_TIMEOUT = 5.0
"""Timeout in seconds to read the kinematics or joint positions of an arm or a gantry."""


class NoFrame(CogworkError):
    """The frame does not exist, or is not connected to the world."""

    status = "NOT_FOUND"


class NoKinematics(CogworkError):
    """An arm or a gantry does not report usable kinematics."""

    status = "FAILED_PRECONDITION"


class _FrameSnapshot:
    """The frames of one configuration, without the kinematic chains of movable components."""

    def __init__(
        self, components: Sequence[ComponentConfig], remote: Sequence[PlacedFrame]
    ) -> None:
        self.components = components
        self.remote = remote
        placed = [
            place_component(component, component.frame)
            for component in components
            if component.frame is not None
        ]
        # If two frames have the same name, use the first: the frame of this machine.
        self.placed: dict[str, PlacedFrame] = {}
        for frame in (*placed, *remote):
            self.placed.setdefault(frame.name, frame)
        self.jointed = [each for each in self.placed.values() if each.has_joints]
        self.tree = FrameTree(each.part for each in self.placed.values())


class FrameSystem:
    def __init__(
        self,
        components: Callable[[], Sequence[ComponentConfig]],
        find: Callable[[ResourceName], object],
        remote_frames: Callable[[], Sequence[PlacedFrame]] = tuple,
    ) -> None:
        """Create the frame system.

        `remote_frames` returns the frames of other machines. It must return the same object until
        these frames change.
        """
        self._components = components
        self._find = find
        self._remote_frames = remote_frames
        self._snapshot: _FrameSnapshot | None = None
        self._chains: weakref.WeakKeyDictionary[object, Chain] = weakref.WeakKeyDictionary()

    def placed_frames(self) -> list[PlacedFrame]:
        """Return the frames that are connected to the world, parents first."""
        snapshot = self._current_snapshot()
        return [snapshot.placed[part.name] for part in snapshot.tree.parts]

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
        movers = [each for each in snapshot.jointed if each.name in on_path]
        if not movers:
            return tree.transform(pose, source, destination, {})
        states = await asyncio.gather(*(self._read_state(each) for each in movers))
        chains = {each.name: chain for each, (chain, _) in zip(movers, states, strict=True)}
        inputs = {each.name: joints for each, (_, joints) in zip(movers, states, strict=True)}
        path_tree = FrameTree(
            replace(part, chain=chains.get(part.name, part.chain))
            for part in tree.parts
            if on_path.intersection(part.frames)
        )
        try:
            return path_tree.transform(pose, source, destination, inputs)
        except ValueError as error:
            raise NoKinematics(f'cannot compute the pose of "{source}": {error}') from None

    async def load_chain(self, placed: PlacedFrame) -> Chain | None:
        """Return the kinematic chain of an arm or a gantry; None for any other frame."""
        return (
            await self._load_chain(placed, self._find_mover(placed)) if placed.has_joints else None
        )

    def _current_snapshot(self) -> _FrameSnapshot:
        """Return the frames of the current configuration; rebuild them only if it has changed."""
        components, remote = self._components(), self._remote_frames()
        snapshot = self._snapshot
        if (
            snapshot is None
            or snapshot.components is not components
            or snapshot.remote is not remote
        ):
            snapshot = self._snapshot = _FrameSnapshot(components, remote)
        return snapshot

    def _path_to_world(self, tree: FrameTree, name: str) -> tuple[str, ...]:
        try:
            return tree.path(name)
        except UnknownFrame as error:
            raise NoFrame(str(error)) from None

    async def _read_state(self, placed: PlacedFrame) -> tuple[Chain, Sequence[float]]:
        resource = self._find_mover(placed)
        chain = await self._load_chain(placed, resource)
        return chain, await _await_answer(placed, _read_inputs(placed, resource, chain))

    def _find_mover(self, placed: PlacedFrame) -> Any:
        assert placed.component is not None
        return self._find(placed.component)

    async def _load_chain(self, placed: PlacedFrame, resource: Any) -> Chain:
        chain = self._chains.get(resource)
        if chain is None:
            kinematics = await _await_answer(placed, resource.get_kinematics())
            chain = self._chains[resource] = _parse_kinematics(placed, kinematics)
        return chain


async def _await_answer(placed: PlacedFrame, answer: Awaitable[T]) -> T:
    """Return the answer of a component. Raise NoKinematics if the call fails or times out."""
    name = placed.name
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
    """Return the name of the frame that a client means. `x_origin` is another name of the frame
    `x`, and an empty name is the world."""
    bare = name.removesuffix("_origin")
    return bare if name not in tree.frames and bare in tree.frames else name or WORLD


async def _read_inputs(placed: PlacedFrame, resource: Any, chain: Chain) -> Sequence[float]:
    """Return the joint positions in the chain's units: radians and millimeters."""
    if placed.component is not None and placed.component.api == ARM:
        return _to_radians((await resource.get_joint_positions()).values, chain)
    return list(await resource.get_position())


def _to_radians(positions: Sequence[float], chain: Chain) -> list[float]:
    """Convert rotary joints from degrees to radians. Prismatic joints stay in millimeters."""
    pairs = zip(positions, chain.joints, strict=False)
    inputs = [math.radians(value) if joint.is_rotary else value for value, joint in pairs]
    # Keep surplus positions: the chain raises an error if their number is wrong.
    return [*inputs, *positions[len(inputs) :]]


def _parse_kinematics(placed: PlacedFrame, kinematics: Sequence[Any]) -> Chain:
    try:
        return read_kinematics(kinematics)
    except ValueError as error:
        raise NoKinematics(f'the kinematics of "{placed.name}" are invalid: {error}') from None

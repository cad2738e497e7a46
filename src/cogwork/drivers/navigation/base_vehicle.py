"""A base that follows paths.

The base is commanded with `spin` and `move_straight`, not with `set_velocity`. These commands end
by themselves, so the base does not drive on if the connection to it breaks. They also fail if
another client takes control of the base; repeated calls of `set_velocity` would override it.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from grpclib import GRPCError
from grpclib.const import Status
from viam.components.base import Base

from cogwork.core.clock import Clock
from cogwork.core.errors import Interrupted
from cogwork.core.shield import await_shielded
from cogwork.drivers.motion.base_drive import (
    MAX_LEG,
    MAX_STALLED_LEGS,
    MIN_TURN,
    DriveSettings,
    FindBase,
    OffCourse,
    go_straight,
    turn,
)
from cogwork.drivers.motion.supervised_move import STOP_TIMEOUT
from cogwork.drivers.navigation.coordinates import MapPoint, MapPose
from cogwork.drivers.navigation.planned_path import PathStep, PlannedPath, yaw_toward
from cogwork.drivers.navigation.sensor_locator import SensorLocator
from cogwork.drivers.navigation.vehicle import LeftPath
from cogwork.graph.name import ResourceName
from cogwork.resource.machine_access import MachineAccess

HEADING_TOLERANCE = 5.0
"""Maximum heading error, in degrees, that needs no turn."""
MAX_TURNS = 4
"""Maximum number of consecutive turns in place. After them, the base drives on or gives up."""
MAX_HEADING_ERROR = 45.0
"""Heading error, in degrees, above which the base gives up after `MAX_TURNS` turns.

A smaller error may come from the sensor and is corrected on the way.
"""


@dataclass(frozen=True, slots=True)
class FollowSettings:
    angular: float
    """Angular speed in degrees per second."""
    deviation: float
    """Distance from the path, in meters, at which the base stops."""
    polling_interval: float
    """Seconds between two checks of the position while the base moves. After a move, the base waits
    this long for a new position."""

    @property
    def tolerance(self) -> float:
        """Distance in meters at which a point counts as reached."""
        return self.deviation / 2


class BaseVehicle:
    def __init__(
        self,
        name: ResourceName,
        base: Base,
        locator: SensorLocator,
        settings: FollowSettings,
        machine: MachineAccess,
        clock: Clock,
        logger: logging.Logger,
        driver: ResourceName,
    ) -> None:
        """`driver` is the service that drives the base."""
        self._driver = driver
        self._name = name
        self._base = base
        self._locator = locator
        self._settings = settings
        self._machine = machine
        self._clock = clock
        self._logger = logger
        self._speed = 0.0

    @property
    def speed(self) -> float:
        return self._speed

    async def locate(self) -> MapPose:
        return await self._locator.locate()

    async def follow(self, path: PlannedPath, on_step: Callable[[], None]) -> None:
        self._machine.take_over(self._name, f"{self._driver.api.subtype} {self._driver.short}")
        find = self._make_finder()
        in_control = True
        try:
            for step in path.steps:
                await self._drive_to_end(find, step)
                on_step()
            if path.end_yaw is not None:
                await self._turn_to(find, path.end_yaw, path.steps[-1])
        except Exception as error:
            in_control = not _is_interruption(error)
            raise
        finally:
            if in_control:
                await await_shielded(self._stop())

    async def _drive_to_end(self, find: FindBase, step: PathStep) -> None:
        stalled = 0
        distance = await self._aim(find, step)
        while distance > self._settings.tolerance:
            leg = min(distance, MAX_LEG / 1000)
            await self._go_straight(find, leg, step)
            before, distance = distance, await self._aim(find, step)
            stalled = stalled + 1 if before - distance < leg / 2 else 0
            if stalled == MAX_STALLED_LEGS and distance > self._settings.tolerance:
                raise OffCourse(
                    f"the base is still {distance:.2f} m away, and the last {stalled} legs hardly "
                    "brought it closer: check that its wheels turn and its position is correct"
                )

    async def _aim(self, find: FindBase, step: PathStep) -> float:
        """Turn toward the end of the step unless that end is reached, and return the distance to
        it."""
        for turns in range(MAX_TURNS + 1):
            distance, degrees = _bearing(await self._locate_on(step), step.end)
            limit = MAX_HEADING_ERROR if turns else HEADING_TOLERANCE
            if distance <= self._settings.tolerance or self._is_aimed(distance, degrees, limit):
                return distance
            if turns < MAX_TURNS:
                await self._turn(find, degrees, step)
        _check_heading(degrees)
        return distance

    def _is_aimed(self, distance: float, degrees: float, limit: float) -> bool:
        """Return whether the base is aimed well enough: its next leg ends near the line to the
        target."""
        leg = min(distance, MAX_LEG / 1000)
        miss = leg * math.sin(math.radians(abs(degrees)))
        return abs(degrees) < MIN_TURN or (
            abs(degrees) <= limit and miss <= self._settings.tolerance
        )

    async def _turn_to(self, find: FindBase, yaw: float, step: PathStep) -> None:
        for _ in range(MAX_TURNS):
            degrees = _turn_between(await self._locate_on(step), yaw)
            await self._turn(find, degrees, step)
            if abs(degrees) <= HEADING_TOLERANCE:
                return
        _check_heading(_turn_between(await self._locate_on(step), yaw))

    async def _turn(self, find: FindBase, degrees: float, step: PathStep) -> None:
        await self._supervise(turn(find, degrees, self._drive_settings(step), self._clock), step)

    async def _go_straight(self, find: FindBase, meters: float, step: PathStep) -> None:
        # `move_straight` takes whole millimeters, and 0 would not move the base.
        distance = max(meters * 1000, 1)
        self._speed = step.speed
        try:
            await self._supervise(
                go_straight(find, distance, self._drive_settings(step), self._clock), step
            )
        finally:
            self._speed = 0.0

    async def _supervise(self, move: Coroutine[Any, Any, None], step: PathStep) -> None:
        """Run a move, and end it if the position is lost or too far from the path."""
        task = asyncio.ensure_future(move)
        try:
            while not task.done():
                await self._clock.wait([task], self._settings.polling_interval)
                if not task.done():
                    await self._locate_on(step)
            task.result()
            # Wait for a new position: a slow sensor still reports one from before the end of the
            # move.
            await self._clock.sleep(self._settings.polling_interval)
        finally:
            task.cancel()
            await await_shielded(asyncio.wait([task], timeout=3 * STOP_TIMEOUT))
            if task.done() and not task.cancelled():
                task.exception()  # retrieve any error, or asyncio would log it

    async def _locate_on(self, step: PathStep) -> MapPose:
        pose = await self._locator.locate()
        distance = step.distance_from(pose.point)
        if distance > self._settings.deviation:
            raise LeftPath(
                f'base "{self._name.short}" is {distance:.2f} m away from its path: check that its '
                'wheels do not slip and its position is correct, or raise "plan_deviation_m"'
            )
        return pose

    async def _stop(self) -> None:
        try:
            async with asyncio.timeout(STOP_TIMEOUT):
                await self._base.stop()
        except Exception:
            self._logger.exception('cannot stop base "%s"; its move may continue', self._name.short)

    def _drive_settings(self, step: PathStep) -> DriveSettings:
        settings = self._settings
        return DriveSettings(step.speed * 1000, settings.angular, settings.tolerance * 1000)

    def _make_finder(self) -> FindBase:
        """Return a function that returns the base for the moves along a path.

        The function raises Interrupted if the base was stopped after this call. Otherwise, a stop
        between two moves would go unnoticed.
        """
        stops = self._machine.stop_count(self._name)

        def find() -> Base:
            if self._machine.stop_count(self._name) != stops:
                raise Interrupted(f'base "{self._name.short}" was stopped during the move')
            return self._base

        return find


def _bearing(pose: MapPose, point: MapPoint) -> tuple[float, float]:
    """Return the distance to the point, and the left turn in degrees to face it."""
    return math.dist(pose.point, point), _turn_between(pose, yaw_toward(pose.point, point))


def _turn_between(pose: MapPose, yaw: float) -> float:
    return math.remainder(yaw - (pose.yaw or 0.0), 360)


def _check_heading(degrees: float) -> None:
    if abs(degrees) > MAX_HEADING_ERROR:
        raise OffCourse(
            f"the base still faces {abs(degrees):.0f} degrees away from its target after "
            f"{MAX_TURNS} turns: check that it turns in place and its compass heading is correct"
        )


def _is_interruption(error: Exception) -> bool:
    """Return whether the base was stopped, or another client controls it."""
    return isinstance(error, Interrupted) or (
        isinstance(error, GRPCError) and error.status is Status.ABORTED
    )

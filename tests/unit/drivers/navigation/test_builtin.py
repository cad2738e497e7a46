from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from viam.components.movement_sensor import MovementSensor
from viam.proto.common import GeoPoint, GeoPose, Pose
from viam.proto.service.navigation import (
    GoalState,
    MapType,
    NavErrorCode,
    Position,
    Status,
    Waypoint,
)

from cogwork.core.clock import ManualClock
from cogwork.core.errors import CogworkError, Unsupported
from cogwork.drivers.base.attributes import FakeBaseAttributes, WheeledBaseAttributes
from cogwork.drivers.base.fake import FakeBase
from cogwork.drivers.base.wheeled import WheeledBase
from cogwork.drivers.motor.attributes import FakeMotorAttributes
from cogwork.drivers.motor.fake import FakeMotor
from cogwork.drivers.movement_sensor.attributes import (
    FakeMovementSensorAttributes,
    GeoPointAttributes,
    WheeledOdometryAttributes,
)
from cogwork.drivers.movement_sensor.fake import FakeMovementSensor
from cogwork.drivers.movement_sensor.wheeled_odometry import WheeledOdometry
from cogwork.drivers.navigation.attributes import BuiltinNavigationAttributes
from cogwork.drivers.navigation.builtin import BuiltinNavigation
from cogwork.drivers.navigation.vehicle import NotLocalized
from cogwork.graph.name import ResourceName
from cogwork.resource.machine_access import MachineAccess
from cogwork.spatial.geodesy import EARTH_RADIUS

NAME = ResourceName.parse("rdk:service:navigation/n")
BASE = ResourceName.parse("rdk:component:base/b")
SENSOR = ResourceName.parse("rdk:component:movement_sensor/gps")
ACTIVE = GoalState.GOAL_STATE_ACTIVE
SUCCEEDED = GoalState.GOAL_STATE_SUCCEEDED
FAILED = GoalState.GOAL_STATE_FAILED
WALL = {"type": "box", "center": {"x": 0, "y": 5000}, "size": {"x": 2000, "y": 1000}}


def at(x: float, y: float, theta: float | None = None) -> Position:
    """Return a position in meters to the east and north."""
    pose = Pose(x=x * 1000, y=y * 1000)
    return Position(pose=pose if theta is None else Pose(x=pose.x, y=pose.y, o_z=1, theta=theta))


class MotorFault(CogworkError):
    status = "INTERNAL"


class SlippingBase(FakeBase):
    """A base that can slip, fail, and be observed."""

    slip = 1.0
    """Factor by which it turns too far."""
    fault: Exception | None = None
    stops = 0

    async def move_straight(self, distance: int, velocity: float, **_: Any) -> None:
        if self.fault is not None:
            raise self.fault
        await super().move_straight(distance, velocity)

    async def spin(self, angle: float, velocity: float, **_: Any) -> None:
        await super().spin(angle * self.slip, velocity)

    async def stop(self, **_: Any) -> None:
        self.stops += 1
        await super().stop()


class UnreliableSensor(FakeMovementSensor):
    """A sensor that can fail, hang, or lose its position."""

    fault: Exception | None = None
    hangs = False
    lost = False
    compass_supported = True
    frozen_heading: float | None = None
    east_error = 0.0
    """Meters."""
    noise = 0.0
    """Standard deviation of positions, in meters."""
    compass_noise = 0.0
    """Standard deviation of headings, in degrees."""
    random = random.Random(1)

    async def get_position(self, **_: Any) -> tuple[GeoPoint, float]:
        if self.fault is not None:
            raise self.fault
        if self.hangs:
            await asyncio.get_running_loop().create_future()
        point, altitude = await super().get_position()
        if self.lost:
            point.latitude = math.nan
        east = self.east_error + self.random.gauss(0, self.noise)
        point.longitude += math.degrees(east / EARTH_RADIUS)
        point.latitude += math.degrees(self.random.gauss(0, self.noise) / EARTH_RADIUS)
        return point, altitude

    async def get_compass_heading(self, **_: Any) -> float:
        heading = await super().get_compass_heading() + self.random.gauss(0, self.compass_noise)
        return heading if self.frozen_heading is None else self.frozen_heading

    async def get_properties(self, **_: Any) -> MovementSensor.Properties:
        properties = await super().get_properties()
        properties.compass_heading_supported = self.compass_supported
        return properties


@dataclass
class Rig:
    """A service that drives a simulated base, which starts at the origin and faces north."""

    service: BuiltinNavigation
    base: SlippingBase
    sensor: UnreliableSensor
    clock: ManualClock
    machine: MachineAccess
    track: list[tuple[float, float]] = field(default_factory=list)

    async def drive(self, seconds: float) -> Status:
        """Let time pass, record the track, and return the final status."""
        for _ in range(round(seconds / 0.25)):
            await self.clock.advance(0.25)
            self.track.append(await self.point())
        return await self.service.get_navigation_status()

    async def point(self) -> tuple[float, float]:
        pose = (await self.base.odometry()).pose
        return pose.x / 1000, pose.y / 1000


Make = Callable[..., Awaitable[Rig]]


@pytest.fixture
async def make(clock: ManualClock) -> AsyncIterator[Make]:
    rigs: list[Rig] = []

    async def make(**attributes: Any) -> Rig:
        base = SlippingBase(BASE, FakeBaseAttributes(), clock)
        sensor = UnreliableSensor(
            SENSOR, FakeMovementSensorAttributes(base="b", origin=GeoPointAttributes()), base
        )
        given = {"map_type": "local", "meters_per_sec": 1, "degs_per_sec": 90}
        given |= {"plan_deviation_m": 0.2, "position_polling_frequency_hz": 4}
        given |= {"footprint_length_m": 0.8, "footprint_width_m": 0.6}
        machine = MachineAccess()
        service = await BuiltinNavigation.new(
            NAME,
            BuiltinNavigationAttributes.model_validate(
                {"base": "b", "movement_sensor": "gps", **given, **attributes}
            ),
            {BASE: base, SENSOR: sensor},
            machine,
            clock,
        )
        rigs.append(Rig(service, base, sensor, clock, machine))
        return rigs[-1]

    yield make
    for each in rigs:
        each.sensor.hangs = False
        await each.service.close()


@pytest.fixture
async def rig(make: Make) -> Rig:
    return await make()


async def test_goal_is_reached_with_its_heading(rig: Rig) -> None:
    status = await rig.service.navigate_to_point(at(3, 4, 180))
    assert status.goal.progress.length_m == pytest.approx(5)
    status = await rig.drive(3)
    assert status.goal.state == ACTIVE
    assert status.velocity.linear_m_per_sec == 1
    assert status.goal.progress.distance_remaining_m < 3
    status = await rig.drive(7)
    assert status.goal.state == SUCCEEDED
    assert status.velocity.linear_m_per_sec == 0
    assert await rig.point() == pytest.approx((3, 4), abs=0.1)
    assert math.remainder(status.position.pose.theta - 180, 360) == pytest.approx(0, abs=1)
    assert rig.base.stops == 1


async def test_path_avoids_an_obstacle(rig: Rig) -> None:
    await rig.service.add_zone("wall", "keepout", WALL)
    await rig.service.navigate_to_point(at(0, 10))
    status = await rig.drive(30)
    assert status.goal.state == SUCCEEDED
    assert await rig.point() == pytest.approx((0, 10), abs=0.1)
    radius = 0.5
    near = [(x, y) for x, y in rig.track if 4.5 - radius < y < 5.5 + radius]
    assert near
    assert all(abs(x) >= 1 + radius for x, _ in near)


async def test_zone_added_on_the_path_is_avoided(rig: Rig) -> None:
    await rig.service.navigate_to_point(at(0, 10))
    await rig.drive(2)
    await rig.service.add_zone("wall", "keepout", WALL)
    assert (await rig.drive(30)).goal.state == SUCCEEDED
    assert all(abs(x) >= 1.5 for x, y in rig.track if 4 < y < 6)


async def test_inaccurate_turns_are_corrected(rig: Rig) -> None:
    rig.base.slip = 1.2
    await rig.service.add_zone("wall", "keepout", WALL)
    await rig.service.navigate_to_point(at(0, 10))
    status = await rig.drive(60)
    assert status.goal.state == SUCCEEDED, status.goal.error
    assert await rig.point() == pytest.approx((0, 10), abs=0.11)


@pytest.mark.parametrize("seed", range(3))
async def test_goal_is_reached_with_a_noisy_sensor(make: Make, seed: int) -> None:
    rig = await make(plan_deviation_m=4, position_polling_frequency_hz=1)
    rig.base.slip = 1.1
    rig.sensor.random = random.Random(seed)
    rig.sensor.noise, rig.sensor.compass_noise = 1, 3
    wall = {"type": "box", "center": {"x": 0, "y": 20_000}, "size": {"x": 10_000, "y": 4000}}
    await rig.service.add_zone("wall", "keepout", wall)
    await rig.service.navigate_to_point(at(3, 40))
    status = await rig.drive(200)
    assert status.goal.state == SUCCEEDED, status.goal.error
    assert math.dist(await rig.point(), (3, 40)) < 4
    assert all(abs(x) > 5.5 for x, y in rig.track if 17.5 < y < 22.5)


async def test_speed_limit_applies_to_the_base(rig: Rig) -> None:
    await rig.service.add_zone("street", "speed_limit", WALL, 0.25)
    await rig.service.navigate_to_point(at(0, 10))
    await rig.drive(5.5)
    assert (await rig.base.odometry()).speed.linear == pytest.approx(250)


async def test_route_loops(rig: Rig) -> None:
    waypoints = [Waypoint(position=at(0, 2)), Waypoint(position=at(0, 0))]
    await rig.service.navigate_route(waypoints=waypoints, loop=True)
    status = await rig.drive(30)
    assert status.goal.state == ACTIVE
    assert status.goal.route.lap >= 2


async def test_loop_within_the_tolerance_does_not_block(rig: Rig) -> None:
    waypoints = [Waypoint(position=at(0, 0.01)), Waypoint(position=at(0, 0))]
    await rig.service.navigate_route(waypoints=waypoints, loop=True)
    async with asyncio.timeout(60):
        assert 1 < (await rig.drive(2)).goal.route.lap <= 21


async def _cancel(rig: Rig) -> None:
    await rig.service.cancel()


async def _suspend(rig: Rig) -> None:
    await rig.service.suspend("a cat")


async def _stop(rig: Rig) -> None:
    await rig.service.stop()


async def _close(rig: Rig) -> None:
    await rig.service.close()


@pytest.mark.parametrize("end", [_cancel, _suspend, _stop, _close])
async def test_base_is_stopped_when_the_call_returns(
    rig: Rig, end: Callable[[Rig], Awaitable[None]]
) -> None:
    await rig.service.navigate_to_point(at(0, 10))
    await rig.drive(3)
    assert await rig.base.is_moving()
    await end(rig)
    assert not await rig.base.is_moving()
    assert (await rig.point())[1] == pytest.approx(3, abs=0.1)


async def test_resumed_goal_continues(rig: Rig) -> None:
    await rig.service.navigate_to_point(at(0, 10))
    await rig.drive(3)
    await rig.service.suspend("a cat")
    await rig.drive(10)
    await rig.service.resume()
    assert (await rig.drive(10)).goal.state == SUCCEEDED


async def test_goal_of_another_mode_stops_the_base_first(rig: Rig) -> None:
    waiting = asyncio.ensure_future(rig.service.go_to_point(at(0, 10)))
    await rig.drive(3)
    await rig.service.navigate_to_point(at(0, 0))
    with pytest.raises(Exception, match="a newer goal replaced this one"):
        await waiting
    assert rig.base.stops >= 1
    assert (await rig.drive(10)).goal.state == SUCCEEDED
    assert await rig.point() == pytest.approx((0, 0), abs=0.11)


async def test_cancelled_caller_stops_the_base(rig: Rig) -> None:
    waiting = asyncio.ensure_future(rig.service.go_to_point(at(0, 10)))
    await rig.drive(3)
    waiting.cancel()
    status = await rig.drive(1)
    assert status.goal.state == GoalState.GOAL_STATE_CANCELED
    assert not await rig.base.is_moving()


@pytest.mark.parametrize(
    ("loss", "seconds", "words"),
    [
        ({"fault": RuntimeError("no signal")}, 1.25, "failed: RuntimeError: no signal"),
        ({"lost": True}, 1.25, "does not know its position"),
        ({"frozen_heading": math.nan}, 1.25, "does not know its heading"),
        ({"hangs": True}, 3.25, "did not answer within 2 s"),
    ],
)
async def test_lost_position_stops_the_base(
    rig: Rig, loss: dict[str, Any], seconds: float, words: str
) -> None:
    await rig.service.navigate_to_point(at(0, 10))
    await rig.drive(2)
    assert await rig.base.is_moving()
    for attribute, value in loss.items():
        setattr(rig.sensor, attribute, value)
    await rig.clock.advance(seconds)
    assert not await rig.base.is_moving()
    rig.sensor.hangs = False
    status = await rig.service.get_navigation_status()
    assert status.goal.state == FAILED
    assert status.goal.error.code == NavErrorCode.NAV_ERROR_CODE_LOCALIZATION_LOST
    assert words in status.goal.error.message
    assert 'movement sensor "gps"' in status.goal.error.message


async def test_status_keeps_the_last_known_position(rig: Rig) -> None:
    assert (await rig.service.get_navigation_status()).localized
    rig.sensor.lost = True
    status = await rig.service.get_navigation_status()
    assert not status.localized
    assert (status.position.pose.x, status.position.pose.y) == pytest.approx((0, 0))
    with pytest.raises(NotLocalized):
        await rig.service.get_position()
    with pytest.raises(NotLocalized):
        await rig.service.navigate_to_point(at(0, 1))


async def test_failing_base_fails_the_goal_with_the_reason(rig: Rig) -> None:
    rig.base.fault = MotorFault("the left motor is too hot")
    await rig.service.navigate_to_point(at(0, 10))
    status = await rig.drive(1)
    assert status.goal.state == FAILED
    assert status.goal.error.code == NavErrorCode.NAV_ERROR_CODE_BASE_ERROR
    assert status.goal.error.message == "the left motor is too hot"
    assert rig.base.stops == 1


async def test_goal_too_fast_for_the_base_fails_with_the_reason(rig: Rig) -> None:
    status = await rig.service.go_to_point(at(0, 10), linear_m_per_sec=5)
    assert status.goal.state == FAILED
    assert "drives at 1000 mm/s at most" in status.goal.error.message


async def test_client_that_takes_the_base_keeps_it(rig: Rig) -> None:
    await rig.service.navigate_to_point(at(0, 10))
    await rig.drive(3)
    taking = asyncio.ensure_future(rig.base.spin(3600, 90))
    status = await rig.drive(2)
    assert status.goal.state == FAILED
    assert "interrupted by spin" in status.goal.error.message
    assert await rig.base.is_moving()
    await rig.base.stop()
    await asyncio.gather(taking, return_exceptions=True)


async def test_base_belongs_to_the_service_while_it_drives(rig: Rig) -> None:
    taken: list[tuple[ResourceName, str]] = []
    rig.machine.take_over = lambda name, mover: taken.append((name, mover))
    await rig.service.navigate_to_point(at(0, 10))
    await rig.drive(1)
    assert taken == [(BASE, f"navigation {NAME.short}")]


async def test_base_stopped_between_moves_stays(rig: Rig) -> None:
    counts = iter([0])
    rig.machine.stop_count = lambda _: next(counts, 1)
    await rig.service.navigate_to_point(at(0, 10))
    status = await rig.drive(1)
    assert status.goal.state == FAILED
    assert status.goal.error.message == 'base "b" was stopped during the move'
    assert await rig.point() == (0, 0)


async def test_goal_fails_when_the_base_makes_no_progress(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stay(*_: Any, **__: Any) -> None:
        await rig.clock.sleep(1)

    monkeypatch.setattr(rig.base, "move_straight", stay)
    await rig.service.navigate_to_point(at(0, 10))
    status = await rig.drive(10)
    assert status.goal.state == FAILED
    assert "the last 3 legs hardly brought it closer" in status.goal.error.message


async def test_goal_fails_when_the_compass_is_frozen(rig: Rig) -> None:
    rig.sensor.frozen_heading = 90
    await rig.service.navigate_to_point(at(0, 10))
    status = await rig.drive(20)
    assert status.goal.state == FAILED
    assert "after 4 turns: check that it turns in place" in status.goal.error.message


async def test_goal_fails_when_the_base_hangs(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(*_: Any, **__: Any) -> None:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(rig.base, "move_straight", hang)
    await rig.service.navigate_to_point(at(0, 1))
    status = await rig.drive(10)
    assert status.goal.state == FAILED
    assert "did not arrive within 8.0 seconds" in status.goal.error.message
    assert rig.base.stops >= 1


async def test_path_is_planned_again_when_the_machine_is_pushed_off(rig: Rig) -> None:
    await rig.service.navigate_to_point(at(0, 10))
    await rig.drive(3)
    rig.sensor.east_error = 1
    status = await rig.drive(20)
    assert status.goal.state == SUCCEEDED
    assert await rig.point() == pytest.approx((-1, 10), abs=0.11)
    assert status.position.pose.x == pytest.approx(0, abs=110)


async def test_goal_fails_when_the_machine_leaves_its_path_without_progress(rig: Rig) -> None:
    await rig.service.navigate_to_point(at(0, 100))
    for _ in range(8):
        rig.sensor.east_error += 1
        await rig.drive(0.5)
    status = await rig.drive(2)
    assert status.goal.state == FAILED
    assert "away from its path" in status.goal.error.message
    assert not await rig.base.is_moving()


async def test_goal_continues_while_the_machine_makes_progress(rig: Rig) -> None:
    await rig.service.navigate_to_point(at(0, 100))
    for number in range(12):
        rig.sensor.east_error = number % 2
        assert (await rig.drive(6)).goal.state == ACTIVE
    rig.sensor.east_error = 0
    assert (await rig.drive(120)).goal.state == SUCCEEDED


async def test_gps_map_starts_at_the_position_of_the_machine(make: Make) -> None:
    rig = await make(map_type="GPS")
    assert (await rig.service.get_properties()).map_type == MapType.MAP_TYPE_GPS
    goal = GeoPose(location=GeoPoint(latitude=0.00005, longitude=0.00005), heading=0)
    await rig.service.navigate_to_point(Position(geo_pose=goal))
    assert (await rig.drive(20)).goal.state == SUCCEEDED
    assert await rig.point() == pytest.approx((5.56, 5.56), abs=0.11)


async def test_origin_of_a_local_map_offsets_positions(make: Make) -> None:
    rig = await make(origin={"latitude": 0, "longitude": -0.0001})
    pose = (await rig.service.get_position()).pose
    assert (pose.x, pose.y, pose.theta) == pytest.approx((11_119.5, 0, 90), abs=0.1)


async def test_sensor_without_compass_is_refused(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(UnreliableSensor, "compass_supported", False)
    with pytest.raises(Unsupported, match='"gps" does not report its compass heading'):
        await make()


async def test_service_without_origin_waits_for_a_position(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(UnreliableSensor, "lost", True)
    with pytest.raises(NotLocalized, match='"gps" does not know its position'):
        await make()
    await make(origin={"latitude": 0, "longitude": 0})


@pytest.mark.parametrize(("x", "state"), [(1.6, SUCCEEDED), (1.4, FAILED)])
async def test_goal_suspended_beside_a_zone_resumes_unless_too_close(
    rig: Rig, x: float, state: GoalState.ValueType
) -> None:
    """The machine may be in the margin of a zone, from 1.5 to 1.7 m, but not closer."""
    await rig.service.add_zone("wall", "keepout", WALL)
    await rig.service.navigate_to_point(at(0, 10))
    while not 4.5 < (await rig.point())[1] < 5.5:
        await rig.drive(0.25)
    await rig.service.suspend()
    actual, _ = await rig.point()
    rig.sensor.east_error = math.copysign(x, actual) - actual
    await rig.service.resume()
    status = await rig.drive(30)
    assert status.goal.state == state
    if state == FAILED:
        assert status.goal.error.code == NavErrorCode.NAV_ERROR_CODE_BLOCKED
        assert 'the start is in zone "wall"' in status.goal.error.message


async def test_wheeled_base_reaches_the_goal_with_slow_odometry(clock: ManualClock) -> None:
    """The odometry reports where the wheels were up to half a second ago."""
    left, right = (ResourceName.parse(f"rdk:component:motor/{each}") for each in ("l", "r"))
    parts: dict[ResourceName, Any] = {
        each: await FakeMotor.new(each, FakeMotorAttributes(max_rpm=600), {}, clock)
        for each in (left, right)
    }
    wheels = WheeledBaseAttributes(
        left=["l"], right=["r"], width_mm=500, wheel_circumference_mm=200
    )
    parts[BASE] = await WheeledBase.new(BASE, wheels, parts)
    odometry = WheeledOdometryAttributes(left_motors=["l"], right_motors=["r"], base="b")
    parts[SENSOR] = await WheeledOdometry.new(SENSOR, odometry, parts, clock)
    attributes = BuiltinNavigationAttributes(
        base="b", movement_sensor="gps", map_type="local", plan_deviation_m=0.1
    )
    service = await BuiltinNavigation.new(NAME, attributes, parts, MachineAccess(), clock)
    await service.add_zone("wall", "keepout", WALL)
    await service.navigate_to_point(at(2, 8, 0))
    await clock.advance(120)
    status = await service.get_navigation_status()
    assert status.goal.state == SUCCEEDED, status.goal.error
    pose = status.position.pose
    assert (pose.x, pose.y) == pytest.approx((2000, 8000), abs=55)
    assert pose.theta == pytest.approx(0, abs=5)
    await service.close()
    await parts[SENSOR].close()

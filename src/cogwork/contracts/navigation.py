"""The contract of navigation services."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Coroutine, Mapping
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status as GrpcStatus
from viam.proto.common import GeoPose, Pose
from viam.proto.service.navigation import (
    GoalState,
    MapType,
    NavMode,
    Plan,
    Position,
    Properties,
    Status,
    Waypoint,
)
from viam.services.navigation.client import NavigationClient
from viam.utils import struct_to_dict

from cogwork.contracts.contract import TIMEOUT, Contract, allow_refusal
from cogwork.contracts.harness import Harness
from cogwork.contracts.moving import assert_stops_in_time

ACTIVE = GoalState.GOAL_STATE_ACTIVE
SUSPENDED = GoalState.GOAL_STATE_SUSPENDED
SUCCEEDED = GoalState.GOAL_STATE_SUCCEEDED
FAILED = GoalState.GOAL_STATE_FAILED
CANCELED = GoalState.GOAL_STATE_CANCELED

_TOLERANCE_M = 0.01
"""Tolerance of a position, in meters."""


class NavigationContract(Contract):
    """The contract of navigation services. Features missing from the properties must be refused."""

    api = "rdk:service:navigation"
    client = NavigationClient

    near: ClassVar[Position]
    """Position that the machine reaches within a second."""
    nearby: ClassVar[Position]
    """Another position close to `near`."""
    far: ClassVar[Position]
    """Position that the machine takes at least several seconds to reach."""
    around_far: ClassVar[Mapping[str, Any]]
    """Geometry of a zone that contains `far` and is not close to the machine's initial position."""

    async def test_reports_properties(self, resource: Any) -> None:
        properties = await resource.get_properties()
        assert properties.map_type != MapType.MAP_TYPE_UNSPECIFIED
        position = await resource.get_position()
        assert position.WhichOneof("value") == _position_kind(properties)

    async def test_locations_are_saved_by_name(self, resource: Any) -> None:
        here = await resource.add_location("here")
        assert here.name == "here"
        assert _distance(here.position, await resource.get_position()) < _TOLERANCE_M
        there = await resource.add_location("there", self.near)
        assert there.position == self.near
        assert await resource.get_location("there") == there
        assert [each.name for each in await resource.list_locations()] == ["here", "there"]
        moved = await resource.update_location("there", position=self.far)
        assert (moved.name, moved.position) == ("there", self.far)
        renamed = await resource.update_location("there", new_name="elsewhere")
        assert (renamed.name, renamed.position) == ("elsewhere", self.far)
        await resource.delete_location("here")
        assert await resource.list_locations() == [renamed]

    async def test_location_names_are_unique(self, resource: Any) -> None:
        await resource.add_location("one", self.near)
        await resource.add_location("other", self.near)
        await _assert_refused(resource.add_location("one", self.far), GrpcStatus.ALREADY_EXISTS)
        asking = resource.update_location("other", new_name="one")
        await _assert_refused(asking, GrpcStatus.ALREADY_EXISTS)
        await _assert_refused(resource.add_location("", self.far), GrpcStatus.INVALID_ARGUMENT)
        assert (await resource.get_location("one")).position == self.near

    async def test_unknown_names_are_not_found(self, resource: Any) -> None:
        properties = await resource.get_properties()
        asked = [
            resource.get_location("none"),
            resource.update_location("none", self.near),
            resource.delete_location("none"),
            resource.go_to_location("none"),
        ]
        if properties.planning_supported:
            asked += [resource.navigate_to_location("none"), resource.plan_to_location("none")]
        if properties.routes_supported:
            asked += [
                resource.get_route("none"),
                resource.update_route("none"),
                resource.delete_route("none"),
                resource.navigate_route("none"),
                resource.add_route("tour", [Waypoint(location="none")]),
            ]
        if properties.zones_supported:
            asked += [
                resource.get_zone("none"),
                resource.update_zone("none", max_speed=1),
                resource.delete_zone("none"),
            ]
        for asking in asked:
            await _assert_refused(asking, GrpcStatus.NOT_FOUND)

    async def test_refuses_wrong_position_kind(self, resource: Any) -> None:
        local = _position_kind(await resource.get_properties()) == "pose"
        other = Position(geo_pose=GeoPose(heading=0)) if local else Position(pose=Pose(x=1))
        no_number = (
            Position(pose=Pose(x=math.nan)) if local else Position(geo_pose=GeoPose(heading=0))
        )
        if not local:
            no_number.geo_pose.location.latitude = math.nan
        for position in (other, no_number, Position()):
            for asking in (resource.add_location("spot", position), resource.go_to_point(position)):
                await _assert_refused(asking, GrpcStatus.INVALID_ARGUMENT)

    async def test_routes_are_saved_by_name(self, resource: Any) -> None:
        await resource.add_location("dock", self.near)
        waypoints = [Waypoint(location="dock"), Waypoint(position=self.far)]
        if not (await resource.get_properties()).routes_supported:
            await _assert_refused(resource.add_route("tour", waypoints), GrpcStatus.UNIMPLEMENTED)
            return
        tour = await resource.add_route("tour", waypoints)
        assert (tour.name, list(tour.waypoints)) == ("tour", waypoints)
        assert await resource.get_route("tour") == tour
        await _assert_refused(resource.add_route("tour"), GrpcStatus.ALREADY_EXISTS)
        renamed = await resource.update_route("tour", new_name="round")
        assert (renamed.name, list(renamed.waypoints)) == ("round", waypoints)
        assert await resource.list_routes() == [renamed]
        assert not (await resource.update_route("round", waypoints=[])).waypoints
        await resource.delete_route("round")
        assert await resource.list_routes() == []

    async def test_zones_are_saved_by_name(self, resource: Any) -> None:
        if not (await resource.get_properties()).zones_supported:
            asking = resource.add_zone("pit", "keepout", self.around_far)
            await _assert_refused(asking, GrpcStatus.UNIMPLEMENTED)
            return
        pit = await resource.add_zone("pit", "keepout", self.around_far)
        assert (pit.name, pit.type, pit.HasField("max_speed")) == ("pit", "keepout", False)
        assert struct_to_dict(pit.geometry) == self.around_far
        slow = await resource.add_zone("school", "speed_limit", self.around_far, 0.2)
        assert (slow.type, slow.max_speed) == ("speed_limit", 0.2)
        assert await resource.get_zone("pit") == pit
        assert await resource.list_zones() == [pit, slow]
        assert await resource.list_zones("speed_limit") == [slow]
        await _assert_refused(
            resource.add_zone("pit", "keepout", self.around_far), GrpcStatus.ALREADY_EXISTS
        )
        renamed = await resource.update_zone("school", new_name="street", max_speed=0.3)
        assert (renamed.name, renamed.max_speed) == ("street", 0.3)
        assert (await resource.update_zone("street", type="keepout")).type == "keepout"
        assert struct_to_dict((await resource.get_zone("street")).geometry) == self.around_far
        await resource.delete_zone("pit")
        await resource.delete_zone("street")
        assert await resource.list_zones() == []

    async def test_refuses_invalid_zones(self, resource: Any) -> None:
        if not (await resource.get_properties()).zones_supported:
            return
        for asking in (
            resource.add_zone("zone", "playground", self.around_far),
            resource.add_zone("zone", "keepout", {"type": "thought"}),
            resource.add_zone("zone", "keepout", {}),
            resource.add_zone("zone", "speed_limit", self.around_far),
            resource.add_zone("zone", "speed_limit", self.around_far, -1),
            resource.add_zone("", "keepout", self.around_far),
        ):
            await _assert_refused(asking, GrpcStatus.INVALID_ARGUMENT)
        assert await resource.list_zones() == []

    async def test_goes_straight_and_waits(self, resource: Any) -> None:
        assert not (await resource.get_navigation_status()).HasField("goal")
        status = await resource.go_to_point(self.near, timeout=TIMEOUT)
        _assert_arrived(status, NavMode.NAV_MODE_DIRECT, self.near)
        assert _distance(await resource.get_position(), self.near) < _TOLERANCE_M
        await resource.add_location("there", self.nearby)
        status = await resource.go_to_location("there", True, 1.0, timeout=TIMEOUT)
        _assert_arrived(status, NavMode.NAV_MODE_DIRECT, self.nearby)
        assert status.goal.location == "there"

    async def test_navigates_without_waiting(self, resource: Any) -> None:
        await resource.add_location("there", self.nearby)
        if not (await resource.get_properties()).planning_supported:
            await _assert_refused(resource.navigate_to_point(self.near), GrpcStatus.UNIMPLEMENTED)
            await _assert_refused(resource.navigate_to_location("there"), GrpcStatus.UNIMPLEMENTED)
            return
        status = await resource.navigate_to_point(self.near)
        assert status.goal.state in (ACTIVE, SUCCEEDED)
        _assert_arrived(await _wait_until_finished(resource), NavMode.NAV_MODE_PLANNED, self.near)
        status = await resource.navigate_to_location("there")
        assert status.goal.location == "there"
        _assert_arrived(await _wait_until_finished(resource), NavMode.NAV_MODE_PLANNED, self.nearby)
        assert _distance(await resource.get_position(), self.nearby) < _TOLERANCE_M

    async def test_executes_its_plans(self, resource: Any) -> None:
        await resource.add_location("there", self.near)
        if not (await resource.get_properties()).planning_supported:
            for asking in (
                resource.plan_to_point(self.near),
                resource.execute_plan(Plan(path=[self.near])),
            ):
                await _assert_refused(asking, GrpcStatus.UNIMPLEMENTED)
            return
        before = await resource.get_position()
        plan = await resource.plan_to_point(self.near)
        assert _distance(await resource.get_position(), before) < _TOLERANCE_M
        assert not plan.HasField("location")
        named = await resource.plan_to_location("there", start=self.nearby)
        assert named.location == "there"
        assert _distance(named.path[0], self.nearby) < _TOLERANCE_M
        assert _distance(named.path[-1], self.near) < _TOLERANCE_M
        assert named.length_m >= _distance(self.nearby, self.near) - _TOLERANCE_M
        await resource.execute_plan(plan)
        _assert_arrived(await _wait_until_finished(resource), NavMode.NAV_MODE_PLANNED, self.near)
        await _assert_refused(resource.execute_plan(Plan()), GrpcStatus.INVALID_ARGUMENT)

    async def test_follows_route(self, resource: Any) -> None:
        await resource.add_location("there", self.near)
        waypoints = [Waypoint(location="there"), Waypoint(position=self.nearby)]
        if not (await resource.get_properties()).routes_supported:
            await _assert_refused(
                resource.navigate_route(waypoints=waypoints), GrpcStatus.UNIMPLEMENTED
            )
            return
        await resource.add_route("tour", waypoints)
        status = await resource.navigate_route("tour", wait=True, timeout=TIMEOUT)
        _assert_arrived(status, NavMode.NAV_MODE_ROUTE, self.nearby)
        assert (status.goal.route.name, status.goal.route.index) == ("tour", 1)
        status = await resource.navigate_route(waypoints=waypoints, start_index=1, wait=True)
        assert (status.goal.route.name, status.goal.state) == ("", SUCCEEDED)
        status = await resource.navigate_route("tour", start_nearest=True, loop=True)
        assert (status.goal.state, status.goal.route.loop) == (ACTIVE, True)
        await resource.cancel()

    async def test_refuses_invalid_routes(self, resource: Any) -> None:
        if not (await resource.get_properties()).routes_supported:
            return
        await resource.add_route("tour", [Waypoint(position=self.near)])
        for asking in (
            resource.navigate_route(),
            resource.navigate_route("tour", [Waypoint(position=self.near)]),
            resource.navigate_route("tour", start_index=1),
            resource.add_route("void", [Waypoint()]),
        ):
            await _assert_refused(asking, GrpcStatus.INVALID_ARGUMENT)

    async def test_goal_can_be_suspended_and_resumed(self, resource: Any) -> None:
        for asking in (resource.suspend(), resource.resume()):
            await _assert_refused(asking, GrpcStatus.FAILED_PRECONDITION)
        status = await resource.go_to_point(self.far, wait=False)
        assert status.goal.state == ACTIVE
        assert status.goal.progress.distance_remaining_m > 0
        status = await resource.suspend("a dog")
        assert (status.goal.state, status.goal.suspend_reason) == (SUSPENDED, "a dog")
        assert status.velocity.linear_m_per_sec == 0
        held = await resource.get_position()
        status = await resource.resume()
        assert (status.goal.state, status.goal.HasField("suspend_reason")) == (ACTIVE, False)
        assert _distance(held, status.position) < 1
        status = await resource.cancel()
        assert (status.goal.state, status.goal.HasField("finished_at")) == (CANCELED, True)
        assert status.goal.target == self.far
        await _assert_refused(resource.resume(), GrpcStatus.FAILED_PRECONDITION)
        assert (await resource.cancel()).goal.state == CANCELED

    async def test_newest_goal_wins(self, resource: Any) -> None:
        older = asyncio.ensure_future(resource.go_to_point(self.far, timeout=TIMEOUT))
        await _wait_until_active(resource)
        await resource.go_to_point(self.near, timeout=TIMEOUT)
        with pytest.raises(GRPCError) as refused:
            await older
        assert refused.value.status is GrpcStatus.ABORTED

    async def test_cancelled_call_ends_goal(self, resource: Any) -> None:
        waiting = asyncio.ensure_future(resource.go_to_point(self.far))
        await _wait_until_active(resource)
        waiting.cancel()
        assert (await _wait_until_finished(resource)).goal.state == CANCELED

    async def test_stop_all_stops_it(self, harness: Harness, resource: Any) -> None:
        async def stop_all() -> float:
            await resource.go_to_point(self.far, wait=False)
            since = time.monotonic()
            await harness.machine.motion.stop_all({})
            took = time.monotonic() - since
            assert (await resource.get_navigation_status()).goal.state == CANCELED
            return took

        await assert_stops_in_time(stop_all)

    async def test_keeps_out_of_keepout_zones(self, resource: Any) -> None:
        properties = await resource.get_properties()
        if not (properties.zones_supported and properties.planning_supported):
            return
        await resource.add_zone("pit", "keepout", self.around_far)
        await _assert_refused(resource.plan_to_point(self.far), GrpcStatus.FAILED_PRECONDITION)
        await resource.navigate_to_point(self.far)
        status = await _wait_until_finished(resource)
        assert status.goal.state == FAILED
        assert status.goal.error.code
        assert " " in status.goal.error.message

    async def test_has_costmap(self, resource: Any) -> None:
        if not (await resource.get_properties()).costmap_supported:
            await _assert_refused(resource.get_costmap(), GrpcStatus.UNIMPLEMENTED)
            return
        for layer in ("", "auto", "local", "global"):
            with allow_refusal(f"layer {layer}"):
                costs = await resource.get_costmap(layer, 1)
                assert costs.layer in ("local", "global")
                if costs.available:
                    assert costs.encoding == "uint8_row_major"
                    assert len(costs.data) == costs.width * costs.height > 0
                    assert costs.resolution > 0
                    assert all(cost <= 100 or cost == 255 for cost in costs.data)
        await _assert_refused(resource.get_costmap("basement"), GrpcStatus.INVALID_ARGUMENT)


async def _assert_refused(asking: Coroutine[Any, Any, Any], status: GrpcStatus) -> None:
    with pytest.raises(GRPCError) as refused:
        await asyncio.wait_for(asking, TIMEOUT)
    assert refused.value.status is status, refused.value
    assert " " in (refused.value.message or "")


async def _wait_until_active(resource: Any) -> None:
    async with asyncio.timeout(TIMEOUT):
        while (await resource.get_navigation_status()).goal.state != ACTIVE:
            await asyncio.sleep(0.01)


async def _wait_until_finished(resource: Any) -> Status:
    """Wait until the goal has ended, and return its status."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            status: Status = await resource.get_navigation_status()
            if status.goal.state not in (ACTIVE, SUSPENDED):
                return status
            await asyncio.sleep(0.01)


def _assert_arrived(status: Status, mode: NavMode.ValueType, target: Position) -> None:
    goal = status.goal
    assert (goal.state, goal.mode) == (SUCCEEDED, mode), goal
    assert _distance(goal.target, target) < _TOLERANCE_M
    assert goal.HasField("started_at")
    assert goal.HasField("finished_at")
    assert goal.started_at.ToNanoseconds() <= goal.finished_at.ToNanoseconds()
    assert status.velocity.linear_m_per_sec == 0
    assert status.localized


def _position_kind(properties: Properties) -> str:
    return "pose" if properties.map_type == MapType.MAP_TYPE_LOCAL else "geo_pose"


def _distance(one: Position, other: Position) -> float:
    """Return the distance in meters."""
    if one.WhichOneof("value") == "pose":
        return math.hypot(one.pose.x - other.pose.x, one.pose.y - other.pose.y) / 1000
    here, there = one.geo_pose.location, other.geo_pose.location
    east = (there.longitude - here.longitude) * math.cos(math.radians(here.latitude))
    return math.hypot(east, there.latitude - here.latitude) * 111_195

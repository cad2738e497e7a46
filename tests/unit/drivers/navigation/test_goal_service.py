from __future__ import annotations

import asyncio
import contextlib
import math
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from grpclib.const import Status as GrpcStatus
from tests.support.machine.served import Serve, refused
from tests.support.waiting import poll, run_others, wait_until
from viam.proto.common import Pose
from viam.proto.service.navigation import (
    GoalState,
    NavErrorCode,
    NavMode,
    Plan,
    Position,
    Status,
    Waypoint,
)
from viam.services.navigation.client import NavigationClient

from cogwork.core.clock import ManualClock
from cogwork.core.errors import Interrupted
from cogwork.drivers.navigation import planner
from cogwork.drivers.navigation.attributes import FakeNavigationAttributes
from cogwork.drivers.navigation.fake import FakeNavigation
from cogwork.drivers.navigation.named_store import MAX_ITEMS
from cogwork.drivers.navigation.search_budget import SearchBudget
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:service:navigation/n")
ACTIVE = GoalState.GOAL_STATE_ACTIVE
SUCCEEDED = GoalState.GOAL_STATE_SUCCEEDED
WALL = {"type": "box", "center": {"x": 5000, "y": 0}, "size": {"x": 1000, "y": 2000}}


def at(x: float, y: float = 0.0) -> Position:
    """Return a position in meters, without a heading."""
    return Position(pose=Pose(x=x * 1000, y=y * 1000))


@pytest.fixture
async def service(clock: ManualClock) -> AsyncIterator[FakeNavigation]:
    attributes = FakeNavigationAttributes(
        linear_m_per_sec=1, footprint_length_m=0.8, footprint_width_m=0.6
    )
    service = await FakeNavigation.new(NAME, attributes, {}, clock)
    yield service
    await service.close()


@pytest.fixture
async def client(service: FakeNavigation, serve: Serve) -> AsyncIterator[NavigationClient]:
    async with serve(service) as channel:
        yield NavigationClient("n", channel)


async def read_position(client: NavigationClient) -> tuple[float, float]:
    pose = (await client.get_position()).pose
    return pose.x / 1000, pose.y / 1000


async def test_status_reports_progress(client: NavigationClient, clock: ManualClock) -> None:
    status = await client.navigate_to_point(at(3, 4))
    assert status.goal.state == ACTIVE
    assert status.goal.progress.length_m == pytest.approx(5)
    assert [(each.pose.x, each.pose.y) for each in status.goal.progress.path] == [
        (0, 0),
        (3000, 4000),
    ]
    await clock.advance(2)
    status = await client.get_navigation_status()
    assert (status.position.pose.x, status.position.pose.y) == pytest.approx((1200, 1600))
    assert status.position.pose.theta == pytest.approx(math.degrees(math.atan2(4, 3)))
    assert status.velocity.linear_m_per_sec == pytest.approx(1)
    assert status.goal.progress.distance_remaining_m == pytest.approx(3)
    await clock.advance(100)
    status = await client.get_navigation_status()
    assert status.goal.state == SUCCEEDED
    took = status.goal.finished_at.ToNanoseconds() - status.goal.started_at.ToNanoseconds()
    assert took / 1e9 == pytest.approx(5, abs=1e-3)
    assert not status.goal.HasField("progress")


async def test_direct_goal_ignores_zones_and_waits(
    client: NavigationClient, clock: ManualClock
) -> None:
    await client.add_zone("wall", "keepout", WALL)
    going = asyncio.ensure_future(client.go_to_point(at(10), linear_m_per_sec=2))
    await poll(lambda: _has_state(client, ACTIVE))
    await clock.advance(4.9)
    assert await read_position(client) == pytest.approx((9.8, 0))
    assert not going.done()
    await clock.advance(0.1)
    status = await asyncio.wait_for(going, 10)
    assert (status.goal.state, status.goal.mode) == (SUCCEEDED, NavMode.NAV_MODE_DIRECT)


async def _has_state(client: NavigationClient, state: GoalState.ValueType) -> bool:
    return (await client.get_navigation_status()).goal.state == state


async def test_path_leads_around_keepout_zone(client: NavigationClient, clock: ManualClock) -> None:
    await client.add_zone("wall", "keepout", WALL)
    plan = await client.plan_to_point(at(10))
    assert max(abs(each.pose.y) for each in plan.path) == pytest.approx(1510)
    assert plan.length_m > 10.4
    assert (await client.navigate_to_point(at(10))).goal.progress.length_m == plan.length_m
    await clock.advance(plan.length_m + 0.001)
    assert await read_position(client) == pytest.approx((10, 0))


async def test_new_zone_changes_the_path(client: NavigationClient, clock: ManualClock) -> None:
    await client.navigate_to_point(at(10))
    await clock.advance(2)
    await client.add_zone("wall", "keepout", WALL)
    status = await client.get_navigation_status()
    assert status.goal.state == ACTIVE
    assert status.goal.progress.distance_remaining_m > 8.4
    assert await read_position(client) == pytest.approx((2, 0))
    await client.delete_zone("wall")
    status = await client.get_navigation_status()
    assert status.goal.progress.distance_remaining_m == pytest.approx(8)


async def test_zone_on_the_destination_fails_the_goal(
    client: NavigationClient, clock: ManualClock
) -> None:
    await client.navigate_to_point(at(10))
    await clock.advance(2)
    away = {"type": "circle", "center": {"x": 90_000, "y": 0}, "radius": 100}
    await client.add_zone("pit", "keepout", away)
    assert await _has_state(client, ACTIVE)
    await client.update_zone("pit", geometry={**away, "center": {"x": 10_000, "y": 0}})
    status = await client.get_navigation_status()
    assert status.goal.error.code == NavErrorCode.NAV_ERROR_CODE_BLOCKED
    assert status.goal.error.message == 'the destination is in zone "pit" or too close to it'
    await clock.advance(5)
    assert await read_position(client) == pytest.approx((2, 0))


async def test_goal_without_a_path_fails(client: NavigationClient) -> None:
    await client.add_zone("wall", "keepout", WALL)
    status = await client.navigate_to_point(at(5))
    assert status.goal.state == GoalState.GOAL_STATE_FAILED
    assert status.goal.error.code == NavErrorCode.NAV_ERROR_CODE_NO_PATH


async def test_blocked_plan_fails(client: NavigationClient, clock: ManualClock) -> None:
    plan = await client.plan_to_point(at(10))
    await client.add_zone("wall", "keepout", WALL)
    status = await client.execute_plan(plan)
    assert status.goal.error.code == NavErrorCode.NAV_ERROR_CODE_BLOCKED
    await client.delete_zone("wall")
    assert (await client.execute_plan(plan)).goal.state == ACTIVE
    await clock.advance(10)
    assert await read_position(client) == pytest.approx((10, 0))


def make_plan() -> Plan:
    """Return a plan of four meters to the left, and four meters ahead from there."""
    return Plan(path=[at(0), at(0, 4), at(4, 4)])


def path_of(status: Status) -> list[tuple[float, float]]:
    return [(each.pose.x / 1000, each.pose.y / 1000) for each in status.goal.progress.path]


async def test_resumed_goal_continues_along_its_plan(
    client: NavigationClient, clock: ManualClock
) -> None:
    await client.execute_plan(make_plan())
    await clock.advance(3)
    await client.suspend()
    status = await client.resume()
    assert path_of(status) == [(0, 3), (0, 4), (4, 4)]
    await clock.advance(3)
    await client.suspend()
    status = await client.resume()
    assert path_of(status) == [(2, 4), (4, 4)]
    await clock.advance(2)
    assert await read_position(client) == (4, 4)
    assert await _has_state(client, SUCCEEDED)


async def test_zone_beside_the_plan_keeps_the_plan(
    client: NavigationClient, clock: ManualClock
) -> None:
    await client.execute_plan(make_plan())
    await clock.advance(3)
    away = {"type": "circle", "center": {"x": 90_000, "y": 0}, "radius": 100}
    await client.add_zone("pit", "keepout", away)
    assert path_of(await client.get_navigation_status()) == [(0, 3), (0, 4), (4, 4)]
    slow = {"type": "box", "center": {"x": 0, "y": 3500}, "size": {"x": 1000, "y": 1000}}
    await client.add_zone("street", "speed_limit", slow, 0.5)
    await clock.advance(2)
    assert await read_position(client) == pytest.approx((0, 4))
    await client.delete_zone("pit")
    assert path_of(await client.get_navigation_status())[-1] == (4, 4)
    await clock.advance(4.5)
    assert await _has_state(client, SUCCEEDED)


async def test_zone_on_the_plan_causes_a_detour(
    client: NavigationClient, clock: ManualClock
) -> None:
    await client.execute_plan(make_plan())
    await clock.advance(1)
    corner = {"type": "circle", "center": {"x": 0, "y": 4000}, "radius": 500}
    await client.add_zone("corner", "keepout", corner)
    status = await client.get_navigation_status()
    assert status.goal.state == ACTIVE
    assert path_of(status) == [(0, 1), (4, 4)]
    await clock.advance(5)
    assert await read_position(client) == (4, 4)


async def test_speed_limit_zone_slows_down(client: NavigationClient, clock: ManualClock) -> None:
    await client.add_zone("street", "speed_limit", WALL, 0.5)
    await client.navigate_to_point(at(10))
    await clock.advance(5)
    status = await client.get_navigation_status()
    assert status.velocity.linear_m_per_sec == pytest.approx(0.5)
    await clock.advance(5.9)
    assert await _has_state(client, ACTIVE)
    await clock.advance(0.1)
    assert await _has_state(client, SUCCEEDED)


async def test_suspended_goal_rests_until_resumed(
    client: NavigationClient, clock: ManualClock
) -> None:
    await client.navigate_to_point(at(10))
    await clock.advance(2)
    await client.suspend("a cat")
    await clock.advance(100)
    assert await read_position(client) == pytest.approx((2, 0))
    assert (await client.suspend("a dog")).goal.suspend_reason == "a dog"
    await client.resume()
    assert await _has_state(client, ACTIVE)
    await clock.advance(8)
    assert await _has_state(client, SUCCEEDED)


async def test_route_passes_its_waypoints(client: NavigationClient, clock: ManualClock) -> None:
    await client.add_location("dock", at(0, 2))
    waypoints = [Waypoint(position=at(2)), Waypoint(position=at(2, 2)), Waypoint(location="dock")]
    await client.add_route("tour", waypoints)
    await client.navigate_route("tour")
    for seconds, index, target in ((1, 0, at(2)), (2, 1, at(2, 2)), (2, 2, at(0, 2))):
        await clock.advance(seconds)
        goal = (await client.get_navigation_status()).goal
        assert (goal.route.index, goal.target) == (index, target)
    assert goal.location == "dock"
    await client.suspend()
    assert (await client.resume()).goal.route.index == 2
    await clock.advance(1)
    goal = (await client.get_navigation_status()).goal
    assert (goal.state, goal.route.index, goal.route.lap) == (SUCCEEDED, 2, 0)


async def test_route_loops(client: NavigationClient, clock: ManualClock) -> None:
    """A lap of two meters out and two back takes four seconds."""
    waypoints = [Waypoint(position=at(2)), Waypoint(position=at(0))]
    waiting = asyncio.ensure_future(
        client.navigate_route(waypoints=waypoints, loop=True, wait=True)
    )
    await poll(lambda: _has_state(client, ACTIVE))
    for seconds, lap, index, x in ((1, 0, 0, 1), (2, 0, 1, 1), (2, 1, 0, 1), (401, 101, 0, 2)):
        await clock.advance(seconds)
        status = await client.get_navigation_status()
        assert (status.goal.route.lap, status.position.pose.x) == (lap, pytest.approx(x * 1000))
        assert status.goal.route.index == index or seconds == 401
    assert not waiting.done()
    await client.cancel()
    status = await asyncio.wait_for(waiting, 10)
    assert status.goal.state == GoalState.GOAL_STATE_CANCELED


async def test_route_starts_at_nearest_waypoint(
    client: NavigationClient, clock: ManualClock
) -> None:
    waypoints = [Waypoint(position=at(9)), Waypoint(position=at(1)), Waypoint(position=at(5))]
    status = await client.navigate_route(waypoints=waypoints, start_nearest=True)
    assert status.goal.route.index == 1
    await clock.advance(5)
    assert await _has_state(client, SUCCEEDED)


async def test_loop_of_one_place_is_refused(client: NavigationClient) -> None:
    with refused() as told:
        await client.navigate_route(waypoints=[Waypoint(position=at(1))] * 2, loop=True)
    assert told.status is GrpcStatus.INVALID_ARGUMENT


@pytest.mark.parametrize("meters", [1e-300, 1e-9, 0.0004])
async def test_loop_shorter_than_a_millimeter_is_refused(
    client: NavigationClient, meters: float
) -> None:
    waypoints = [Waypoint(position=at(0)), Waypoint(position=at(meters))]
    with refused() as told:
        await client.navigate_route(waypoints=waypoints, loop=True)
    assert told.status is GrpcStatus.INVALID_ARGUMENT
    assert "a lap must have at least 1 mm" in told.words


async def test_routes_follow_renamed_location(client: NavigationClient, clock: ManualClock) -> None:
    await client.add_location("dock", at(1))
    await client.add_route("tour", [Waypoint(location="dock")])
    await client.update_location("dock", new_name="berth")
    assert (await client.get_route("tour")).waypoints[0].location == "berth"
    await client.delete_location("berth")
    with refused() as told:
        await client.navigate_route("tour")
    assert told.status is GrpcStatus.NOT_FOUND
    assert 'no location "berth"' in told.words


@pytest.mark.parametrize("type_", ["location", "route", "zone"])
async def test_number_of_items_is_limited(service: FakeNavigation, type_: str) -> None:
    async def add(number: int) -> None:
        name = str(number)
        match type_:
            case "location":
                await service.add_location(name)
            case "route":
                await service.add_route(name)
            case "zone":
                await service.add_zone(name, "keepout", WALL)

    for number in range(MAX_ITEMS):
        await add(number)
    with pytest.raises(Exception, match=f"there are already {MAX_ITEMS} {type_}s"):
        await add(MAX_ITEMS)


async def test_newest_goal_replaces_older_one(
    client: NavigationClient, service: FakeNavigation, clock: ManualClock
) -> None:
    older = asyncio.ensure_future(service.go_to_point(at(10)))
    await clock.advance(2)
    await client.navigate_to_point(at(2, 1))
    with pytest.raises(Interrupted, match="a newer goal replaced this one"):
        await older
    await clock.advance(1)
    assert await read_position(client) == pytest.approx((2, 1))


@contextlib.contextmanager
def block_planner(service: FakeNavigation) -> Iterator[None]:
    """Keep all threads of the planner busy, so that no path is found."""
    gate = threading.Event()
    for _ in range(2):
        service._workers.submit(gate.wait, 30)
    try:
        yield
    finally:
        gate.set()


async def test_goal_replaces_one_that_is_being_planned(service: FakeNavigation) -> None:
    await service.add_zone("wall", "keepout", WALL)
    with block_planner(service):
        older = asyncio.ensure_future(service.navigate_to_point(at(10)))
        await run_others()
        status = await service.go_to_point(at(1), wait=False)
    with pytest.raises(Interrupted, match="a newer goal replaced this one"):
        await older
    assert (await service.get_navigation_status()).goal.target == status.goal.target == at(1)


async def test_cancelled_caller_during_planning_cancels_the_goal(service: FakeNavigation) -> None:
    await service.add_zone("wall", "keepout", WALL)
    with block_planner(service):
        asking = asyncio.ensure_future(service.navigate_to_point(at(10)))
        await run_others()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    status = await service.get_navigation_status()
    assert status.goal.state == GoalState.GOAL_STATE_CANCELED


@pytest.mark.parametrize("call", ["add_zone", "resume"])
async def test_cancelled_caller_during_replanning_keeps_the_goal(
    client: NavigationClient, service: FakeNavigation, clock: ManualClock, call: str
) -> None:
    await service.add_zone("wall", "keepout", WALL)
    await service.navigate_to_point(at(10))
    await clock.advance(1)
    if call == "resume":
        await service.suspend()
    with block_planner(service):
        pit = {"type": "circle", "center": {"x": 0, "y": 9000}, "radius": 100}
        asked = service.add_zone("pit", "keepout", pit) if call == "add_zone" else service.resume()
        asking = asyncio.ensure_future(asked)
        await run_others()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        status = await service.get_navigation_status()
        assert status.goal.state == ACTIVE
        assert not status.goal.HasField("progress")

    async def on_its_way() -> bool:
        return (await client.get_navigation_status()).goal.HasField("progress")

    await poll(on_its_way)
    await clock.advance(20)
    assert await read_position(client) == pytest.approx((10, 0))


async def test_only_one_search_runs_however_often_a_zone_changes(
    service: FakeNavigation, clock: ManualClock
) -> None:
    await service.add_zone("wall", "keepout", WALL)
    await service.navigate_to_point(at(10))
    with block_planner(service):
        editing = list[asyncio.Future[Any]]()
        for speed in range(1, 101):
            edit = service.update_zone("wall", max_speed=float(speed))
            editing.append(asyncio.ensure_future(edit))
            await clock.settle()
    async with asyncio.timeout(60):
        await asyncio.gather(*editing)
    status = await service.get_navigation_status()
    assert status.goal.state == ACTIVE, status.goal.error
    assert status.goal.progress.length_m > 10


async def build_maze(service: FakeNavigation) -> list[Waypoint]:
    """Add many boxes and return a route past them that takes long to find."""
    for number in range(36):
        x, y = 5 + number % 6 * 3, -6 + number // 6 * 2.6 + number % 2 * 1.3
        box = {"center": {"x": x * 1000, "y": y * 1000}, "size": {"x": 1500, "y": 1500}}
        await service.add_zone(f"box {number}", "keepout", {"type": "box", **box})
    return [Waypoint(position=at(30 if number % 2 == 0 else 0, 0.5)) for number in range(1000)]


async def test_abandoned_searches_free_the_threads(
    service: FakeNavigation, monkeypatch: pytest.MonkeyPatch
) -> None:
    searching = threading.Event()

    class EndlessBudget(SearchBudget):
        def __init__(self) -> None:
            super().__init__(10**12)

        def spend(self, checks: int) -> None:
            searching.set()
            super().spend(checks)

    monkeypatch.setattr(planner, "SearchBudget", EndlessBudget)
    route = await build_maze(service)
    for _ in range(3):
        searching.clear()
        asking = asyncio.ensure_future(service.navigate_route(waypoints=route))
        await wait_until(searching.is_set)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    async with asyncio.timeout(60):
        assert (await service.plan_to_point(at(0, 5))).length_m == pytest.approx(5)


async def test_plans_while_default_threads_are_busy(
    service: FakeNavigation,
) -> None:
    loop, gate = asyncio.get_running_loop(), threading.Event()
    with ThreadPoolExecutor(1) as executor:
        loop.set_default_executor(executor)
        busy = loop.run_in_executor(None, gate.wait, 30)
        try:
            await service.add_zone("wall", "keepout", WALL)
            await service.add_zone("slow", "speed_limit", WALL, 0.1)
            async with asyncio.timeout(60):
                assert (await service.navigate_to_point(at(10))).goal.state == ACTIVE
                plan = await service.plan_to_point(at(10))
                assert (await service.execute_plan(plan)).goal.state == ACTIVE
                assert (await service.get_costmap()).available
        finally:
            gate.set()
            await busy


async def test_goal_with_too_many_stops_and_zones_fails(service: FakeNavigation) -> None:
    for number in range(MAX_ITEMS):
        await service.add_zone(f"slow {number}", "speed_limit", WALL, 0.1)
    route = [Waypoint(position=at(number)) for number in range(1000)]
    status = await service.navigate_route(waypoints=route)
    assert status.goal.state == GoalState.GOAL_STATE_FAILED
    assert "use fewer stops at once" in status.goal.error.message


async def test_goal_suspended_during_planning_stays(
    service: FakeNavigation, clock: ManualClock
) -> None:
    await service.add_zone("wall", "keepout", WALL)
    with block_planner(service):
        asking = asyncio.ensure_future(service.navigate_to_point(at(10)))
        await run_others()
        await service.suspend()
    assert (await asking).goal.state == GoalState.GOAL_STATE_SUSPENDED
    await clock.advance(100)
    assert (await service.get_position()).pose.x == 0
    assert (await service.resume()).goal.progress.distance_remaining_m > 10


@pytest.mark.parametrize("end", ["stop", "close"])
async def test_stop_and_close_cancel_the_goal(
    service: FakeNavigation, clock: ManualClock, end: str
) -> None:
    waiting = asyncio.ensure_future(service.go_to_point(at(10)))
    await clock.advance(2)
    await getattr(service, end)()
    assert (await waiting).goal.state == GoalState.GOAL_STATE_CANCELED
    assert (await service.get_status())["is_moving"] is False


@pytest.mark.parametrize(
    ("geometry", "words"),
    [
        ({"type": "circle", "center": {"x": 0, "y": 0}}, '"radius" of the geometry of zone "z"'),
        ({"type": "circle", "center": {"x": 0, "y": 0}, "radius": -1}, "must be above 0"),
        ({"type": "circle", "center": {"x": 0}, "radius": 1}, 'an object with "x" and "y"'),
        (
            {"type": "circle", "center": {"x": 0, "y": 0}, "radius": 1, "r": 1},
            'the unknown field "r"',
        ),
        ({"type": "box", "center": {"x": 0, "y": 0}, "size": 3}, '"size" of the geometry'),
        ({"type": "polygon", "points": [{"x": 0, "y": 0}] * 2}, "a list of 3 to 64 points"),
        ({"type": "polygon", "points": [{"x": 0, "y": 0}] * 3}, "the same point twice"),
        (
            {"type": "polygon", "points": [{"x": 0, "y": 0}, {"x": 1, "y": 0}, {"x": 2, "y": 0}]},
            "has no area",
        ),
        ({"type": "polygon", "points": [{"x": 1e12, "y": 0}] * 3}, "more than 1000 km"),
        ({"type": "circle", "center": {"x": "a", "y": 0}, "radius": 1}, "is not a finite number"),
    ],
)
async def test_invalid_zone_is_refused(
    client: NavigationClient, geometry: Mapping[str, Any], words: str
) -> None:
    with refused() as told:
        await client.add_zone("z", "keepout", dict(geometry))
    assert told.status is GrpcStatus.INVALID_ARGUMENT
    assert words in told.words


async def test_costmap_shows_zones(client: NavigationClient) -> None:
    await client.add_zone("wall", "keepout", WALL)
    await client.add_zone("street", "speed_limit", {**WALL, "center": {"x": 5000, "y": 5000}}, 1)
    costs = await client.get_costmap()
    assert (costs.layer, costs.resolution, costs.nav_backend) == ("global", 0.1, "fake")
    assert (costs.origin_x, costs.origin_y) == (-1, -2)

    def cost(x: float, y: float) -> int:
        column = int((x - costs.origin_x) / costs.resolution)
        row = int((y - costs.origin_y) / costs.resolution)
        return costs.data[row * costs.width + column]

    assert [cost(5.05, 0.05), cost(5.05, 5.05), cost(0.05, 0.05)] == [100, 50, 0]
    await client.navigate_to_point(at(0.5))
    costs = await client.get_costmap(stride=4)
    assert (costs.layer, costs.width, costs.height) == ("local", 50, 50)

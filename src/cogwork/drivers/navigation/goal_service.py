"""The methods of a navigation service that drive a vehicle to goals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from viam.proto.service.navigation import (
    GetCostmapResponse,
    NavMode,
    Plan,
    Position,
    Properties,
    Status,
    Waypoint,
)

from cogwork.core.clock import Clock
from cogwork.core.errors import InvalidRequest
from cogwork.core.workers import Workers
from cogwork.drivers.navigation.coordinates import MapCoordinates
from cogwork.drivers.navigation.costmap import CostmapArea, build_costmap
from cogwork.drivers.navigation.footprint import Footprint
from cogwork.drivers.navigation.goal import ActiveRoute, Goal, to_positions
from cogwork.drivers.navigation.goal_executor import GoalExecutor
from cogwork.drivers.navigation.map_service import MapNavigation
from cogwork.drivers.navigation.map_store import MAX_WAYPOINTS, Destination, MapStore
from cogwork.drivers.navigation.planned_path import path_length
from cogwork.drivers.navigation.planner import Planner
from cogwork.drivers.navigation.vehicle import Vehicle
from cogwork.drivers.navigation.zones import KEEPOUT, Clearance
from cogwork.graph.name import ResourceName

LAYERS = ("auto", "local", "global")
DEFAULT_STRIDE = 2
MAX_STRIDE = 100
LOCAL_LAYER_MARGIN = 5.0
"""Meters around the machine that the local layer of the costmap shows."""
MAX_PLAN_POSITIONS = 10 * MAX_WAYPOINTS
"""Maximum positions of a plan's path."""
MIN_LOOP_LENGTH = 0.001
"""Minimum length of a lap, in meters."""


class GoalNavigation(MapNavigation):
    """Drives a vehicle. A newer goal replaces the current one.

    If no path to a goal is found, the goal fails and its status has the reason. Calls that only
    plan raise an error instead.
    """

    backend: ClassVar[str]
    """The name of the model, which is part of costmaps."""

    def __init__(
        self,
        name: ResourceName,
        vehicle: Vehicle,
        coordinates: MapCoordinates,
        footprint: Footprint,
        speed: float,
        clock: Clock,
        *,
        deviation: float = 0.0,
    ) -> None:
        """`speed` is the default speed in meters per second. `deviation` is the maximum distance of
        the vehicle from its path in meters."""
        super().__init__(name, MapStore(coordinates, Clearance(footprint.radius, deviation)))
        self._vehicle = vehicle
        self._coordinates = coordinates
        self._footprint = footprint
        self._speed = speed
        self._clock = clock
        display_name = f'navigation service "{name.name}"'
        self._workers = Workers(display_name, threads=2)
        self._planner = Planner(self._map, self._workers)
        self._executor = GoalExecutor(
            display_name, vehicle, self._planner, coordinates, clock, self.logger
        )

    async def zones_changed(self) -> None:
        await self._executor.replan()

    async def navigate_to_location(self, location_name: str, **_: Any) -> Status:
        return await self._navigate(self._map.resolve_location(location_name))

    async def navigate_to_point(self, destination: Position, **_: Any) -> Status:
        return await self._navigate(self._map.resolve_position(destination))

    async def navigate_route(
        self,
        route_name: str | None = None,
        waypoints: Sequence[Waypoint] | None = None,
        start_index: int = 0,
        start_nearest: bool = False,
        loop: bool = False,
        wait: bool = False,
        **_: Any,
    ) -> Status:
        route = self._resolve_route(route_name, waypoints, loop)
        stops = self._map.resolve_waypoints(route.waypoints)
        _check_route(stops, start_index, loop)
        goal = self._new_goal(NavMode.NAV_MODE_ROUTE, stops)
        goal.route = route
        goal.index = await self._nearest_index(stops) if start_nearest else start_index
        await self._executor.start(goal)
        if wait:
            await self._executor.wait_until_ended(goal)
        return await self._executor.status()

    async def plan_to_point(
        self, destination: Position, start: Position | None = None, **_: Any
    ) -> Plan:
        return await self._plan(self._map.resolve_position(destination), start)

    async def plan_to_location(
        self, location_name: str, start: Position | None = None, **_: Any
    ) -> Plan:
        return await self._plan(self._map.resolve_location(location_name), start)

    async def execute_plan(self, plan: Plan, **_: Any) -> Status:
        if not 0 < len(plan.path) <= MAX_PLAN_POSITIONS:
            raise InvalidRequest(
                f"the path of a plan must have 1 to {MAX_PLAN_POSITIONS} positions"
            )
        location = plan.location if plan.HasField("location") else None
        last = plan.path[-1]
        goal = self._new_goal(
            NavMode.NAV_MODE_PLANNED,
            [Destination(last, self._coordinates.parse_position(last), location)],
        )
        goal.given_path = [
            self._coordinates.parse_position(position).point for position in plan.path
        ]
        await self._executor.start(goal)
        return await self._executor.status()

    async def go_to_location(
        self,
        location_name: str,
        wait: bool | None = None,
        linear_m_per_sec: float | None = None,
        **_: Any,
    ) -> Status:
        return await self._go(self._map.resolve_location(location_name), wait, linear_m_per_sec)

    async def go_to_point(
        self,
        destination: Position,
        wait: bool | None = None,
        linear_m_per_sec: float | None = None,
        **_: Any,
    ) -> Status:
        return await self._go(self._map.resolve_position(destination), wait, linear_m_per_sec)

    async def suspend(self, reason: str = "", **_: Any) -> Status:
        await self._executor.suspend(reason)
        return await self._executor.status()

    async def resume(self, **_: Any) -> Status:
        await self._executor.resume()
        return await self._executor.status()

    async def cancel(self, **_: Any) -> Status:
        await self._executor.cancel()
        return await self._executor.status()

    async def get_position(self, **_: Any) -> Position:
        return self._coordinates.to_position(await self._vehicle.locate())

    async def get_navigation_status(self, **_: Any) -> Status:
        return await self._executor.status()

    async def get_properties(self, **_: Any) -> Properties:
        return Properties(
            map_type=self._coordinates.map_type,
            footprint_length_m=self._footprint.length,
            footprint_width_m=self._footprint.width,
            robot_radius_m=self._footprint.radius,
            planning_supported=True,
            costmap_supported=True,
            zones_supported=True,
            routes_supported=True,
        )

    async def get_costmap(self, layer: str = "", stride: int = 0, **_: Any) -> GetCostmapResponse:
        """Return the costmap; its origin is in meters from the origin of the map."""
        if (layer or "auto") not in LAYERS:
            raise InvalidRequest(f'unknown layer "{layer}"; use {", ".join(LAYERS)}')
        if not 0 <= stride <= MAX_STRIDE:
            raise InvalidRequest(f"a stride must be from 1 to {MAX_STRIDE}, not {stride}")
        selected = (
            ("local" if self._executor.is_moving else "global") if layer in ("", "auto") else layer
        )
        zones = self._map.zones.all()
        keepouts = [each.polygon for each in zones if each.type == KEEPOUT]
        slow = [each.polygon for each in zones if each.type != KEEPOUT]
        costmap = await self._workers.run(
            build_costmap,
            await self._costmap_area(selected),
            stride or DEFAULT_STRIDE,
            slow,
            keepouts,
        )
        return GetCostmapResponse(
            available=True,
            layer=selected,
            nav_backend=self.backend,
            origin_x=costmap.origin[0],
            origin_y=costmap.origin[1],
            resolution=costmap.resolution,
            width=costmap.width,
            height=costmap.height,
            encoding="uint8_row_major",
            data=costmap.data,
        )

    async def stop(self, **_: Any) -> None:
        await self._executor.cancel()

    async def close(self) -> None:
        try:
            await self._executor.cancel()
        finally:
            self._workers.close()

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {
            "is_moving": self._executor.is_moving,
            "locations": len(self._map.locations),
            "routes": len(self._map.routes),
            "zones": len(self._map.zones),
        }

    async def _navigate(self, stop: Destination) -> Status:
        await self._executor.start(self._new_goal(NavMode.NAV_MODE_PLANNED, [stop]))
        return await self._executor.status()

    async def _go(self, stop: Destination, wait: bool | None, speed: float | None) -> Status:
        if speed is not None and not 0 < speed < math.inf:
            raise InvalidRequest(f"a speed must be above 0 meters per second, not {speed:g}")
        goal = self._new_goal(NavMode.NAV_MODE_DIRECT, [stop])
        goal.speed = speed or goal.speed
        await self._executor.start(goal)
        if wait is None or wait:
            await self._executor.wait_until_ended(goal)
        return await self._executor.status()

    async def _plan(self, stop: Destination, start: Position | None) -> Plan:
        current = (
            await self._vehicle.locate()
            if start is None
            else self._coordinates.parse_position(start)
        )
        (leg,) = await self._planner.plan_legs(current.point, [stop.pose.point])
        path = [current.point, *leg]
        return Plan(
            path=to_positions(path, stop.pose.yaw, self._coordinates),
            location=stop.location,
            length_m=path_length(path),
        )

    def _new_goal(self, mode: NavMode.ValueType, stops: Sequence[Destination]) -> Goal:
        return Goal(mode, stops, self._speed, self._clock.time())

    def _resolve_route(
        self, route_name: str | None, waypoints: Sequence[Waypoint] | None, loop: bool
    ) -> ActiveRoute:
        if bool(route_name) == bool(waypoints):
            raise InvalidRequest("give either the name of a route or waypoints")
        if route_name:
            waypoints = list(self._map.routes.get(route_name).waypoints)
        return ActiveRoute(route_name or "", waypoints or (), loop)

    async def _nearest_index(self, stops: Sequence[Destination]) -> int:
        current = (await self._vehicle.locate()).point
        return min(range(len(stops)), key=lambda each: math.dist(stops[each].pose.point, current))

    async def _costmap_area(self, layer: str) -> CostmapArea:
        current = (await self._vehicle.locate()).point
        if layer == "local":
            return CostmapArea.around([current], LOCAL_LAYER_MARGIN)
        saved = [
            self._coordinates.parse_position(each.position).point
            for each in self._map.locations.all()
        ]
        boxes = [
            point
            for zone in self._map.zones.all()
            for point in (zone.polygon.low, zone.polygon.high)
        ]
        return CostmapArea.around([current, *saved, *boxes], 1.0)


def _check_route(stops: Sequence[Destination], start_index: int, loop: bool) -> None:
    if not stops:
        raise InvalidRequest("the route has no waypoints")
    if start_index >= len(stops):
        raise InvalidRequest(
            f"the route has no waypoint {start_index}: its waypoints are numbered 0 to "
            f"{len(stops) - 1}"
        )
    lap = [stop.pose.point for stop in (*stops, stops[0])]
    if loop and path_length(lap) < MIN_LOOP_LENGTH:
        raise InvalidRequest(
            "a route to a single location cannot loop: a lap must have at least "
            f"{MIN_LOOP_LENGTH * 1000:g} mm"
        )

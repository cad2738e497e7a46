"""A fake navigation service whose machine is a point that moves on an empty map."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from viam.proto.service.navigation import (
    GetCostmapResponse,
    Location,
    NavMode,
    Plan,
    Position,
    Properties,
    Route,
    Status,
    Waypoint,
)
from viam.proto.service.navigation import Zone as ZoneMessage
from viam.services.navigation import Navigation

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import InvalidRequest
from cogwork.core.workers import Workers
from cogwork.drivers.navigation.attributes import FakeNavigationAttributes
from cogwork.drivers.navigation.coordinates import GpsCoordinates, LocalCoordinates, MapCoordinates
from cogwork.drivers.navigation.costmap import CostmapArea, build_costmap
from cogwork.drivers.navigation.goal import ActiveRoute, Goal, to_positions
from cogwork.drivers.navigation.goal_executor import GoalExecutor
from cogwork.drivers.navigation.map_store import MAX_WAYPOINTS, Destination, MapStore
from cogwork.drivers.navigation.planning import path_length
from cogwork.drivers.navigation.zones import KEEPOUT, check_zone_type
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of
from cogwork.spatial import geodesy

LAYERS = ("auto", "local", "global")
DEFAULT_STRIDE = 2
MAX_STRIDE = 100
LOCAL_LAYER_MARGIN = 5.0
"""Meters around the machine that the local layer of the costmap shows."""
MAX_PLAN_POSITIONS = 10 * MAX_WAYPOINTS
"""Maximum positions of a plan's path."""
MIN_LOOP_LENGTH = 0.001
"""Minimum length of a lap, in meters."""


class FakeNavigation(Navigation):
    """A fake navigation service. A newer goal replaces the current one.

    A goal without a path fails with the reason; calls that only plan raise an error.
    """

    def __init__(
        self, name: ResourceName, attributes: FakeNavigationAttributes, clock: Clock
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._clock = clock
        self._coordinates = _make_coordinates(attributes)
        self._map = MapStore(self._coordinates, self._radius)
        display_name = f'navigation service "{name.name}"'
        self._workers = Workers(display_name, threads=2)
        self._executor = GoalExecutor(
            display_name, self._map, attributes.localized, clock, self._workers
        )

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeNavigationAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeNavigation:
        del dependencies
        return cls(name, attributes, clock or SystemClock())

    async def add_location(
        self, location_name: str, position: Position | None = None, **_: Any
    ) -> Location:
        current = await self.get_position() if position is None else position
        return self._map.add_location(location_name, current)

    async def get_location(self, location_name: str, **_: Any) -> Location:
        return self._map.locations.get(location_name)

    async def list_locations(self, **_: Any) -> list[Location]:
        return self._map.locations.all()

    async def update_location(
        self,
        location_name: str,
        position: Position | None = None,
        new_name: str | None = None,
        **_: Any,
    ) -> Location:
        return self._map.update_location(location_name, position, new_name)

    async def delete_location(self, location_name: str, **_: Any) -> None:
        self._map.locations.remove(location_name)

    async def add_route(
        self, route_name: str, waypoints: Sequence[Waypoint] | None = None, **_: Any
    ) -> Route:
        return self._map.add_route(route_name, waypoints or ())

    async def get_route(self, route_name: str, **_: Any) -> Route:
        return self._map.routes.get(route_name)

    async def list_routes(self, **_: Any) -> list[Route]:
        return self._map.routes.all()

    async def update_route(
        self,
        route_name: str,
        new_name: str | None = None,
        waypoints: Sequence[Waypoint] | None = None,
        **_: Any,
    ) -> Route:
        return self._map.update_route(route_name, new_name, waypoints)

    async def delete_route(self, route_name: str, **_: Any) -> None:
        self._map.routes.remove(route_name)

    async def add_zone(
        self,
        zone_name: str,
        type: str,  # noqa: A002 - the SDK's name for it
        geometry: Mapping[str, Any],
        max_speed: float | None = None,
        **_: Any,
    ) -> ZoneMessage:
        zone = self._map.add_zone(zone_name, type, geometry, max_speed)
        await self._executor.replan()
        return zone.message

    async def get_zone(self, zone_name: str, **_: Any) -> ZoneMessage:
        return self._map.zones.get(zone_name).message

    async def list_zones(
        self,
        type: str | None = None,  # noqa: A002 - the SDK's name for it
        **_: Any,
    ) -> list[ZoneMessage]:
        if type is not None:
            check_zone_type(type)
        return [each.message for each in self._map.zones.all() if type in (None, each.type)]

    async def update_zone(
        self,
        zone_name: str,
        type: str | None = None,  # noqa: A002 - the SDK's name for it
        geometry: Mapping[str, Any] | None = None,
        max_speed: float | None = None,
        new_name: str | None = None,
        **_: Any,
    ) -> ZoneMessage:
        zone = self._map.update_zone(zone_name, type, geometry, max_speed, new_name)
        await self._executor.replan()
        return zone.message

    async def delete_zone(self, zone_name: str, **_: Any) -> None:
        self._map.zones.remove(zone_name)
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
        goal.index = self._nearest_index(stops) if start_nearest else start_index
        await self._executor.start(goal)
        if wait:
            await self._executor.wait_until_ended(goal)
        return self._executor.status()

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
        goal.path = [self._coordinates.parse_position(position).point for position in plan.path]
        await self._executor.start(goal)
        return self._executor.status()

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
        self._executor.suspend(reason)
        return self._executor.status()

    async def resume(self, **_: Any) -> Status:
        await self._executor.resume()
        return self._executor.status()

    async def cancel(self, **_: Any) -> Status:
        self._executor.cancel()
        return self._executor.status()

    async def get_position(self, **_: Any) -> Position:
        return self._coordinates.to_position(self._executor.pose)

    async def get_navigation_status(self, **_: Any) -> Status:
        return self._executor.status()

    async def get_properties(self, **_: Any) -> Properties:
        return Properties(
            map_type=self._coordinates.map_type,
            footprint_length_m=self._attributes.footprint_length_m,
            footprint_width_m=self._attributes.footprint_width_m,
            robot_radius_m=self._radius,
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
            build_costmap, self._costmap_area(selected), stride or DEFAULT_STRIDE, slow, keepouts
        )
        return GetCostmapResponse(
            available=True,
            layer=selected,
            nav_backend="fake",
            origin_x=costmap.origin[0],
            origin_y=costmap.origin[1],
            resolution=costmap.resolution,
            width=costmap.width,
            height=costmap.height,
            encoding="uint8_row_major",
            data=costmap.data,
        )

    async def stop(self, **_: Any) -> None:
        self._executor.cancel()

    async def close(self) -> None:
        await self._executor.close()
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
        return self._executor.status()

    async def _go(self, stop: Destination, wait: bool | None, speed: float | None) -> Status:
        if speed is not None and not 0 < speed < math.inf:
            raise InvalidRequest(f"a speed must be above 0 meters per second, not {speed:g}")
        goal = self._new_goal(NavMode.NAV_MODE_DIRECT, [stop])
        goal.speed = speed or goal.speed
        await self._executor.start(goal)
        if wait is None or wait:
            await self._executor.wait_until_ended(goal)
        return self._executor.status()

    async def _plan(self, stop: Destination, start: Position | None) -> Plan:
        current = self._executor.pose if start is None else self._coordinates.parse_position(start)
        (leg,) = await self._executor.plan_legs(current.point, [stop.pose.point])
        path = [current.point, *leg]
        return Plan(
            path=to_positions(path, stop.pose.yaw, self._coordinates),
            location=stop.location,
            length_m=path_length(path),
        )

    def _new_goal(self, mode: NavMode.ValueType, stops: Sequence[Destination]) -> Goal:
        return Goal(mode, stops, self._attributes.linear_m_per_sec, self._clock.time())

    def _resolve_route(
        self, route_name: str | None, waypoints: Sequence[Waypoint] | None, loop: bool
    ) -> ActiveRoute:
        if bool(route_name) == bool(waypoints):
            raise InvalidRequest("give either the name of a route or waypoints")
        if route_name:
            waypoints = list(self._map.routes.get(route_name).waypoints)
        return ActiveRoute(route_name or "", waypoints or (), loop)

    def _nearest_index(self, stops: Sequence[Destination]) -> int:
        current = self._executor.pose.point
        return min(range(len(stops)), key=lambda each: math.dist(stops[each].pose.point, current))

    def _costmap_area(self, layer: str) -> CostmapArea:
        current = self._executor.pose.point
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

    @property
    def _radius(self) -> float:
        """The radius of the circle around the footprint."""
        return (
            math.hypot(self._attributes.footprint_length_m, self._attributes.footprint_width_m) / 2
        )


def _make_coordinates(attributes: FakeNavigationAttributes) -> MapCoordinates:
    if attributes.map_type == "gps":
        return GpsCoordinates(geodesy.GeoCoordinate(attributes.latitude, attributes.longitude))
    return LocalCoordinates()


def _check_route(stops: Sequence[Destination], start_index: int, loop: bool) -> None:
    if not stops:
        raise InvalidRequest("the route has no waypoints")
    if start_index >= len(stops):
        raise InvalidRequest(
            f"the route has no waypoint {start_index}: they are numbered 0 to {len(stops) - 1}"
        )
    lap = [stop.pose.point for stop in (*stops, stops[0])]
    if loop and path_length(lap) < MIN_LOOP_LENGTH:
        raise InvalidRequest(
            "a route to a single location cannot loop: a lap must have at least "
            f"{MIN_LOOP_LENGTH * 1000:g} mm"
        )

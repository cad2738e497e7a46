"""A navigation service whose machine is a point on an empty map, and moves there in time."""

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
from cogwork.drivers.navigation.atlas import MOST_WAYPOINTS, Atlas, Stop
from cogwork.drivers.navigation.attributes import FakeNavigationAttributes
from cogwork.drivers.navigation.chart import Chart, GpsChart, LocalChart
from cogwork.drivers.navigation.costmap import Area, drawn
from cogwork.drivers.navigation.goal import Goal, Tour, written
from cogwork.drivers.navigation.pilot import Pilot
from cogwork.drivers.navigation.planning import length
from cogwork.drivers.navigation.zones import KEEPOUT, check_kind
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of
from cogwork.spatial import earth

LAYERS = ("auto", "local", "global")
USUAL_STRIDE = 2
MOST_STRIDE = 100
NEARBY = 5.0
"""Metres to each side that the local layer of the costmap shows."""
MOST_OF_A_PLAN = 10 * MOST_WAYPOINTS
"""Positions on its path."""
SHORTEST_LOOP = 0.001
"""Metres once around."""


class FakeNavigation(Navigation):
    """The newest goal has the machine. A goal with no way to it fails and says why; calls that only
    look for a way are refused."""

    def __init__(
        self, name: ResourceName, attributes: FakeNavigationAttributes, clock: Clock
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._clock = clock
        self._chart = _chart(attributes)
        self._atlas = Atlas(self._chart, self._radius)
        called = f'navigation service "{name.name}"'
        self._workers = Workers(called, threads=2)
        self._pilot = Pilot(called, self._atlas, attributes.localized, clock, self._workers)

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
        here = await self.get_position() if position is None else position
        return self._atlas.add_location(location_name, here)

    async def get_location(self, location_name: str, **_: Any) -> Location:
        return self._atlas.locations.get(location_name)

    async def list_locations(self, **_: Any) -> list[Location]:
        return self._atlas.locations.all()

    async def update_location(
        self,
        location_name: str,
        position: Position | None = None,
        new_name: str | None = None,
        **_: Any,
    ) -> Location:
        return self._atlas.update_location(location_name, position, new_name)

    async def delete_location(self, location_name: str, **_: Any) -> None:
        self._atlas.locations.remove(location_name)

    async def add_route(
        self, route_name: str, waypoints: Sequence[Waypoint] | None = None, **_: Any
    ) -> Route:
        return self._atlas.add_route(route_name, waypoints or ())

    async def get_route(self, route_name: str, **_: Any) -> Route:
        return self._atlas.routes.get(route_name)

    async def list_routes(self, **_: Any) -> list[Route]:
        return self._atlas.routes.all()

    async def update_route(
        self,
        route_name: str,
        new_name: str | None = None,
        waypoints: Sequence[Waypoint] | None = None,
        **_: Any,
    ) -> Route:
        return self._atlas.update_route(route_name, new_name, waypoints)

    async def delete_route(self, route_name: str, **_: Any) -> None:
        self._atlas.routes.remove(route_name)

    async def add_zone(
        self,
        zone_name: str,
        type: str,  # noqa: A002 - the SDK's name for it
        geometry: Mapping[str, Any],
        max_speed: float | None = None,
        **_: Any,
    ) -> ZoneMessage:
        zone = self._atlas.add_zone(zone_name, type, geometry, max_speed)
        await self._pilot.mind_zones()
        return zone.message

    async def get_zone(self, zone_name: str, **_: Any) -> ZoneMessage:
        return self._atlas.zones.get(zone_name).message

    async def list_zones(
        self,
        type: str | None = None,  # noqa: A002 - the SDK's name for it
        **_: Any,
    ) -> list[ZoneMessage]:
        if type is not None:
            check_kind(type)
        return [each.message for each in self._atlas.zones.all() if type in (None, each.type)]

    async def update_zone(
        self,
        zone_name: str,
        type: str | None = None,  # noqa: A002 - the SDK's name for it
        geometry: Mapping[str, Any] | None = None,
        max_speed: float | None = None,
        new_name: str | None = None,
        **_: Any,
    ) -> ZoneMessage:
        zone = self._atlas.update_zone(zone_name, type, geometry, max_speed, new_name)
        await self._pilot.mind_zones()
        return zone.message

    async def delete_zone(self, zone_name: str, **_: Any) -> None:
        self._atlas.zones.remove(zone_name)
        await self._pilot.mind_zones()

    async def navigate_to_location(self, location_name: str, **_: Any) -> Status:
        return await self._navigate(self._atlas.stop_at(location_name))

    async def navigate_to_point(self, destination: Position, **_: Any) -> Status:
        return await self._navigate(self._atlas.stop(destination))

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
        tour = self._tour(route_name, waypoints, loop)
        stops = self._atlas.stops(tour.waypoints)
        _check_tour(stops, start_index, loop)
        goal = self._goal(NavMode.NAV_MODE_ROUTE, stops)
        goal.tour = tour
        goal.index = self._nearest(stops) if start_nearest else start_index
        await self._pilot.begin(goal)
        if wait:
            await self._pilot.arrived(goal)
        return self._pilot.status()

    async def plan_to_point(
        self, destination: Position, start: Position | None = None, **_: Any
    ) -> Plan:
        return await self._plan(self._atlas.stop(destination), start)

    async def plan_to_location(
        self, location_name: str, start: Position | None = None, **_: Any
    ) -> Plan:
        return await self._plan(self._atlas.stop_at(location_name), start)

    async def execute_plan(self, plan: Plan, **_: Any) -> Status:
        if not 0 < len(plan.path) <= MOST_OF_A_PLAN:
            raise InvalidRequest(f"a plan has a path of 1 to {MOST_OF_A_PLAN} positions")
        location = plan.location if plan.HasField("location") else None
        last = plan.path[-1]
        goal = self._goal(NavMode.NAV_MODE_PLANNED, [Stop(last, self._chart.read(last), location)])
        goal.path = [self._chart.read(position).spot for position in plan.path]
        await self._pilot.begin(goal)
        return self._pilot.status()

    async def go_to_location(
        self,
        location_name: str,
        wait: bool | None = None,
        linear_m_per_sec: float | None = None,
        **_: Any,
    ) -> Status:
        return await self._go(self._atlas.stop_at(location_name), wait, linear_m_per_sec)

    async def go_to_point(
        self,
        destination: Position,
        wait: bool | None = None,
        linear_m_per_sec: float | None = None,
        **_: Any,
    ) -> Status:
        return await self._go(self._atlas.stop(destination), wait, linear_m_per_sec)

    async def suspend(self, reason: str = "", **_: Any) -> Status:
        self._pilot.suspend(reason)
        return self._pilot.status()

    async def resume(self, **_: Any) -> Status:
        await self._pilot.resume()
        return self._pilot.status()

    async def cancel(self, **_: Any) -> Status:
        self._pilot.cancel()
        return self._pilot.status()

    async def get_position(self, **_: Any) -> Position:
        return self._chart.write(self._pilot.place)

    async def get_navigation_status(self, **_: Any) -> Status:
        return self._pilot.status()

    async def get_properties(self, **_: Any) -> Properties:
        return Properties(
            map_type=self._chart.map_type,
            footprint_length_m=self._attributes.footprint_length_m,
            footprint_width_m=self._attributes.footprint_width_m,
            robot_radius_m=self._radius,
            planning_supported=True,
            costmap_supported=True,
            zones_supported=True,
            routes_supported=True,
        )

    async def get_costmap(self, layer: str = "", stride: int = 0, **_: Any) -> GetCostmapResponse:
        """Its origin is in metres from where the map begins."""
        if (layer or "auto") not in LAYERS:
            raise InvalidRequest(f'"{layer}" is no layer; there are {", ".join(LAYERS)}')
        if not 0 <= stride <= MOST_STRIDE:
            raise InvalidRequest(f"a stride is from 1 to {MOST_STRIDE}, not {stride}")
        shown = ("local" if self._pilot.is_moving else "global") if layer in ("", "auto") else layer
        zones = self._atlas.zones.all()
        keepouts = [each.outline for each in zones if each.type == KEEPOUT]
        slow = [each.outline for each in zones if each.type != KEEPOUT]
        costs = await self._workers.run(
            drawn, self._area(shown), stride or USUAL_STRIDE, slow, keepouts
        )
        return GetCostmapResponse(
            available=True,
            layer=shown,
            nav_backend="fake",
            origin_x=costs.origin[0],
            origin_y=costs.origin[1],
            resolution=costs.resolution,
            width=costs.width,
            height=costs.height,
            encoding="uint8_row_major",
            data=costs.data,
        )

    async def stop(self, **_: Any) -> None:
        self._pilot.cancel()

    async def close(self) -> None:
        await self._pilot.close()
        self._workers.close()

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {
            "is_moving": self._pilot.is_moving,
            "locations": len(self._atlas.locations),
            "routes": len(self._atlas.routes),
            "zones": len(self._atlas.zones),
        }

    async def _navigate(self, stop: Stop) -> Status:
        await self._pilot.begin(self._goal(NavMode.NAV_MODE_PLANNED, [stop]))
        return self._pilot.status()

    async def _go(self, stop: Stop, wait: bool | None, speed: float | None) -> Status:
        if speed is not None and not 0 < speed < math.inf:
            raise InvalidRequest(f"a speed is above 0 metres per second, not {speed:g}")
        goal = self._goal(NavMode.NAV_MODE_DIRECT, [stop])
        goal.speed = speed or goal.speed
        await self._pilot.begin(goal)
        if wait is None or wait:
            await self._pilot.arrived(goal)
        return self._pilot.status()

    async def _plan(self, stop: Stop, start: Position | None) -> Plan:
        here = self._pilot.place if start is None else self._chart.read(start)
        (leg,) = await self._pilot.way(here.spot, [stop.place.spot])
        path = [here.spot, *leg]
        return Plan(
            path=written(path, stop.place.yaw, self._chart),
            location=stop.location,
            length_m=length(path),
        )

    def _goal(self, mode: NavMode.ValueType, stops: Sequence[Stop]) -> Goal:
        return Goal(mode, stops, self._attributes.linear_m_per_sec, self._clock.time())

    def _tour(
        self, route_name: str | None, waypoints: Sequence[Waypoint] | None, loop: bool
    ) -> Tour:
        if bool(route_name) == bool(waypoints):
            raise InvalidRequest("give either the name of a route or waypoints of its own")
        if route_name:
            waypoints = list(self._atlas.routes.get(route_name).waypoints)
        return Tour(route_name or "", waypoints or (), loop)

    def _nearest(self, stops: Sequence[Stop]) -> int:
        here = self._pilot.place.spot
        return min(range(len(stops)), key=lambda each: math.dist(stops[each].place.spot, here))

    def _area(self, layer: str) -> Area:
        here = self._pilot.place.spot
        if layer == "local":
            return Area.around([here], NEARBY)
        saved = [self._chart.read(each.position).spot for each in self._atlas.locations.all()]
        boxes = [
            spot
            for zone in self._atlas.zones.all()
            for spot in (zone.outline.low, zone.outline.high)
        ]
        return Area.around([here, *saved, *boxes], 1.0)

    @property
    def _radius(self) -> float:
        """Of the circle around it."""
        return (
            math.hypot(self._attributes.footprint_length_m, self._attributes.footprint_width_m) / 2
        )


def _chart(attributes: FakeNavigationAttributes) -> Chart:
    if attributes.map_type == "gps":
        return GpsChart(earth.Spot(attributes.latitude, attributes.longitude))
    return LocalChart()


def _check_tour(stops: Sequence[Stop], start_index: int, loop: bool) -> None:
    if not stops:
        raise InvalidRequest("the route has no waypoints")
    if start_index >= len(stops):
        raise InvalidRequest(
            f"the route has no waypoint {start_index}: they are counted from 0 to {len(stops) - 1}"
        )
    around = [stop.place.spot for stop in (*stops, stops[0])]
    if loop and length(around) < SHORTEST_LOOP:
        raise InvalidRequest(
            "a route to a single place cannot be gone around and around: once around is "
            f"{SHORTEST_LOOP * 1000:g} mm at least"
        )

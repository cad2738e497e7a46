"""What is known of the map: the locations, routes and zones that clients saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from viam.proto.service.navigation import Location, Position, Route, Waypoint

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.navigation.chart import Chart, Place
from cogwork.drivers.navigation.planning import Keepout
from cogwork.drivers.navigation.shelf import Shelf
from cogwork.drivers.navigation.trip import SpeedLimit
from cogwork.drivers.navigation.zones import KEEPOUT, Zone, zone

MOST_WAYPOINTS = 1000


@dataclass(frozen=True, slots=True)
class Stop:
    """Somewhere to go."""

    position: Position
    place: Place
    location: str | None = None
    """What it is called, if it is saved."""


class Atlas:
    def __init__(self, chart: Chart, apart: float) -> None:
        """`apart`: the metres to stay away from what is to be kept out of."""
        self.chart = chart
        self._apart = apart
        self.locations = Shelf[Location]("location")
        self.routes = Shelf[Route]("route")
        self.zones = Shelf[Zone]("zone")

    def add_location(self, name: str, position: Position) -> Location:
        self.chart.read(position)
        return self.locations.add(name, Location(name=name, position=position))

    def update_location(
        self, name: str, position: Position | None, new_name: str | None
    ) -> Location:
        """Routes find it by its new name."""
        before = self.locations.get(name)
        if position is not None:
            self.chart.read(position)
        called = name if new_name is None else new_name
        location = Location(name=called, position=position or before.position)
        self.locations.replace(name, called, location)
        for route in self.routes.all():
            for waypoint in route.waypoints:
                if waypoint.location == name:
                    waypoint.location = called
        return location

    def add_route(self, name: str, waypoints: Sequence[Waypoint]) -> Route:
        self.stops(waypoints)
        return self.routes.add(name, Route(name=name, waypoints=waypoints))

    def update_route(
        self, name: str, new_name: str | None, waypoints: Sequence[Waypoint] | None
    ) -> Route:
        before = self.routes.get(name)
        if waypoints is not None:
            self.stops(waypoints)
        called = name if new_name is None else new_name
        kept = before.waypoints if waypoints is None else waypoints
        return self.routes.replace(name, called, Route(name=called, waypoints=kept))

    def add_zone(
        self, name: str, kind: str, geometry: Mapping[str, Any], max_speed: float | None
    ) -> Zone:
        added = zone(name, kind, geometry, max_speed, self.chart, self._apart)
        return self.zones.add(name, added)

    def update_zone(
        self,
        name: str,
        kind: str | None,
        geometry: Mapping[str, Any] | None,
        max_speed: float | None,
        new_name: str | None,
    ) -> Zone:
        before = self.zones.get(name)
        called = name if new_name is None else new_name
        after = zone(
            called,
            before.type if kind is None else kind,
            before.geometry if geometry is None else geometry,
            before.max_speed if max_speed is None else max_speed,
            self.chart,
            self._apart,
        )
        return self.zones.replace(name, called, after)

    def stop(self, position: Position) -> Stop:
        return Stop(position, self.chart.read(position))

    def stop_at(self, location: str) -> Stop:
        position = self.locations.get(location).position
        return Stop(position, self.chart.read(position), location)

    def stops(self, waypoints: Sequence[Waypoint]) -> list[Stop]:
        if len(waypoints) > MOST_WAYPOINTS:
            raise InvalidRequest(f"a route has at most {MOST_WAYPOINTS} waypoints")
        return [self._stop(number, each) for number, each in enumerate(waypoints)]

    def keepouts(self) -> list[Keepout]:
        return [Keepout(each.name, each.kept) for each in self.zones.all() if each.type == KEEPOUT]

    def speed_limits(self) -> list[SpeedLimit]:
        return [
            SpeedLimit(each.outline, each.max_speed)
            for each in self.zones.all()
            if each.type != KEEPOUT and each.max_speed is not None
        ]

    def _stop(self, number: int, waypoint: Waypoint) -> Stop:
        match waypoint.WhichOneof("value"):
            case "location":
                return self.stop_at(waypoint.location)
            case "position":
                return self.stop(waypoint.position)
        raise InvalidRequest(f"waypoint {number} is neither a location nor a position")

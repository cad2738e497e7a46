"""The locations, routes and zones that clients saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from viam.proto.service.navigation import Location, Position, Route, Waypoint

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.navigation.coordinates import MapCoordinates, MapPose
from cogwork.drivers.navigation.named_store import NamedStore
from cogwork.drivers.navigation.planned_path import SpeedLimit
from cogwork.drivers.navigation.planning import Keepout
from cogwork.drivers.navigation.zones import KEEPOUT, Clearance, Zone, make_zone

MAX_WAYPOINTS = 1000


@dataclass(frozen=True, slots=True)
class Destination:
    """A resolved destination."""

    position: Position
    pose: MapPose
    location: str | None = None
    """The name of the location, if it is saved."""


class MapStore:
    def __init__(self, coordinates: MapCoordinates, clearance: Clearance) -> None:
        self.coordinates = coordinates
        self._clearance = clearance
        self.locations = NamedStore[Location]("location")
        self.routes = NamedStore[Route]("route")
        self.zones = NamedStore[Zone]("zone")

    def add_location(self, name: str, position: Position) -> Location:
        self.coordinates.parse_position(position)
        return self.locations.add(name, Location(name=name, position=position))

    def update_location(
        self, name: str, position: Position | None, new_name: str | None
    ) -> Location:
        """Update a location. If it gets a new name, update the routes that use it."""
        before = self.locations.get(name)
        if position is not None:
            self.coordinates.parse_position(position)
        stored_name = name if new_name is None else new_name
        location = Location(name=stored_name, position=position or before.position)
        self.locations.replace(name, stored_name, location)
        for route in self.routes.all():
            for waypoint in route.waypoints:
                if waypoint.location == name:
                    waypoint.location = stored_name
        return location

    def add_route(self, name: str, waypoints: Sequence[Waypoint]) -> Route:
        self.resolve_waypoints(waypoints)
        return self.routes.add(name, Route(name=name, waypoints=waypoints))

    def update_route(
        self, name: str, new_name: str | None, waypoints: Sequence[Waypoint] | None
    ) -> Route:
        before = self.routes.get(name)
        if waypoints is not None:
            self.resolve_waypoints(waypoints)
        stored_name = name if new_name is None else new_name
        new_waypoints = before.waypoints if waypoints is None else waypoints
        return self.routes.replace(
            name, stored_name, Route(name=stored_name, waypoints=new_waypoints)
        )

    def add_zone(
        self, name: str, kind: str, geometry: Mapping[str, Any], max_speed: float | None
    ) -> Zone:
        zone = make_zone(name, kind, geometry, max_speed, self.coordinates, self._clearance)
        return self.zones.add(name, zone)

    def update_zone(
        self,
        name: str,
        kind: str | None,
        geometry: Mapping[str, Any] | None,
        max_speed: float | None,
        new_name: str | None,
    ) -> Zone:
        before = self.zones.get(name)
        stored_name = name if new_name is None else new_name
        after = make_zone(
            stored_name,
            before.type if kind is None else kind,
            before.geometry if geometry is None else geometry,
            before.max_speed if max_speed is None else max_speed,
            self.coordinates,
            self._clearance,
        )
        return self.zones.replace(name, stored_name, after)

    def resolve_position(self, position: Position) -> Destination:
        return Destination(position, self.coordinates.parse_position(position))

    def resolve_location(self, location: str) -> Destination:
        position = self.locations.get(location).position
        return Destination(position, self.coordinates.parse_position(position), location)

    def resolve_waypoints(self, waypoints: Sequence[Waypoint]) -> list[Destination]:
        if len(waypoints) > MAX_WAYPOINTS:
            raise InvalidRequest(f"a route has at most {MAX_WAYPOINTS} waypoints")
        return [self._resolve_waypoint(number, each) for number, each in enumerate(waypoints)]

    def keepouts(self) -> list[Keepout]:
        return [each.keepout for each in self.zones.all() if each.type == KEEPOUT]

    def speed_limits(self) -> list[SpeedLimit]:
        return [
            SpeedLimit(each.polygon, each.max_speed)
            for each in self.zones.all()
            if each.type != KEEPOUT and each.max_speed is not None
        ]

    def _resolve_waypoint(self, number: int, waypoint: Waypoint) -> Destination:
        match waypoint.WhichOneof("value"):
            case "location":
                return self.resolve_location(waypoint.location)
            case "position":
                return self.resolve_position(waypoint.position)
        raise InvalidRequest(f"waypoint {number} is neither a location nor a position")

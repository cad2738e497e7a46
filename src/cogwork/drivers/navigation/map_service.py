"""The methods of a navigation service that keep locations, routes and zones."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any

from viam.proto.service.navigation import Location, Position, Route, Waypoint
from viam.proto.service.navigation import Zone as ZoneMessage
from viam.services.navigation import Navigation

from cogwork.drivers.navigation.map_store import MapStore
from cogwork.drivers.navigation.zones import check_zone_type
from cogwork.graph.name import ResourceName
from cogwork.resource.model import logger_of


class MapNavigation(Navigation):
    """Keeps everything in memory, until the service is closed."""

    def __init__(self, name: ResourceName, map_store: MapStore) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._map = map_store

    @abc.abstractmethod
    async def zones_changed(self) -> None:
        """Plan the current goal again after the zones of the map have changed."""

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
        await self.zones_changed()
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
        await self.zones_changed()
        return zone.message

    async def delete_zone(self, zone_name: str, **_: Any) -> None:
        self._map.zones.remove(zone_name)
        await self.zones_changed()

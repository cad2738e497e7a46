"""A navigation service that drives any base with the positions of any movement sensor."""

from __future__ import annotations

from viam.components.base import Base

from cogwork.core.clock import Clock, SystemClock
from cogwork.drivers.navigation.attributes import BuiltinNavigationAttributes
from cogwork.drivers.navigation.base_vehicle import BaseVehicle, FollowSettings
from cogwork.drivers.navigation.coordinates import GpsCoordinates, LocalCoordinates
from cogwork.drivers.navigation.footprint import Footprint
from cogwork.drivers.navigation.goal_service import GoalNavigation
from cogwork.drivers.navigation.sensor_locator import SensorLocator
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.machine_access import MachineAccess
from cogwork.resource.model import find_dependency, logger_of
from cogwork.spatial.geodesy import GeoCoordinate


class BuiltinNavigation(GoalNavigation):
    """Plans paths around keepout zones. It does not detect obstacles."""

    backend = "builtin"

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: BuiltinNavigationAttributes,
        dependencies: Dependencies,
        machine: MachineAccess,
        clock: Clock | None = None,
    ) -> BuiltinNavigation:
        clock = clock or SystemClock()
        sensor = find_dependency(dependencies, attributes.movement_sensor)
        locator = await SensorLocator.new(
            attributes.movement_sensor, sensor, _configured_origin(attributes), clock
        )
        base: Base = find_dependency(dependencies, attributes.base)
        base_name = next(each for each, resource in dependencies.items() if resource is base)
        settings = FollowSettings(
            attributes.degs_per_sec,
            attributes.plan_deviation_m,
            1 / attributes.position_polling_frequency_hz,
        )
        return cls(
            name,
            BaseVehicle(base_name, base, locator, settings, machine, clock, logger_of(name), name),
            LocalCoordinates()
            if attributes.map_type == "local"
            else GpsCoordinates(locator.origin),
            Footprint(attributes.footprint_length_m, attributes.footprint_width_m),
            attributes.meters_per_sec,
            clock,
            deviation=attributes.plan_deviation_m,
        )


def _configured_origin(attributes: BuiltinNavigationAttributes) -> GeoCoordinate | None:
    if attributes.origin is None:
        return None
    return GeoCoordinate(attributes.origin.latitude, attributes.origin.longitude)

from __future__ import annotations

import math

import pytest
from tests.support.machine.served import Serve
from viam.proto.common import GeoPoint, GeoPose, Orientation, Pose
from viam.proto.service.navigation import MapType, Position
from viam.services.navigation.client import NavigationClient

from cogwork.core.clock import ManualClock
from cogwork.drivers.navigation.attributes import FakeNavigationAttributes
from cogwork.drivers.navigation.fake import FakeNavigation
from cogwork.drivers.navigation.vehicle import NotLocalized
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:service:navigation/n")


async def test_position_moves_in_a_straight_line(clock: ManualClock) -> None:
    service = await FakeNavigation.new(NAME, FakeNavigationAttributes(), {}, clock)
    await service.navigate_to_point(Position(pose=Pose(x=3000, y=4000)))
    await clock.advance(2)
    pose = (await service.get_position()).pose
    assert (pose.x, pose.y) == pytest.approx((600, 800))
    assert pose.theta == pytest.approx(math.degrees(math.atan2(4, 3)))
    await service.close()


async def test_unlocalized_service_does_not_move(clock: ManualClock) -> None:
    attributes = FakeNavigationAttributes(localized=False)
    service = await FakeNavigation.new(NAME, attributes, {}, clock)
    assert not (await service.get_navigation_status()).localized
    with pytest.raises(NotLocalized, match="does not know where it is"):
        await service.navigate_to_point(Position(pose=Pose(x=1000)))
    await service.close()


@pytest.mark.parametrize(
    ("pose", "heading"),
    [
        (GeoPose(heading=30), 30),
        (GeoPose(orientation_vector=Orientation(o_z=1, theta=-30)), 30),
        (GeoPose(), 0),
    ],
)
async def test_goal_on_a_gps_map_is_reached(
    clock: ManualClock, serve: Serve, pose: GeoPose, heading: float
) -> None:
    attributes = FakeNavigationAttributes(
        map_type="gps", latitude=48, longitude=11, linear_m_per_sec=10
    )
    service = await FakeNavigation.new(NAME, attributes, {}, clock)
    pose.location.CopyFrom(GeoPoint(latitude=48.001, longitude=11))
    async with serve(service) as channel:
        client = NavigationClient("n", channel)
        assert (await client.get_properties()).map_type == MapType.MAP_TYPE_GPS
        status = await client.navigate_to_point(Position(geo_pose=pose))
        assert status.goal.progress.length_m == pytest.approx(111.2, abs=0.1)
        await clock.advance(60)
        here = (await client.get_position()).geo_pose
    assert (here.location.latitude, here.location.longitude) == pytest.approx((48.001, 11))
    assert math.remainder(here.heading - heading, 360) == pytest.approx(0, abs=1e-6)

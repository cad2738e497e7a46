from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import ValidationError
from tests.support.machine.served import Serve
from viam.components.base import Vector3
from viam.components.movement_sensor import GeoPoint
from viam.components.movement_sensor.client import MovementSensorClient
from viam.gen.common.v1.common_pb2 import GetReadingsRequest

from cogwork.core.clock import ManualClock
from cogwork.core.errors import Unsupported
from cogwork.drivers.base.attributes import FakeBaseAttributes
from cogwork.drivers.base.fake import FakeBase
from cogwork.drivers.movement_sensor.attributes import FakeMovementSensorAttributes
from cogwork.drivers.movement_sensor.fake import FakeMovementSensor
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:movement_sensor/s")
BASE = ResourceName.parse("rdk:component:base/b")
DEGREE = 111_195.08
STILL = Vector3()


@pytest.fixture
async def base(clock: ManualClock) -> FakeBase:
    return await FakeBase.new(BASE, FakeBaseAttributes(), {}, clock)


@pytest.fixture
async def client(base: FakeBase, serve: Serve) -> AsyncIterator[MovementSensorClient]:
    """Return a client of a sensor on a base that faces east at the equator."""
    attributes = FakeMovementSensorAttributes.model_validate(
        {"base": "b", "origin": {"longitude": 20}, "compass_heading": 90, "altitude": 34.5}
    )
    async with serve(await FakeMovementSensor.new(NAME, attributes, {BASE: base})) as channel:
        yield MovementSensorClient("s", channel)


async def read_offset(client: MovementSensorClient) -> tuple[float, float]:
    """Return the meters north and east of the origin."""
    point, altitude = await client.get_position()
    assert altitude == 34.5
    return point.latitude * DEGREE, (point.longitude - 20) * DEGREE


async def test_position_follows_the_base(
    client: MovementSensorClient, base: FakeBase, clock: ManualClock
) -> None:
    assert await read_offset(client) == (0, 0)
    await base.set_velocity(Vector3(y=1000), STILL)
    await clock.advance(50)
    assert await read_offset(client) == pytest.approx((0, 50), abs=0.001)
    await base.set_velocity(STILL, Vector3(z=90))
    await clock.advance(1)
    await base.set_velocity(Vector3(y=500), STILL)
    await clock.advance(20)
    assert await read_offset(client) == pytest.approx((10, 50), abs=0.001)


async def test_heading_and_orientation_follow_the_base(
    client: MovementSensorClient, base: FakeBase, clock: ManualClock
) -> None:
    faced = []
    await base.set_velocity(STILL, Vector3(z=60))
    for _ in range(4):
        turned = await client.get_orientation()
        assert (turned.o_x, turned.o_y, turned.o_z) == (0, 0, 1)
        faced.append((await client.get_compass_heading(), turned.theta))
        await clock.advance(1)
    assert faced == [(90, -90), (30, -30), (330, 30), (270, 90)]


async def test_velocities_and_acceleration_follow_the_base(
    client: MovementSensorClient, base: FakeBase
) -> None:
    await base.set_velocity(Vector3(y=500), Vector3(z=90))
    assert await client.get_linear_velocity() == Vector3(y=0.5)
    assert await client.get_angular_velocity() == Vector3(z=90)
    pull = await client.get_linear_acceleration()
    assert [pull.x, pull.y, pull.z] == pytest.approx([-0.5 * math.pi / 2, 0, 0])
    await base.stop()
    assert await client.get_linear_velocity() == STILL
    assert await client.get_angular_velocity() == STILL
    assert await client.get_linear_acceleration() == STILL


async def test_readings_contain_all_measurements(
    client: MovementSensorClient, base: FakeBase
) -> None:
    await base.set_velocity(Vector3(y=500), STILL)
    readings = await client.get_readings()
    assert readings["angular_velocity"] == await client.get_angular_velocity()
    service: Any = client.client
    reply = await service.GetReadings(GetReadingsRequest(name=client.name))
    types = {
        name: value.struct_value.fields["_type"].string_value
        for name, value in reply.readings.items()
        if value.HasField("struct_value")
    }
    assert types["angular_velocity"] == "angular_velocity"
    assert types["linear_velocity"] == "vector3"
    assert readings["position"] == GeoPoint(longitude=20)
    assert readings["altitude"] == 34.5
    assert readings["compass"] == 90
    assert readings["linear_velocity"] == Vector3(y=0.5)
    assert readings["orientation"] == await client.get_orientation()
    assert set(readings) == {
        "position",
        "altitude",
        "linear_velocity",
        "angular_velocity",
        "linear_acceleration",
        "compass",
        "orientation",
    }


async def test_values_are_constant_without_a_base(serve: Serve) -> None:
    attributes = FakeMovementSensorAttributes.model_validate(
        {
            "origin": {"latitude": -12.5, "longitude": 130},
            "compass_heading": 270,
            "linear_velocity": {"y": 5},
            "angular_velocity": {"z": 1},
            "linear_acceleration": {"x": 2, "y": 4, "z": 9.8},
        }
    )
    async with serve(await FakeMovementSensor.new(NAME, attributes, {})) as channel:
        client = MovementSensorClient("s", channel)
        assert await client.get_position() == (GeoPoint(latitude=-12.5, longitude=130), 0)
        assert await client.get_compass_heading() == 270
        assert (await client.get_orientation()).theta == 90
        assert await client.get_linear_velocity() == Vector3(y=5)
        assert await client.get_angular_velocity() == Vector3(z=1)
        assert await client.get_linear_acceleration() == Vector3(x=2, y=4, z=9.8)


async def test_properties_accuracy_and_status_of_the_sensor(client: MovementSensorClient) -> None:
    properties = await client.get_properties()
    assert all(vars(properties).values())
    accuracy = await client.get_accuracy()
    assert accuracy.HasField("position_hdop")
    assert accuracy.position_nmea_gga_fix == 8
    assert await client.get_geometries() == []
    status = await client.get_status()
    assert (status["longitude"], status["compass_heading_deg"]) == (20, 90)


async def test_base_without_odometry_is_refused() -> None:
    attributes = FakeMovementSensorAttributes(base="b")
    with pytest.raises(Unsupported, match='cannot follow base "b", which does not report its pose'):
        await FakeMovementSensor.new(NAME, attributes, {BASE: object()})


@pytest.mark.parametrize(
    "attributes",
    [
        {"origin": {"latitude": 91}},
        {"compass_heading": 360},
        {"base": "b", "linear_velocity": {"x": 1}},
    ],
)
def test_invalid_attributes_are_refused(attributes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        FakeMovementSensorAttributes.model_validate(attributes)

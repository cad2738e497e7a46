from __future__ import annotations

import asyncio
import time

import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.support.machine.served import Serve, refused
from tests.support.waiting import poll
from viam.components.sensor.client import SensorClient

from cogwork.core.clock import ManualClock
from cogwork.drivers.sensor.attributes import FakeSensorAttributes
from cogwork.drivers.sensor.fake import FakeSensor, ScriptedFault
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:sensor/s")
CABLE = "the cable was pulled"


def parse_attributes(**attributes: object) -> FakeSensorAttributes:
    return FakeSensorAttributes.model_validate(attributes)


async def test_configured_readings_are_returned(serve: Serve) -> None:
    readings = {"celsius": 21.5, "on": True, "words": ["a"], "deep": {"er": None}}
    async with serve(
        await FakeSensor.new(NAME, parse_attributes(readings=readings), {})
    ) as channel:
        client = SensorClient("s", channel)
        assert await client.get_readings() == readings
        assert await client.get_readings(extra={"a": 1}, timeout=5) == readings
        assert await client.get_status() == {"calls": 2}
        assert await client.get_geometries() == []


async def read_outcomes(sensor: FakeSensor, serve: Serve, calls: int) -> list[str]:
    """Return the outcome of each of so many readings."""
    async with serve(sensor) as channel:
        client, found = SensorClient("s", channel), []
        for _ in range(calls):
            try:
                await client.get_readings()
            except Exception as error:
                found.append(getattr(error, "message", None) or repr(error))
            else:
                found.append("fine")
        return found


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        ([{"error": CABLE}], [CABLE] * 4),
        ([{"error": CABLE, "from_call": 3}], ["fine", "fine", CABLE, CABLE]),
        ([{"error": CABLE, "from_call": 2, "calls": 2}], ["fine", CABLE, CABLE, "fine"]),
        (
            [{"error": CABLE, "calls": 1}, {"error": "late", "from_call": 3, "calls": 1}],
            [CABLE, "fine", "late", "fine"],
        ),
        ([{"error": "first", "calls": 1}, {"error": "second"}], ["first"] + ["second"] * 3),
    ],
)
async def test_readings_fail_as_scripted(
    serve: Serve, faults: list[dict[str, object]], expected: list[str]
) -> None:
    sensor = await FakeSensor.new(NAME, parse_attributes(faults=faults), {})
    assert await read_outcomes(sensor, serve, 4) == expected


async def test_scripted_error_is_not_logged_as_server_fault(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    sensor = await FakeSensor.new(NAME, parse_attributes(faults=[{"error": CABLE}]), {})
    async with serve(sensor) as channel:
        with refused() as told:
            await SensorClient("s", channel).get_readings()
    assert (told.status, told.words) == (Status.INTERNAL, CABLE)
    assert caplog.text == ""


async def test_scripted_delay_slows_a_reading_down(serve: Serve) -> None:
    clock = ManualClock()
    faults = [{"delay": "500ms", "from_call": 1, "calls": 1}]
    sensor = await FakeSensor.new(NAME, parse_attributes(faults=faults), {}, clock)
    async with serve(sensor) as channel:
        client = SensorClient("s", channel)
        slow = asyncio.ensure_future(client.get_readings())

        async def has_started() -> bool:
            return (await client.get_status())["calls"] == 1

        await poll(has_started)
        assert await client.get_readings() == {"a": 1, "b": 2, "c": 3}
        await clock.advance(0.499)
        assert not slow.done()
        await clock.advance(0.001)
        assert await asyncio.wait_for(slow, 10) == {"a": 1, "b": 2, "c": 3}


async def test_reconfiguration_restarts_the_script(serve: Serve) -> None:
    faults = [{"error": CABLE, "from_call": 2}]
    sensor = await FakeSensor.new(NAME, parse_attributes(faults=faults), {})
    assert await read_outcomes(sensor, serve, 2) == ["fine", CABLE]
    await sensor.reconfigure(parse_attributes(readings={"b": 2}, faults=faults), {})
    assert await read_outcomes(sensor, serve, 2) == ["fine", CABLE]
    await sensor.reconfigure(parse_attributes(readings={"b": 2}), {})
    assert await sensor.get_readings() == {"b": 2}


async def test_construction_can_be_delayed() -> None:
    clock = ManualClock()
    building = asyncio.ensure_future(
        FakeSensor.new(NAME, parse_attributes(start={"delay": "2s"}), {}, clock)
    )
    await clock.advance(1.999)
    assert not building.done()
    await clock.advance(0.001)
    assert (await building).name == "s"


async def test_construction_can_fail_after_a_delay() -> None:
    start = {"delay": "10ms", "error": CABLE}
    before = time.monotonic()
    with pytest.raises(ScriptedFault, match=CABLE):
        await FakeSensor.new(NAME, parse_attributes(start=start), {})
    assert time.monotonic() - before >= 0.0099


@pytest.mark.parametrize("trouble", [{}, {"delay": "0s"}, {"delay": "-1s"}])
def test_fault_without_effect_is_refused(trouble: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        parse_attributes(faults=[trouble])
    with pytest.raises(ValidationError):
        parse_attributes(start=trouble)

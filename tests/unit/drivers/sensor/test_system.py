from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from grpclib.const import Status
from tests.support.machine.served import Serve, refused
from viam.components.sensor.client import SensorClient

from cogwork.core.errors import NotFound
from cogwork.drivers.sensor.attributes import SystemSensorAttributes
from cogwork.drivers.sensor.system import SystemSensor
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:sensor/s")
KEYS = {
    "cpu_percent",
    "disk_free_bytes",
    "disk_total_bytes",
    "disk_used_percent",
    "load_15_minutes",
    "load_1_minute",
    "load_5_minutes",
    "memory_available_bytes",
    "memory_total_bytes",
    "memory_used_percent",
    "server_memory_bytes",
    "uptime_seconds",
}


@pytest.fixture
async def sensor() -> AsyncIterator[SystemSensor]:
    sensor = await SystemSensor.new(NAME, SystemSensorAttributes(), {})
    yield sensor
    await sensor.close()


@pytest.fixture
def hide_temperatures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "sensors_temperatures", dict)


@pytest.mark.usefixtures("hide_temperatures")
async def test_readings_describe_this_computer(sensor: SystemSensor, serve: Serve) -> None:
    async with serve(sensor) as channel:
        client = SensorClient("s", channel)
        readings: dict[str, Any] = dict(await client.get_readings())
        assert await client.get_geometries() == []
    assert readings.keys() == KEYS
    assert all(0 <= readings[key] <= 100 for key in KEYS if key.endswith("percent"))
    assert 0 < readings["memory_available_bytes"] < readings["memory_total_bytes"]
    assert 0 < readings["disk_free_bytes"] < readings["disk_total_bytes"]
    assert 1 << 20 < readings["server_memory_bytes"] < readings["memory_total_bytes"]
    assert readings["uptime_seconds"] > 0


async def test_first_reading_contains_the_cpu_load(sensor: SystemSensor) -> None:
    # This takes longer than one tick of the CPU clock, which ticks a hundred times per second.
    before = sum(os.times()[:2])
    while sum(os.times()[:2]) - before < 0.1:
        sum(range(1000))
    assert (await sensor.get_readings())["cpu_percent"] > 0


async def test_per_core_reads_each_core() -> None:
    sensor = await SystemSensor.new(NAME, SystemSensorAttributes(per_core=True), {})
    readings = await sensor.get_readings()
    await sensor.close()
    cores = {key for key in readings if key.startswith("cpu_")} - {"cpu_percent"}
    assert cores == {f"cpu_{core}_percent" for core in range(psutil.cpu_count() or 0)}


async def test_temperatures_are_read_where_available(
    sensor: SystemSensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = [SimpleNamespace(label="", current=41.0), SimpleNamespace(label="", current=42.0)]
    package = SimpleNamespace(label="Package id 0", current=55.5)
    found = {"coretemp": [package], "nvme-pci": measured}
    monkeypatch.setattr(psutil, "sensors_temperatures", lambda: found)
    readings = await sensor.get_readings()
    assert {key: readings[key] for key in readings if key.startswith("temperature")} == {
        "temperature_coretemp_0_package_id_0_celsius": 55.5,
        "temperature_nvme_pci_0_celsius": 41.0,
        "temperature_nvme_pci_1_celsius": 42.0,
    }


async def test_missing_disk_path_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(NotFound) as told:
        await SystemSensor.new(NAME, SystemSensorAttributes(path=str(missing)), {})
    assert str(told.value).startswith(f'cannot measure the disk: "{missing}" does not exist')
    # The error refers to the sensor, so only its close ends the thread.
    for thread in threading.enumerate():
        if thread.name.startswith("sensor-s"):
            thread.join(10)
            assert not thread.is_alive()


async def test_removed_disk_path_is_reported(tmp_path: Path, serve: Serve) -> None:
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    sensor = await SystemSensor.new(NAME, SystemSensorAttributes(path=str(mounted)), {})
    mounted.rmdir()
    async with serve(sensor) as channel:
        with refused() as told:
            await SensorClient("s", channel).get_readings()
    await sensor.close()
    assert told.status is Status.NOT_FOUND
    assert str(mounted) in told.words

"""A sensor that measures the computer that the server runs on."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

import psutil
from viam.components.sensor import Sensor

from cogwork.core.errors import NotFound
from cogwork.core.workers import Workers
from cogwork.drivers.no_geometry import NoGeometry
from cogwork.drivers.sensor.attributes import SystemSensorAttributes
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of

Numbers = dict[str, float]


class SystemSensor(NoGeometry, Sensor):
    """A sensor of the server's computer. Each reading measures the processor load since the
    previous reading, no matter which client requested that one."""

    def __init__(self, name: ResourceName, attributes: SystemSensorAttributes) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        # Use a thread, because a disk may hang. Use only one thread, because psutil keeps the
        # previous processor times per thread.
        self._thread = Workers(f"sensor-{name.name}", waiting=100)

    @classmethod
    async def new(
        cls, name: ResourceName, attributes: SystemSensorAttributes, dependencies: Dependencies
    ) -> SystemSensor:
        del dependencies
        sensor = cls(name, attributes)
        try:
            # Read once now, so that the first reading of a client measures the load since now.
            await sensor.get_readings()
        except BaseException:
            await sensor.close()
            raise
        return sensor

    async def get_readings(self, **_: Any) -> Mapping[str, Any]:
        return await self._thread.run(self._read)

    async def close(self) -> None:
        self._thread.close()

    def _read(self) -> Numbers:
        return {
            **_read_cpu(),
            **(_read_cores() if self._attributes.per_core else {}),
            **_read_memory(),
            **_read_disk(self._attributes.path),
            **_read_temperatures(),
            "uptime_seconds": time.time() - psutil.boot_time(),
            "server_memory_bytes": psutil.Process().memory_info().rss,
        }


def _read_cpu() -> Numbers:
    names = ("load_1_minute", "load_5_minutes", "load_15_minutes")
    return {
        "cpu_percent": psutil.cpu_percent(interval=None),
        **dict(zip(names, psutil.getloadavg(), strict=True)),
    }


def _read_cores() -> Numbers:
    percentages = psutil.cpu_percent(interval=None, percpu=True)
    return {f"cpu_{core}_percent": percent for core, percent in enumerate(percentages)}


def _read_memory() -> Numbers:
    memory = psutil.virtual_memory()
    return {
        "memory_total_bytes": memory.total,
        "memory_available_bytes": memory.available,
        "memory_used_percent": memory.percent,
    }


def _read_disk(path: str) -> Numbers:
    try:
        disk = psutil.disk_usage(path)
    except FileNotFoundError:
        raise NotFound(
            f'cannot measure the disk: "{path}" does not exist; mount it or change "path"'
        ) from None
    return {
        "disk_total_bytes": disk.total,
        "disk_free_bytes": disk.free,
        "disk_used_percent": disk.percent,
    }


def _read_temperatures() -> Numbers:
    """Return the temperatures. Machines without sensors, such as virtual machines, have none."""
    return {
        _temperature_key(chip, number, sensor.label): sensor.current
        for chip, sensors in psutil.sensors_temperatures().items()
        for number, sensor in enumerate(sensors)
    }


def _temperature_key(chip: str, number: int, label: str) -> str:
    # Include the number: many sensors have no label, and some have the same label.
    words = re.sub(r"\W+", "_", f"{chip} {number} {label}".strip().lower())
    return f"temperature_{words}_celsius"

"""Whether an update may interrupt the machine now: only a fresh `true` of its sensor says yes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.graph.name import ResourceName
from cogwork.robot.machine import Machine

TIMEOUT = 5.0


class Permission(NamedTuple):
    allowed: bool
    reason: str


async def permission(machine: Machine, clock: Clock) -> Permission:
    if machine.is_reconfiguring:
        return Permission(False, "the machine is being reconfigured")
    wanted = machine.config.maintenance
    if wanted is None:
        return _without_sensor(machine)
    try:
        sensor: Any = machine.find(ResourceName.parse(wanted.sensor_name))
    except CogworkError as error:
        return Permission(False, str(error))
    try:
        readings = await _read(sensor, clock)
    except TimeoutError:
        return Permission(False, f"{wanted.sensor_name} did not answer within {TIMEOUT:g}s")
    except Exception as error:
        words = str(error) or repr(error)
        return Permission(False, f"{wanted.sensor_name} could not be read: {words}")
    return judge(readings, wanted.sensor_name, wanted.maintenance_allowed_key)


def _without_sensor(machine: Machine) -> Permission:
    """Whoever wrote a section that is faulty wanted the machine not to be interrupted."""
    for fault in machine.diagnostics:
        if fault.place.pointer[:1] == ("maintenance",):
            return Permission(
                False, f'"maintenance" in the configuration is faulty: {fault.message}'
            )
    return Permission(True, "no maintenance sensor is configured")


def judge(readings: Mapping[str, Any], sensor: str, key: str) -> Permission:
    if key not in readings:
        there = ", ".join(sorted(readings)) or "nothing"
        return Permission(False, f'{sensor} has no reading "{key}"; it reads {there}')
    value = readings[key]
    if not isinstance(value, bool):
        return Permission(False, f'"{key}" of {sensor} is {value!r}, which is not true or false')
    return Permission(value, f'"{key}" of {sensor} is {str(value).lower()}')


async def _read(sensor: Any, clock: Clock) -> Mapping[str, Any]:
    reading = asyncio.ensure_future(_readings(sensor))
    try:
        await clock.wait({reading}, TIMEOUT)
        if not reading.done():
            raise TimeoutError
        if reading.cancelled():
            raise RuntimeError("it was cancelled")
        return reading.result()
    finally:
        reading.cancel()


async def _readings(sensor: Any) -> Mapping[str, Any]:
    try:
        readings: object = await sensor.get_readings(timeout=TIMEOUT)
    except SystemExit as error:
        raise RuntimeError(f"it called sys.exit({error.code!r})") from None
    if not isinstance(readings, Mapping):
        raise TypeError(f"it returned {type(readings).__name__}, no readings")
    return readings

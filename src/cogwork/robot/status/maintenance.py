"""Decides whether an update may interrupt the machine: its maintenance sensor must read `true`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from cogwork.core import duration
from cogwork.core.clock import Clock
from cogwork.core.error_text import error_text
from cogwork.core.errors import CogworkError
from cogwork.core.exit_trap import trap_exit
from cogwork.graph.name import ResourceName
from cogwork.robot.machine import Machine
from cogwork.robot.status.server_report import MaintenanceDenial, ServerReport

TIMEOUT = 5.0
DENIAL_AGE = 10.0
"""Seconds after which a denial is checked again for the status."""
_REFRESH_TIMEOUT = 1.0
"""Seconds that the status waits for this check."""

_log = logging.getLogger("rdk.maintenance")


class MaintenancePermission(NamedTuple):
    allowed: bool
    reason: str


async def check_maintenance(
    machine: Machine, report: ServerReport, clock: Clock
) -> MaintenancePermission:
    """Return whether maintenance is allowed. A denial is also logged and shown in the status."""
    permission = await _evaluate(machine, clock)
    _record(report, permission.allowed, machine.redact(permission.reason), clock)
    return permission


async def refresh_denial(machine: Machine, report: ServerReport, clock: Clock) -> None:
    """Check again whether a denial still holds, before it is shown.

    Only an agent that wants to update asks for permission. Afterwards, nothing else would correct
    the denial or its reason.
    """
    denial, now = report.maintenance_denial, clock.monotonic()
    if denial is None or now < denial.checked_at + DENIAL_AGE:
        return
    report.maintenance_denial = denial._replace(checked_at=now)
    checking = asyncio.ensure_future(check_maintenance(machine, report, clock))
    try:
        await clock.wait({checking}, _REFRESH_TIMEOUT)
    finally:
        checking.cancel()
        await asyncio.gather(checking, return_exceptions=True)


def _record(report: ServerReport, allowed: bool, reason: str, clock: Clock) -> None:
    before, now, checked_at = report.maintenance_denial, clock.time(), clock.monotonic()
    if allowed:
        report.maintenance_denial = None
        if before is not None:
            _log.info(
                "maintenance was denied for %s, and is allowed again, because %s",
                _age(before, now),
                reason,
            )
    elif before is None:
        report.maintenance_denial = MaintenanceDenial(reason, now, checked_at)
        _log.info("maintenance is not allowed: %s", reason)
    else:
        report.maintenance_denial = MaintenanceDenial(reason, before.since, checked_at)
        if before.reason != reason:
            _log.info(
                "maintenance has been denied for %s; the reason is now: %s",
                _age(before, now),
                reason,
            )


def _age(denial: MaintenanceDenial, now: float) -> str:
    return duration.render(round(now - denial.since))


async def _evaluate(machine: Machine, clock: Clock) -> MaintenancePermission:
    if machine.is_reconfiguring:
        return MaintenancePermission(False, "the machine is being reconfigured")
    config = machine.config.maintenance
    if config is None:
        return _evaluate_without_sensor(machine)
    try:
        sensor: Any = machine.find(ResourceName.parse(config.sensor_name))
    except CogworkError as error:
        return MaintenancePermission(False, str(error))
    try:
        readings = await _read_with_timeout(sensor, clock)
    except TimeoutError:
        return MaintenancePermission(
            False, f"{config.sensor_name} did not answer within {TIMEOUT:g}s"
        )
    except Exception as error:
        reason = f"{config.sensor_name} could not be read: {error_text(error)}"
        return MaintenancePermission(False, reason)
    return evaluate_readings(readings, config.sensor_name, config.maintenance_allowed_key)


def _evaluate_without_sensor(machine: Machine) -> MaintenancePermission:
    """Deny if the `maintenance` section is invalid: its author wanted to restrict maintenance."""
    for diagnostic in machine.diagnostics:
        if diagnostic.location.pointer[:1] == ("maintenance",):
            return MaintenancePermission(
                False, f'"maintenance" in the configuration is invalid: {diagnostic.message}'
            )
    return MaintenancePermission(True, "no maintenance sensor is configured")


def evaluate_readings(readings: Mapping[str, Any], sensor: str, key: str) -> MaintenancePermission:
    if key not in readings:
        available = ", ".join(sorted(readings)) or "none"
        return MaintenancePermission(
            False, f'{sensor} has no reading "{key}"; its readings: {available}'
        )
    value = readings[key]
    if not isinstance(value, bool):
        return MaintenancePermission(
            False, f'"{key}" of {sensor} is {value!r}; it must be true or false'
        )
    return MaintenancePermission(value, f'"{key}" of {sensor} is {str(value).lower()}')


async def _read_with_timeout(sensor: Any, clock: Clock) -> Mapping[str, Any]:
    reading = asyncio.ensure_future(_get_readings(sensor))
    try:
        await clock.wait({reading}, TIMEOUT)
        if not reading.done():
            raise TimeoutError
        if reading.cancelled():
            raise RuntimeError("the call to the sensor was cancelled")
        return reading.result()
    finally:
        reading.cancel()


class InvalidReadings(CogworkError):
    """The maintenance sensor returned something other than readings."""


async def _get_readings(sensor: Any) -> Mapping[str, Any]:
    with trap_exit():
        readings: object = await sensor.get_readings(timeout=TIMEOUT)
    if not isinstance(readings, Mapping):
        raise InvalidReadings(
            f"get_readings returned {type(readings).__name__} instead of readings"
        )
    return readings

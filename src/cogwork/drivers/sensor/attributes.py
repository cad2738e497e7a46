"""Attributes of the sensor models."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from cogwork.config.schema import codes
from cogwork.config.schema.fields import Attributes, Duration, fault


class FaultAttributes(Attributes):
    """An injected fault: a delay, an error, or both."""

    delay: Annotated[Duration, Field(ge=0)] = 0.0
    """Duration of the delay."""
    error: str | None = None
    """Message of the error, which is raised after the delay."""

    @model_validator(mode="after")
    def _check_has_effect(self) -> Self:
        if not self.delay and self.error is None:
            raise fault(
                codes.MISSING_FIELD,
                'set "delay" or "error"; without either, the fault has no effect',
            )
        return self


class FaultyReadings(FaultAttributes):
    """A fault that affects some of the readings."""

    from_call: Annotated[int, Field(ge=1)] = 1
    """Number of the first affected reading; counting starts at 1."""
    calls: Annotated[int, Field(ge=0)] = 0
    """Number of affected readings; 0 affects every reading from `from_call` on."""

    def applies_to(self, call: int) -> bool:
        since = call - self.from_call
        return since >= 0 and (self.calls == 0 or since < self.calls)


class FakeSensorAttributes(Attributes):
    """A sensor without hardware with the readings and faults that are configured."""

    readings: dict[str, JsonValue] = {"a": 1, "b": 2, "c": 3}
    """Values that every reading returns."""
    faults: list[FaultyReadings] = []
    """Faults to inject into readings, such as `{"from_call": 3, "calls": 2, "delay": "500ms",
    "error": "the cable was pulled"}`. Without `calls` a fault is permanent. The count of readings
    restarts when the configuration changes."""
    start: FaultAttributes | None = None
    """Fault to inject whenever the sensor is built: a `delay`, an `error`, or both."""


class SystemSensorAttributes(Attributes):
    """The load, memory, disk and temperature of the computer that the server runs on."""

    path: str = "/"
    """Mount point of the disk whose space is measured."""
    per_core: bool = False
    """Whether to also measure each processor core."""


class SerialSensorAttributes(Attributes):
    """A sensor on a serial port that sends its readings line by line."""

    port: Annotated[str, Field(min_length=1)]
    """Serial port, such as `/dev/ttyUSB0`. A path below `/dev/serial/by-id/` stays the same across
    restarts."""
    baud_rate: Annotated[int, Field(ge=50, le=4_000_000)] = 9600
    """Bits per second that the device sends."""
    format: Literal["json", "csv", "key=value", "text"] = "json"
    """Format of a line: `json`, an object; `csv`, the values of `fields`; `key=value`, any number
    of such pairs; `text`, a single reading named `text`."""
    fields: list[Annotated[str, Field(min_length=1)]] = []
    """Names of the values of a line, in order, for the format `csv`."""
    stale_after: Annotated[Duration, Field(ge=0)] = 10.0
    """Maximum age of the newest line, such as `10s`. Readings fail when it is older; with `0s`
    there is no limit."""

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if (self.format == "csv") != bool(self.fields):
            raise fault(
                codes.INCOMPLETE_PAIR,
                'the format "csv" requires "fields", and other formats do not allow it',
            )
        return self

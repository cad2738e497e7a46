"""What the sensors read from their configuration."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from cogwork.config import codes
from cogwork.config.fields import Attributes, Duration, fault


class Trouble(Attributes):
    """Something that takes long, fails, or does both."""

    delay: Annotated[Duration, Field(ge=0)] = 0.0
    """How long it takes."""
    error: str | None = None
    """What it fails with, after the delay."""

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if not self.delay and self.error is None:
            raise fault(codes.MISSING_FIELD, '"delay" or "error" is missing: nothing would happen')
        return self


class FaultyReadings(Trouble):
    """Trouble with some of the readings."""

    from_call: Annotated[int, Field(ge=1)] = 1
    """The first reading it befalls; the first of all is 1."""
    calls: Annotated[int, Field(ge=0)] = 0
    """How many readings it befalls; 0 is every one from there on."""

    def befalls(self, call: int) -> bool:
        since = call - self.from_call
        return since >= 0 and (self.calls == 0 or since < self.calls)


class FakeSensorAttributes(Attributes):
    readings: dict[str, JsonValue] = {"a": 1, "b": 2, "c": 3}
    """What every reading returns."""
    faults: list[FaultyReadings] = []
    """Trouble with readings, such as
    `{"from_call": 3, "calls": 2, "delay": "500ms", "error": "the cable was pulled"}`. Without
    `calls` it does not end. Readings are counted anew when the configuration changes."""
    start: Trouble | None = None
    """Trouble whenever the sensor is built: a `delay`, an `error`, or both."""


class SystemSensorAttributes(Attributes):
    path: str = "/"
    """Where the disk is mounted whose space is measured."""
    per_core: bool = False
    """Whether to measure each core of the processor, too."""


class SerialSensorAttributes(Attributes):
    port: Annotated[str, Field(min_length=1)]
    """The serial port, such as `/dev/ttyUSB0`, or, so that it is the same after the next start,
    `/dev/serial/by-id/…`."""
    baud_rate: Annotated[int, Field(ge=50, le=4_000_000)] = 9600
    """How many bits a second the other side sends."""
    format: Literal["json", "csv", "key=value", "text"] = "json"
    """What a line is: `json`, an object; `csv`, the values of `fields`; `key=value`, any number of
    such pairs; `text`, one reading of that name."""
    fields: list[Annotated[str, Field(min_length=1)]] = []
    """What the values of a line are called, in their order, with the format `csv`."""
    stale_after: Annotated[Duration, Field(ge=0)] = 10.0
    """How old the newest line may be, such as `10s`. What is older is not given out as a reading;
    with `0s`, it always is."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if (self.format == "csv") != bool(self.fields):
            raise fault(codes.HALF_SET, 'the format "csv" and "fields" belong together')
        return self

"""A fake board whose pins keep the values written to them."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from viam.components.board import Board, Tick
from viam.proto.component.board import PowerMode

from cogwork.config.check.diagnostics import did_you_mean
from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import Interrupted, InvalidRequest, NotFound
from cogwork.drivers.board.attributes import (
    AnalogAttributes,
    FakeBoardAttributes,
    InterruptAttributes,
)
from cogwork.drivers.board.tick_queue import TickQueue
from cogwork.drivers.no_geometry import NoGeometry
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of

PartOf = TypeVar("PartOf")

_MAX_PINS = 1000


class FakeBoard(NoGeometry, Board):
    def __init__(self, name: ResourceName, attributes: FakeBoardAttributes, clock: Clock) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._clock = clock
        self._pins: dict[str, FakePin] = {}
        self._analogs = {each.name: FakeAnalog(each) for each in attributes.analogs}
        self._interrupts = {
            each.name: FakeInterrupt(each) for each in attributes.digital_interrupts
        }
        # The SDK does not report that a stream was closed. Keep weak references, so that closed
        # streams disappear.
        self._streams: weakref.WeakSet[TickQueue] = weakref.WeakSet()
        self._power_mode = PowerMode.POWER_MODE_NORMAL
        self._normal_mode_at = math.inf

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeBoardAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeBoard:
        del dependencies
        return cls(name, attributes, clock or SystemClock())

    async def gpio_pin_by_name(self, name: str) -> FakePin:
        """Return the pin; create it on first use, up to the limit."""
        if name not in self._pins:
            if len(self._pins) >= _MAX_PINS:
                raise NotFound(
                    f'cannot add pin "{name}" to board "{self.name}": a fake board has at most '
                    f"{_MAX_PINS} pins"
                )
            self._pins[name] = FakePin(name, self._on_pin_change)
        return self._pins[name]

    async def analog_by_name(self, name: str) -> FakeAnalog:
        return self._find_part("analog", name, self._analogs)

    async def digital_interrupt_by_name(self, name: str) -> FakeInterrupt:
        return self._find_part("digital interrupt", name, self._interrupts)

    async def stream_ticks(self, interrupts: list[Board.DigitalInterrupt], **_: Any) -> TickQueue:
        ticks = TickQueue({interrupt.name for interrupt in interrupts})
        self._streams.add(ticks)
        return ticks

    async def set_power_mode(
        self, mode: PowerMode.ValueType, duration: timedelta | None = None, **_: Any
    ) -> None:
        if mode not in (PowerMode.POWER_MODE_NORMAL, PowerMode.POWER_MODE_OFFLINE_DEEP):
            raise InvalidRequest(f'board "{self.name}" has no power mode {mode}')
        self._power_mode = mode
        seconds = duration.total_seconds() if duration else math.inf
        self._normal_mode_at = self._clock.monotonic() + seconds

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {
            "analogs": {name: analog.current_value for name, analog in self._analogs.items()},
            "digital_interrupts": {name: each.count for name, each in self._interrupts.items()},
            "pins_high": [name for name, pin in self._pins.items() if pin.high],
            "power_mode": PowerMode.Name(self._current_power_mode()),
            "tick_streams": len(self._streams),
        }

    async def close(self) -> None:
        for ticks in list(self._streams):
            ticks.end(Interrupted(f'board "{self.name}" was closed'))

    def _on_pin_change(self, pin: str, high: bool) -> None:
        for interrupt in self._interrupts.values():
            if interrupt.pin == pin:
                interrupt.count += high
                self._broadcast(Tick(pin_name=interrupt.name, time=self._now_ns(), high=high))

    def _broadcast(self, tick: Tick) -> None:
        for ticks in list(self._streams):
            ticks.add(tick)

    def _now_ns(self) -> int:
        # Clients derive speeds from tick times, so use a clock that never jumps.
        return int(self._clock.monotonic() * 1e9)

    def _current_power_mode(self) -> PowerMode.ValueType:
        expired = self._clock.monotonic() >= self._normal_mode_at
        return PowerMode.POWER_MODE_NORMAL if expired else self._power_mode

    def _find_part(self, kind: str, name: str, parts: Mapping[str, PartOf]) -> PartOf:
        if name in parts:
            return parts[name]
        available = f"it has {', '.join(sorted(parts))}" if parts else "it has none"
        hint = did_you_mean(name, parts) or available
        raise NotFound(f'board "{self.name}" has no {kind} "{name}": {hint}')


class FakePin(Board.GPIOPin):
    def __init__(self, name: str, on_change: Callable[[str, bool], None]) -> None:
        super().__init__(name)
        self.high = False
        self._on_change = on_change
        self._duty_cycle = 0.0
        self._frequency = 0

    async def set(self, high: bool, **_: Any) -> None:
        self._duty_cycle = 0.0
        if high != self.high:
            self.high = high
            self._on_change(self.name, high)

    async def get(self, **_: Any) -> bool:
        return self.high

    async def set_pwm(self, duty_cycle: float, **_: Any) -> None:
        if not 0 <= duty_cycle <= 1:
            raise InvalidRequest(
                f'pin "{self.name}" accepts a duty cycle between 0 and 1, not {duty_cycle:g}'
            )
        self._duty_cycle = duty_cycle

    async def get_pwm(self, **_: Any) -> float:
        return self._duty_cycle

    async def set_pwm_frequency(self, frequency: int, **_: Any) -> None:
        self._frequency = frequency

    async def get_pwm_frequency(self, **_: Any) -> int:
        return self._frequency


class FakeAnalog(Board.Analog):
    def __init__(self, attributes: AnalogAttributes) -> None:
        super().__init__(attributes.name)
        self.current_value = attributes.value
        self._attributes = attributes

    async def read(self, **_: Any) -> Board.Analog.Value:
        return Board.Analog.Value(
            value=self.current_value,
            min_range=self._attributes.min,
            max_range=self._attributes.max,
            step_size=self._attributes.step_size,
        )

    async def write(self, value: int, **_: Any) -> None:
        self.current_value = value


class FakeInterrupt(Board.DigitalInterrupt):
    def __init__(self, attributes: InterruptAttributes) -> None:
        super().__init__(attributes.name)
        self.pin = attributes.pin
        self.count = 0
        """Number of rising edges."""

    async def value(self, **_: Any) -> int:
        return self.count

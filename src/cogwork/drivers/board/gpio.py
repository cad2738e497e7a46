"""A board of the pins of this computer, through gpiozero."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NoReturn

from gpiozero import PinInvalidPin
from viam.components.board import Board, Tick
from viam.proto.component.board import PowerMode

from cogwork.config.diagnose import did_you_mean
from cogwork.core.errors import (
    CogworkError,
    FellBehind,
    Interrupted,
    InvalidRequest,
    NotFound,
    Unsupported,
)
from cogwork.drivers.board.attributes import (
    GpioBoardAttributes,
    GpioInterruptAttributes,
)
from cogwork.drivers.board.ticks import Ticks
from cogwork.drivers.gpio.edges import Edges
from cogwork.drivers.gpio.factory import Factory, opened
from cogwork.drivers.gpio.pin import GpioPin, PinFault
from cogwork.drivers.shapeless import Shapeless
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of


class GpioBoard(Shapeless, Board):
    def __init__(
        self, name: ResourceName, attributes: GpioBoardAttributes, factory: Factory
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._is_mock = attributes.pin_factory == "mock"
        self._factory = factory
        self._pins: dict[Any, GpioPin] = {}
        self._edges = Edges(self._stream, self._lose)
        self._interrupts: dict[str, GpioInterrupt] = {}
        # Nobody says when a reader is gone: its stream just goes with it.
        self._streams: weakref.WeakSet[Ticks] = weakref.WeakSet()

    @classmethod
    async def new(
        cls, name: ResourceName, attributes: GpioBoardAttributes, dependencies: Dependencies
    ) -> GpioBoard:
        del dependencies
        board = cls(name, attributes, await opened(attributes.pin_factory))
        try:
            board._wire(attributes)
        except BaseException:
            await board.close()
            raise
        return board

    async def gpio_pin_by_name(self, name: str) -> GpioPin:
        return self._pin(name)

    async def analog_by_name(self, name: str) -> NoReturn:
        raise NotFound(f'{self._called} has no analog "{name}": the computer has no analog pins')

    async def digital_interrupt_by_name(self, name: str) -> GpioInterrupt:
        found = self._interrupts.get(name)
        if found is None:
            those = f"it has {', '.join(self._interrupts)}" if self._interrupts else "it has none"
            hint = did_you_mean(name, self._interrupts) or those
            raise NotFound(f'{self._called} has no digital interrupt "{name}": {hint}')
        return found

    async def stream_ticks(self, interrupts: list[Board.DigitalInterrupt], **_: Any) -> Ticks:
        ticks = Ticks({interrupt.name for interrupt in interrupts})
        self._streams.add(ticks)
        return ticks

    async def set_power_mode(
        self, mode: PowerMode.ValueType, duration: timedelta | None = None, **_: Any
    ) -> None:
        del mode, duration
        raise Unsupported(f"{self._called} has no power modes: it is the computer that it runs on")

    async def do_command(self, command: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:
        """`{"drive": {"GPIO17": true}}` is what a button wired to the pin would do."""
        levels = command.get("drive")
        if not isinstance(levels, Mapping) or len(command) > 1:
            raise InvalidRequest(
                f'{self._called} knows one command, for mock pins: {{"drive": {{"GPIO17": true}}}}'
            )
        if not self._is_mock:
            raise Unsupported(f'{self._called} drives inputs only with "pin_factory": "mock"')
        for name, high in levels.items():
            self._drive(self._pin(name), bool(high))
        return {}

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        outputs = {pin.name: pin.output for pin in self._pins.values() if pin.output is not None}
        return {
            "digital_interrupts": {name: each.count for name, each in self._interrupts.items()},
            "outputs": outputs,
            "tick_streams": len(self._streams),
        }

    async def close(self) -> None:
        """Nothing goes on pulsing. A steady pin is let go as it is: whoever was wired to it left
        it at rest, which need not be low."""
        for ticks in list(self._streams):
            ticks.end(Interrupted(f"{self._called} was closed"))
        for interrupt in self._interrupts.values():
            interrupt.unwatch()
        for pin in self._pins.values():
            try:
                pin.rest()
            except CogworkError as error:
                self.logger.warning("it may go on pulsing: %s", error)
        self._factory.close()

    def _wire(self, attributes: GpioBoardAttributes) -> None:
        for watched in attributes.digital_interrupts:
            pin = self._pin(watched.pin)
            if pin.watcher is not None:
                raise InvalidRequest(
                    f'pin "{watched.pin}" has two digital interrupts, "{pin.watcher}" and '
                    f'"{watched.name}": one is enough for any number of readers'
                )
            pin.watcher = watched.name
            wire = self._factory.pin(_written(watched.pin))
            self._interrupts[watched.name] = GpioInterrupt(watched, wire, self._edges)

    def _pin(self, name: str) -> GpioPin:
        try:
            pin = self._factory.pin(_written(name))
        except PinInvalidPin:
            raise NotFound(
                f'{self._called} has no GPIO pin "{name}": write GPIO17 or 17 for the GPIO of that '
                "number, or BOARD11 for its place on the header"
            ) from None
        except Exception as error:
            raise PinFault(f'{self._called} does not get its pin "{name}": {error}') from error
        if pin not in self._pins:
            self._pins[pin] = GpioPin(f'pin "{pin.info.name}" of {self._called}', pin)
        return self._pins[pin]

    def _drive(self, pin: GpioPin, high: bool) -> None:
        if pin.output is not None:
            raise InvalidRequest(f'pin "{pin.name}" of {self._called} is an output: set it instead')
        wire = self._factory.pin(pin.name)
        if high:
            wire.drive_high()
        else:
            wire.drive_low()

    def _stream(self, tick: Tick) -> None:
        for ticks in list(self._streams):
            ticks.add(tick)

    def _lose(self, number: int) -> None:
        lost = FellBehind(f"{self._called} had {number} ticks more than it could hand on")
        for ticks in list(self._streams):
            ticks.end(lost)

    @property
    def _called(self) -> str:
        return f'board "{self.name}"'


class GpioInterrupt(Board.DigitalInterrupt):
    def __init__(self, attributes: GpioInterruptAttributes, wire: Any, edges: Edges) -> None:
        super().__init__(attributes.name)
        self.count = 0
        """How often the pin went from low to high."""
        self._wire = wire
        self._edges = edges
        try:
            wire.function = "input"
            wire.pull = "floating" if attributes.pull == "none" else attributes.pull
            wire.bounce = attributes.debounce or None
            # Kept by a weak reference: this object must outlive what it watches.
            wire.when_changed = self._changed
        except Exception as error:  # also lgpio's own
            raise PinFault(f'pin "{attributes.pin}" cannot be watched: {error}') from error

    async def value(self, **_: Any) -> int:
        return self.count

    def unwatch(self) -> None:
        self._wire.when_changed = None

    def _changed(self, seconds: float, level: float) -> None:
        """On a thread of lgpio, and on no other. The kernel says when it was."""
        high = bool(level)
        self.count += high
        self._edges.add(Tick(pin_name=self.name, time=int(seconds * 1e9), high=high))


def _written(name: str) -> str:
    """As gpiozero wants it, which is particular about capitals."""
    return name.strip().upper()

"""A board with the GPIO pins of this computer, through gpiozero."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NoReturn

from gpiozero import PinInvalidPin
from viam.components.board import Board, Tick
from viam.proto.component.board import PowerMode

from cogwork.config.check.diagnostics import did_you_mean
from cogwork.core.errors import (
    CogworkError,
    Interrupted,
    InvalidRequest,
    NotFound,
    SlowConsumer,
    Unsupported,
)
from cogwork.drivers.board.attributes import (
    GpioBoardAttributes,
    GpioInterruptAttributes,
)
from cogwork.drivers.board.tick_queue import TickQueue
from cogwork.drivers.gpio.edge_queue import EdgeQueue
from cogwork.drivers.gpio.factory import PinFactory, open_pin_factory
from cogwork.drivers.gpio.pin import GpioPin, PinFault
from cogwork.drivers.no_geometry import NoGeometry
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of


class GpioBoard(NoGeometry, Board):
    def __init__(
        self, name: ResourceName, attributes: GpioBoardAttributes, factory: PinFactory
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._is_mock = attributes.pin_factory == "mock"
        self._factory = factory
        self._pins: dict[Any, GpioPin] = {}
        self._edge_queue = EdgeQueue(self._broadcast, self._on_lost_ticks)
        self._interrupts: dict[str, GpioInterrupt] = {}
        # The SDK does not report that a stream was closed. Keep weak references, so that closed
        # streams disappear.
        self._streams: weakref.WeakSet[TickQueue] = weakref.WeakSet()

    @classmethod
    async def new(
        cls, name: ResourceName, attributes: GpioBoardAttributes, dependencies: Dependencies
    ) -> GpioBoard:
        del dependencies
        board = cls(name, attributes, await open_pin_factory(attributes.pin_factory))
        try:
            board._watch_interrupts(attributes)
        except BaseException:
            await board.close()
            raise
        return board

    async def gpio_pin_by_name(self, name: str) -> GpioPin:
        return self._find_pin(name)

    async def analog_by_name(self, name: str) -> NoReturn:
        raise NotFound(
            f'{self._display_name} has no analog "{name}": this computer has no analog pins'
        )

    async def digital_interrupt_by_name(self, name: str) -> GpioInterrupt:
        interrupt = self._interrupts.get(name)
        if interrupt is None:
            available = (
                f"it has {', '.join(self._interrupts)}" if self._interrupts else "it has none"
            )
            hint = did_you_mean(name, self._interrupts) or available
            raise NotFound(f'{self._display_name} has no digital interrupt "{name}": {hint}')
        return interrupt

    async def stream_ticks(self, interrupts: list[Board.DigitalInterrupt], **_: Any) -> TickQueue:
        ticks = TickQueue({interrupt.name for interrupt in interrupts})
        self._streams.add(ticks)
        return ticks

    async def set_power_mode(
        self, mode: PowerMode.ValueType, duration: timedelta | None = None, **_: Any
    ) -> None:
        del mode, duration
        raise Unsupported(
            f"{self._display_name} does not support power modes: its pins belong to the "
            "server's own computer"
        )

    async def do_command(self, command: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:
        """Handle `{"drive": {"GPIO17": true}}`, which simulates a button wired to a mock pin."""
        levels = command.get("drive")
        if not isinstance(levels, Mapping) or len(command) > 1:
            raise InvalidRequest(
                f"{self._display_name} supports one command, for mock pins: "
                '{"drive": {"GPIO17": true}}'
            )
        if not self._is_mock:
            raise Unsupported(
                f'{self._display_name} has real pins: "drive" requires "pin_factory": "mock"'
            )
        for name, high in levels.items():
            self._drive_input(self._find_pin(name), bool(high))
        return {}

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        outputs = {
            pin.name: pin.output_level
            for pin in self._pins.values()
            if pin.output_level is not None
        }
        return {
            "digital_interrupts": {name: each.count for name, each in self._interrupts.items()},
            "outputs": outputs,
            "tick_streams": len(self._streams),
        }

    async def close(self) -> None:
        """Stop PWM and release all pins.

        A pin without PWM keeps its level, because the component that used the pin has already set
        it to rest.
        """
        for ticks in list(self._streams):
            ticks.end(Interrupted(f"{self._display_name} was closed"))
        for interrupt in self._interrupts.values():
            interrupt.unwatch()
        for pin in self._pins.values():
            try:
                pin.stop_pwm()
            except CogworkError as error:
                self.logger.warning(
                    "a PWM signal could not be stopped and may still be running: %s", error
                )
        self._factory.close()

    def _watch_interrupts(self, attributes: GpioBoardAttributes) -> None:
        for interrupt in attributes.digital_interrupts:
            pin = self._find_pin(interrupt.pin)
            if pin.watcher is not None:
                raise InvalidRequest(
                    f'pin "{interrupt.pin}" is used by two digital interrupts, "{pin.watcher}" and '
                    f'"{interrupt.name}": remove one; one interrupt serves any number of clients'
                )
            pin.watcher = interrupt.name
            gpio_pin = self._factory.pin(_gpiozero_name(interrupt.pin))
            self._interrupts[interrupt.name] = GpioInterrupt(interrupt, gpio_pin, self._edge_queue)

    def _find_pin(self, name: str) -> GpioPin:
        try:
            pin = self._factory.pin(_gpiozero_name(name))
        except PinInvalidPin:
            raise NotFound(
                f'{self._display_name} has no GPIO pin "{name}": '
                "use GPIO17 or 17 for the GPIO number, "
                "or BOARD11 for the position on the header"
            ) from None
        except Exception as error:
            raise PinFault(f'{self._display_name} cannot open pin "{name}": {error}') from error
        if pin not in self._pins:
            self._pins[pin] = GpioPin(f'pin "{pin.info.name}" of {self._display_name}', pin)
        return self._pins[pin]

    def _drive_input(self, pin: GpioPin, high: bool) -> None:
        if pin.output_level is not None:
            raise InvalidRequest(
                f'pin "{pin.name}" of {self._display_name} is an output, and "drive" only '
                "simulates inputs: set the pin instead"
            )
        gpio_pin = self._factory.pin(pin.name)
        if high:
            gpio_pin.drive_high()
        else:
            gpio_pin.drive_low()

    def _broadcast(self, tick: Tick) -> None:
        for ticks in list(self._streams):
            ticks.add(tick)

    def _on_lost_ticks(self, number: int) -> None:
        lost = SlowConsumer(f"{self._display_name} dropped {number} ticks: they arrived too fast")
        for ticks in list(self._streams):
            ticks.end(lost)

    @property
    def _display_name(self) -> str:
        return f'board "{self.name}"'


class GpioInterrupt(Board.DigitalInterrupt):
    def __init__(
        self, attributes: GpioInterruptAttributes, gpio_pin: Any, edges: EdgeQueue
    ) -> None:
        super().__init__(attributes.name)
        self.count = 0
        """Number of rising edges."""
        self._pin = gpio_pin
        self._edge_queue = edges
        try:
            gpio_pin.function = "input"
            gpio_pin.pull = "floating" if attributes.pull == "none" else attributes.pull
            gpio_pin.bounce = attributes.debounce or None
            # gpiozero keeps only a weak reference to the callback, so it is called only while this
            # object exists.
            gpio_pin.when_changed = self._on_edge
        except Exception as error:  # lgpio raises its own exception types
            raise PinFault(f'pin "{attributes.pin}" cannot be watched: {error}') from error

    async def value(self, **_: Any) -> int:
        return self.count

    def unwatch(self) -> None:
        self._pin.when_changed = None

    def _on_edge(self, seconds: float, level: float) -> None:
        """Handle an edge on the single callback thread of lgpio; the kernel supplies the time."""
        high = bool(level)
        self.count += high
        self._edge_queue.add(Tick(pin_name=self.name, time=int(seconds * 1e9), high=high))


def _gpiozero_name(name: str) -> str:
    """Return the name in the upper case that gpiozero requires."""
    return name.strip().upper()

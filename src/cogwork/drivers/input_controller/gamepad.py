"""A gamepad that is plugged into this computer, or paired with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from evdev import ecodes
from viam.components.input import Control, ControlFunction, Controller, Event, EventType

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import NotFound
from cogwork.core.workers import Workers
from cogwork.drivers.input_controller.callbacks import Callbacks
from cogwork.drivers.input_controller.gamepad_attributes import GamepadAttributes
from cogwork.drivers.input_controller.gamepad_controls import Controls
from cogwork.drivers.input_controller.gamepad_device import GamepadFault, opened
from cogwork.drivers.shapeless import Shapeless
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of

_AGAIN = 1.0
"""Seconds before a gamepad is looked for again."""
_FIRST_LOOK = 5.0
"""Seconds that the machine waits for the first look."""


class Gamepad(Shapeless, Controller):
    """It is there before anything is plugged in, and stays when it is pulled: whoever listens is
    told of both."""

    def __init__(
        self,
        name: ResourceName,
        attributes: GamepadAttributes,
        clock: Clock,
        find: Callable[[str], Any],
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._path = attributes.device
        self._clock = clock
        self._find = find
        self._trouble: str | None = "no gamepad was found yet"
        self._device = ""
        self._controls: list[Control] = []
        self._events: dict[Control, Event] = {}
        self._callbacks = Callbacks(logger_of(name))
        self._looked = asyncio.get_running_loop().create_future()
        self._thread = Workers(f"gamepad-{name.name}")
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: GamepadAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
        find: Callable[[str], Any] = opened,
    ) -> Gamepad:
        """`find`: blocks, and returns evdev's device of that path, or raises GamepadFault."""
        del dependencies
        gamepad = cls(name, attributes, clock or SystemClock(), find)
        try:
            await gamepad._clock.wait([gamepad._looked], _FIRST_LOOK)
        except BaseException:
            await gamepad.close()
            raise
        return gamepad

    @property
    def trouble(self) -> str | None:
        return self._trouble

    async def get_controls(self, **_: Any) -> list[Control]:
        self._check_known()
        return list(self._controls)

    async def get_events(self, **_: Any) -> dict[Control, Event]:
        self._check_known()
        return dict(self._events)

    def register_control_callback(
        self,
        control: Control,
        triggers: list[EventType],
        function: ControlFunction | None,
        **_: Any,
    ) -> None:
        """One function for each kind of event; None takes it away. Before anything was plugged in,
        any control may be one of it."""
        if self._controls and control not in self._controls:
            those = ", ".join(each.value for each in self._controls)
            raise NotFound(f"{self._called} has no control {control.value}: it has {those}")
        self._callbacks.register(control, triggers, function)

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {
            "device": self._device,
            "reason": self._trouble or "",
            "values": {control.value: event.value for control, event in self._events.items()},
        }

    async def close(self) -> None:
        self._callbacks.clear()
        self._reader.cancel()
        await asyncio.wait([self._reader])
        self._thread.close()

    async def _read(self) -> None:
        while True:
            try:
                await self._listen(await self._thread.run(self._find, self._path))
            except GamepadFault as fault:
                self._lose(str(fault))
            except Exception as error:
                # Whatever it was: as long as nobody looks again, nothing gets better.
                self._lose(f"the gamepad cannot be read: {error}")
            self._have_looked()
            await self._clock.sleep(_AGAIN)

    async def _listen(self, device: Any) -> None:
        try:
            await self._follow(device)
        except OSError as error:
            raise GamepadFault(f"{device.path} is gone ({error.strerror or error})") from error
        finally:
            device.close()

    async def _follow(self, device: Any) -> None:
        controls = Controls(device.capabilities())
        self._connect(device, controls)
        self._have_looked()
        ready = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(device.fd, ready.set)
        try:
            while True:
                await ready.wait()
                ready.clear()
                self._hear(device, controls)
        finally:
            loop.remove_reader(device.fd)

    def _hear(self, device: Any, controls: Controls) -> None:
        try:
            heard = list(device.read())
        except BlockingIOError:
            return
        if any(each.type == ecodes.EV_SYN and each.code == ecodes.SYN_DROPPED for each in heard):
            # The kernel had no room for all of it: what counts is how everything stands.
            self._catch_up(controls.state(device, self._clock.time()))
            return
        for each in heard:
            event = controls.event(each.type, each.code, each.value, each.timestamp())
            if event is not None:
                self._happen(event)

    def _connect(self, device: Any, controls: Controls) -> None:
        self._controls = controls.names
        self._device = f"{device.path} ({device.name})"
        self._trouble = None
        self.logger.info("%s is connected", self._device)
        for event in controls.state(device, self._clock.time()):
            self._happen(replace(event, event=EventType.CONNECT))

    def _have_looked(self) -> None:
        if not self._looked.done():
            self._looked.set_result(None)

    def _catch_up(self, state: list[Event]) -> None:
        for event in state:
            if self._events[event.control].value != event.value:
                self._happen(event)

    def _lose(self, reason: str) -> None:
        if self._trouble is None:
            self.logger.warning("%s", reason)
            for control in self._controls:
                self._happen(Event(self._clock.time(), EventType.DISCONNECT, control, 0.0))
        self._trouble = reason

    def _happen(self, event: Event) -> None:
        self._events[event.control] = event
        self._callbacks.tell(event)

    def _check_known(self) -> None:
        if not self._controls:
            raise GamepadFault(self._trouble or "its controls are not known yet")

    @property
    def _called(self) -> str:
        return f'input controller "{self.name}"'

"""A gamepad that is connected to this computer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from evdev import ecodes
from viam.components.input import Control, ControlFunction, Controller, Event, EventType

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import NotFound
from cogwork.core.os_error_text import os_reason
from cogwork.core.workers import Workers
from cogwork.drivers.input_controller.attributes import GamepadAttributes
from cogwork.drivers.input_controller.callbacks import Callbacks
from cogwork.drivers.input_controller.gamepad_controls import GamepadControls
from cogwork.drivers.input_controller.gamepad_device import GamepadFault, open_gamepad
from cogwork.drivers.no_geometry import NoGeometry
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of

_RETRY_INTERVAL = 1.0
"""Seconds between two searches for a gamepad."""
_FIRST_SEARCH_TIMEOUT = 5.0
"""Seconds that construction waits for the first search."""


class Gamepad(NoGeometry, Controller):
    """An input controller that can be built while its gamepad is disconnected.

    Callbacks receive connect and disconnect events.
    """

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
        self._fault: str | None = "no gamepad was found yet"
        self._device = ""
        self._controls: list[Control] = []
        self._events: dict[Control, Event] = {}
        self._callbacks = Callbacks(logger_of(name))
        self._first_search = asyncio.get_running_loop().create_future()
        self._thread = Workers(f"gamepad-{name.name}")
        self._reader = asyncio.create_task(self._run())

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: GamepadAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
        find: Callable[[str], Any] = open_gamepad,
    ) -> Gamepad:
        """`find` blocks and returns the evdev device for the path, or raises GamepadFault."""
        del dependencies
        gamepad = cls(name, attributes, clock or SystemClock(), find)
        try:
            await gamepad._clock.wait([gamepad._first_search], _FIRST_SEARCH_TIMEOUT)
        except BaseException:
            await gamepad.close()
            raise
        return gamepad

    @property
    def fault(self) -> str | None:
        return self._fault

    async def get_controls(self, **_: Any) -> list[Control]:
        self._check_controls_known()
        return list(self._controls)

    async def get_events(self, **_: Any) -> dict[Control, Event]:
        self._check_controls_known()
        return dict(self._events)

    def register_control_callback(
        self,
        control: Control,
        triggers: list[EventType],
        function: ControlFunction | None,
        **_: Any,
    ) -> None:
        """Register the function for each of the event types; None removes the registered function.

        Before a gamepad has been connected, any control is accepted.
        """
        if self._controls and control not in self._controls:
            available = ", ".join(each.value for each in self._controls)
            raise NotFound(
                f"{self._display_name} has no control {control.value}: it has {available}"
            )
        self._callbacks.register(control, triggers, function)

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {
            "device": self._device,
            "reason": self._fault or "",
            "values": {control.value: event.value for control, event in self._events.items()},
        }

    async def close(self) -> None:
        self._callbacks.clear()
        self._reader.cancel()
        await asyncio.wait([self._reader])
        self._thread.close()

    async def _run(self) -> None:
        while True:
            try:
                await self._read_device(await self._thread.run(self._find, self._path))
            except GamepadFault as fault:
                self._on_disconnect(str(fault))
            except Exception as error:
                # Handle any error, so that the search for the gamepad continues.
                self._on_disconnect(f"the gamepad cannot be read: {error}")
            self._finish_first_search()
            await self._clock.sleep(_RETRY_INTERVAL)

    async def _read_device(self, device: Any) -> None:
        try:
            await self._read_events(device)
        except OSError as error:
            raise GamepadFault(f"{device.path} was disconnected ({os_reason(error)})") from error
        finally:
            device.close()

    async def _read_events(self, device: Any) -> None:
        controls = GamepadControls(device.capabilities())
        self._on_connect(device, controls)
        self._finish_first_search()
        ready = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(device.fd, ready.set)
        try:
            while True:
                await ready.wait()
                ready.clear()
                self._handle_events(device, controls)
        finally:
            loop.remove_reader(device.fd)

    def _handle_events(self, device: Any, controls: GamepadControls) -> None:
        try:
            events = list(device.read())
        except BlockingIOError:
            return
        if any(each.type == ecodes.EV_SYN and each.code == ecodes.SYN_DROPPED for each in events):
            # The kernel dropped events: read the current state instead.
            self._resync(controls.read_state(device, self._clock.time()))
            return
        for each in events:
            event = controls.to_event(each.type, each.code, each.value, each.timestamp())
            if event is not None:
                self._emit(event)

    def _on_connect(self, device: Any, controls: GamepadControls) -> None:
        self._controls = controls.names
        self._device = f"{device.path} ({device.name})"
        self._fault = None
        self.logger.info("gamepad %s is connected", self._device)
        for event in controls.read_state(device, self._clock.time()):
            self._emit(replace(event, event=EventType.CONNECT))

    def _finish_first_search(self) -> None:
        if not self._first_search.done():
            self._first_search.set_result(None)

    def _resync(self, state: list[Event]) -> None:
        for event in state:
            if self._events[event.control].value != event.value:
                self._emit(event)

    def _on_disconnect(self, reason: str) -> None:
        if self._fault is None:
            self.logger.warning("%s", reason)
            for control in self._controls:
                self._emit(Event(self._clock.time(), EventType.DISCONNECT, control, 0.0))
        self._fault = reason

    def _emit(self, event: Event) -> None:
        self._events[event.control] = event
        self._callbacks.dispatch(event)

    def _check_controls_known(self) -> None:
        if not self._controls:
            raise GamepadFault(
                self._fault or "its controls are unknown until a gamepad is connected"
            )

    @property
    def _display_name(self) -> str:
        return f'input controller "{self.name}"'

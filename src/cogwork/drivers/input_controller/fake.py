"""A fake input controller that plays a script and the events that clients trigger."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from viam.components.input import Control, ControlFunction, Controller, Event, EventType

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import InvalidRequest, NotFound
from cogwork.drivers.input_controller.attributes import (
    FakeInputControllerAttributes,
    ScriptedEvent,
)
from cogwork.drivers.input_controller.callbacks import Callbacks
from cogwork.drivers.no_geometry import NoGeometry
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of


class FakeInputController(NoGeometry, Controller):
    def __init__(
        self, name: ResourceName, attributes: FakeInputControllerAttributes, clock: Clock
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._clock = clock
        self._controls = [Control(each) for each in dict.fromkeys(attributes.controls)]
        self._events = {
            control: Event(clock.time(), EventType.CONNECT, control, 0.0)
            for control in self._controls
        }
        self._callbacks = Callbacks(logger_of(name))
        self._event_count = 0
        self._player: asyncio.Task[None] | None = None
        if attributes.script:
            play = self._play(attributes.script, attributes.round_seconds)
            self._player = asyncio.create_task(play)

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeInputControllerAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeInputController:
        del dependencies
        return cls(name, attributes, clock or SystemClock())

    async def get_controls(self, **_: Any) -> list[Control]:
        return list(self._controls)

    async def get_events(self, **_: Any) -> dict[Control, Event]:
        return dict(self._events)

    def register_control_callback(
        self,
        control: Control,
        triggers: list[EventType],
        function: ControlFunction | None,
        **_: Any,
    ) -> None:
        """Register the function for each of the event types; None removes the registered
        function."""
        self._check_control(control)
        self._callbacks.register(control, triggers, function)

    async def trigger_event(self, event: Event, **_: Any) -> None:
        """Emit the event; set its time to now if it has none."""
        self._check_control(event.control)
        if event.event in (EventType.ALL_EVENTS, EventType.BUTTON_CHANGE):
            raise InvalidRequest(
                f"{event.event.value} stands for several events: trigger one of them"
            )
        if not -1 <= event.value <= 1:
            raise InvalidRequest(
                f"{self._display_name} accepts event values from -1 to 1, not {event.value:g}"
            )
        self._emit(event if event.time else replace(event, time=self._clock.time()))

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {
            "events": self._event_count,
            "values": {control.value: event.value for control, event in self._events.items()},
            "callbacks": len(self._callbacks),
        }

    async def close(self) -> None:
        self._callbacks.clear()
        if self._player is not None:
            self._player.cancel()
            await asyncio.wait([self._player])

    async def _play(self, script: Sequence[ScriptedEvent], seconds: float) -> None:
        while True:
            round_start = self._clock.monotonic()
            for step in script:
                await self._clock.sleep(round_start + step.at - self._clock.monotonic())
                self._emit(
                    Event(
                        self._clock.time(),
                        EventType(step.event),
                        Control(step.control),
                        step.value,
                    )
                )
            await self._clock.sleep(round_start + seconds - self._clock.monotonic())

    def _emit(self, event: Event) -> None:
        self._event_count += 1
        self._events[event.control] = event
        self._callbacks.dispatch(event)

    def _check_control(self, control: Control) -> None:
        if control not in self._controls:
            available = ", ".join(each.value for each in self._controls) or "none"
            raise NotFound(
                f"{self._display_name} has no control {control.value}: it has {available}"
            )

    @property
    def _display_name(self) -> str:
        return f'input controller "{self.name}"'

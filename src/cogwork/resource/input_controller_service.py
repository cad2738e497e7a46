"""The input controller API. The SDK's own service lets a stream take the callbacks of another,
keeps it open by a trick that works inside grpclib only, without a bound on what waits, and writes
local times as if they were UTC."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, TypeVar

from google.protobuf.timestamp_pb2 import Timestamp
from viam.components.input import Control, ControlFunction, Controller, Event, EventType
from viam.errors import NotSupportedError
from viam.gen.component.inputcontroller.v1 import input_controller_pb2 as inputs

from cogwork.config.diagnose import did_you_mean
from cogwork.core.errors import FellBehind, InvalidRequest, Unsupported
from cogwork.graph.name import Api
from cogwork.resource.answers import CommonAnswers, Find, time_left
from cogwork.resource.structs import extra_to_dict
from cogwork.wire.described import Answer, described_methods
from cogwork.wire.handlers import Method, Stream

_DESCRIPTOR = inputs.DESCRIPTOR.services_by_name["InputControllerService"]

MOST_WAITING = 1024
_FIRST, _AFTER_LAST = -62_135_596_800, 253_402_300_800
"""The years 1 to 9999, in seconds since 1970: what the API has moments for."""

Wanted = frozenset[tuple[Control, EventType]]
Word = TypeVar("Word", bound=Enum)


def input_controller_methods(api: Api, find: Find) -> Iterable[Method]:
    service = InputControllerService(api, find)
    streams = {"StreamEvents": service.stream_events}
    return described_methods(_DESCRIPTOR, service.answers(), streams=streams)


class InputControllerService(CommonAnswers):
    def __init__(self, api: Api, find: Find) -> None:
        super().__init__(api, find)
        self._audiences: dict[Controller, Audience] = {}

    def answers(self) -> Mapping[str, Answer]:
        return {
            **super().answers(),
            "GetControls": self.get_controls,
            "GetEvents": self.get_events,
            "TriggerEvent": self.trigger_event,
            "GetGeometries": self.get_geometries,
        }

    async def get_controls(
        self, request: inputs.GetControlsRequest, stream: Stream
    ) -> inputs.GetControlsResponse:
        controls = await self.resource(request.controller).get_controls(
            extra=extra_to_dict(request.extra), timeout=time_left(stream), metadata=stream.metadata
        )
        return inputs.GetControlsResponse(controls=[control.value for control in controls])

    async def get_events(
        self, request: inputs.GetEventsRequest, stream: Stream
    ) -> inputs.GetEventsResponse:
        events = await self.resource(request.controller).get_events(
            extra=extra_to_dict(request.extra), timeout=time_left(stream), metadata=stream.metadata
        )
        return inputs.GetEventsResponse(events=[_to_proto(event) for event in events.values()])

    async def trigger_event(
        self, request: inputs.TriggerEventRequest, stream: Stream
    ) -> inputs.TriggerEventResponse:
        controller = self.resource(request.controller)
        try:
            await controller.trigger_event(
                _from_proto(request.event),
                extra=extra_to_dict(request.extra),
                timeout=time_left(stream),
                metadata=stream.metadata,
            )
        except NotSupportedError as error:
            raise Unsupported(error.message) from error
        return inputs.TriggerEventResponse()

    async def stream_events(self, stream: Stream) -> None:
        request: inputs.StreamEventsRequest = stream.request
        controller = self.resource(request.controller)
        extra = extra_to_dict(request.extra)
        with self._listening(controller, _wanted(request), extra) as heard:
            # Whoever waits for it knows that no event is missed from here on.
            await stream.send_initial_metadata()
            async for event in heard:
                await stream.send_message(inputs.StreamEventsResponse(event=_to_proto(event)))

    @contextlib.contextmanager
    def _listening(
        self, controller: Controller, wanted: Wanted, extra: dict[str, Any]
    ) -> Iterator[Heard]:
        audience = self._audiences.setdefault(controller, Audience(controller))
        heard = Heard(wanted)
        try:
            audience.join(heard, extra)
            yield heard
        finally:
            audience.leave(heard, extra)
            if audience.is_empty:
                self._audiences.pop(controller, None)


class Audience:
    """All who listen to one controller, which has room for one function for each kind of event."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._loop = asyncio.get_running_loop()
        self._members: list[Heard] = []
        self._wanted: Counter[tuple[Control, EventType]] = Counter()

    @property
    def is_empty(self) -> bool:
        return not self._members

    def join(self, heard: Heard, extra: dict[str, Any]) -> None:
        self._members.append(heard)
        for control, trigger in heard.wanted:
            heard.held.append((control, trigger))
            self._wanted[control, trigger] += 1
            if self._wanted[control, trigger] == 1:
                self._register(control, trigger, self._function(control, trigger), extra)

    def leave(self, heard: Heard, extra: dict[str, Any]) -> None:
        """Also when it could not quite join."""
        self._members.remove(heard)
        for control, trigger in heard.held:
            self._wanted[control, trigger] -= 1
            if self._wanted[control, trigger] == 0:
                with contextlib.suppress(Exception):
                    self._register(control, trigger, None, extra)

    def _register(
        self,
        control: Control,
        trigger: EventType,
        function: ControlFunction | None,
        extra: dict[str, Any],
    ) -> None:
        self._controller.register_control_callback(control, [trigger], function, extra=extra)

    def _function(self, control: Control, trigger: EventType) -> ControlFunction:
        def tell(event: Event) -> None:
            for member in self._members:
                if (control, trigger) in member.wanted:
                    member.add(event)

        def hear(event: Event) -> None:
            """A driver may call it from a thread of its own."""
            if _running_loop() is self._loop:
                tell(event)
            elif not self._loop.is_closed():
                self._loop.call_soon_threadsafe(tell, event)

        return hear


class Heard:
    """Events on their way to one reader. Ends with an error rather than leave some out: a button
    would stay pressed for ever."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.held: list[tuple[Control, EventType]] = []
        """What of it is registered."""
        self._waiting: deque[Event] = deque()
        self._missed = False
        self._news = asyncio.Event()

    def add(self, event: Event) -> None:
        if len(self._waiting) == MOST_WAITING:
            self._missed = True
        if not self._missed:
            self._waiting.append(event)
        self._news.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Nothing to come is an end, too."""
        while self.wanted:
            while self._waiting:
                yield self._waiting.popleft()
            if self._missed:
                raise FellBehind(f"{MOST_WAITING} events were waiting to be read: read them faster")
            self._news.clear()
            await self._news.wait()


def _wanted(request: inputs.StreamEventsRequest) -> Wanted:
    """Every event once, however many of its names are asked for."""
    wanted: set[tuple[Control, EventType]] = set()
    for each in request.events:
        control = _word(Control, "control", each.control)
        triggers = _triggers(each.events) - _triggers(each.cancelled_events)
        if EventType.ALL_EVENTS in triggers:
            triggers = {EventType.ALL_EVENTS}
        wanted |= {(control, trigger) for trigger in triggers}
    return frozenset(wanted)


def _triggers(names: Iterable[str]) -> set[EventType]:
    triggers = {_word(EventType, "event", name) for name in names}
    if EventType.BUTTON_CHANGE in triggers:
        triggers |= {EventType.BUTTON_PRESS, EventType.BUTTON_RELEASE}
    return triggers - {EventType.BUTTON_CHANGE}


def _word(kind: type[Word], called: str, text: str) -> Word:
    try:
        return kind(text)
    except ValueError:
        hint = did_you_mean(text, [each.value for each in kind])
        raise InvalidRequest(
            f'there is no {called} "{text}"{f": {hint}" if hint else ""}'
        ) from None


def _from_proto(event: inputs.Event) -> Event:
    """The time is 0 where none is given."""
    return Event(
        _seconds(event.time),
        _word(EventType, "event", event.event),
        _word(Control, "control", event.control),
        event.value,
    )


def _seconds(time: Timestamp) -> float:
    seconds = time.seconds + time.nanos / 1e9
    # A controller would keep it as its last event, which nobody could be told of then.
    if not _FIRST <= seconds < _AFTER_LAST:
        raise InvalidRequest(
            f"the event's time is {seconds:.0f} s after 1970, which is not between the years 1 "
            "and 9999; give it in seconds, or leave it out"
        )
    return seconds


def _to_proto(event: Event) -> inputs.Event:
    time = Timestamp()
    # In two parts: so many nanoseconds do not fit a float.
    seconds = math.floor(event.time)
    time.FromNanoseconds(seconds * 10**9 + round((event.time - seconds) * 1e9))
    return inputs.Event(
        time=time, event=event.event.value, control=event.control.value, value=event.value
    )


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None

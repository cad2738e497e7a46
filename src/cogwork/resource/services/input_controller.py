"""The input controller API.

The SDK's own service has several defects: a stream replaces the callbacks of another stream, stays
open only with grpclib, has an unbounded queue, and sends local times as UTC.
"""

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

from cogwork.config.check.diagnostics import did_you_mean
from cogwork.core.errors import InvalidRequest, SlowConsumer, Unsupported
from cogwork.graph.name import Api
from cogwork.resource.messages.structs import extra_to_dict
from cogwork.resource.services.resource_service import FindResource, ResourceService, time_left
from cogwork.wire.table.descriptor_service import UnaryHandler, methods_from_descriptor
from cogwork.wire.table.handlers import Method, Stream

_DESCRIPTOR = inputs.DESCRIPTOR.services_by_name["InputControllerService"]

MAX_QUEUED_EVENTS = 1024
_MIN_SECONDS, _MAX_SECONDS = -62_135_596_800, 253_402_300_800
"""The years 1 to 9999 in seconds since 1970: the range of a protobuf Timestamp."""

EventFilter = frozenset[tuple[Control, EventType]]
EnumT = TypeVar("EnumT", bound=Enum)


def input_controller_methods(api: Api, find: FindResource) -> Iterable[Method]:
    service = InputControllerService(api, find)
    streams = {"StreamEvents": service.stream_events}
    return methods_from_descriptor(_DESCRIPTOR, service.unary_handlers(), streams=streams)


class InputControllerService(ResourceService):
    def __init__(self, api: Api, find: FindResource) -> None:
        super().__init__(api, find)
        self._broadcasts: dict[Controller, EventBroadcast] = {}

    def unary_handlers(self) -> Mapping[str, UnaryHandler]:
        return {
            **super().unary_handlers(),
            "GetControls": self.get_controls,
            "GetEvents": self.get_events,
            "TriggerEvent": self.trigger_event,
            "GetGeometries": self.get_geometries,
        }

    async def get_controls(
        self, request: inputs.GetControlsRequest, stream: Stream
    ) -> inputs.GetControlsResponse:
        controls = await self.find_resource(request.controller).get_controls(
            extra=extra_to_dict(request.extra), timeout=time_left(stream), metadata=stream.metadata
        )
        return inputs.GetControlsResponse(controls=[control.value for control in controls])

    async def get_events(
        self, request: inputs.GetEventsRequest, stream: Stream
    ) -> inputs.GetEventsResponse:
        events = await self.find_resource(request.controller).get_events(
            extra=extra_to_dict(request.extra), timeout=time_left(stream), metadata=stream.metadata
        )
        return inputs.GetEventsResponse(events=[_to_proto(event) for event in events.values()])

    async def trigger_event(
        self, request: inputs.TriggerEventRequest, stream: Stream
    ) -> inputs.TriggerEventResponse:
        controller = self.find_resource(request.controller)
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
        controller = self.find_resource(request.controller)
        extra = extra_to_dict(request.extra)
        with self._subscribe(controller, _parse_filter(request), extra) as subscription:
            # The initial metadata tells clients that the stream is open, so that they miss no
            # event.
            await stream.send_initial_metadata()
            async for event in subscription:
                await stream.send_message(inputs.StreamEventsResponse(event=_to_proto(event)))

    @contextlib.contextmanager
    def _subscribe(
        self, controller: Controller, event_filter: EventFilter, extra: dict[str, Any]
    ) -> Iterator[EventSubscription]:
        broadcast = self._broadcasts.setdefault(controller, EventBroadcast(controller))
        subscription = EventSubscription(event_filter)
        try:
            broadcast.add(subscription, extra)
            yield subscription
        finally:
            broadcast.remove(subscription, extra)
            if broadcast.is_empty:
                self._broadcasts.pop(controller, None)


class EventBroadcast:
    """Distributes the events of a controller to several streams. The controller accepts only one
    callback per control and event."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._loop = asyncio.get_running_loop()
        self._subscriptions: list[EventSubscription] = []
        self._trigger_counts: Counter[tuple[Control, EventType]] = Counter()

    @property
    def is_empty(self) -> bool:
        return not self._subscriptions

    def add(self, subscription: EventSubscription, extra: dict[str, Any]) -> None:
        self._subscriptions.append(subscription)
        for control, trigger in subscription.event_filter:
            subscription.registered.append((control, trigger))
            self._trigger_counts[control, trigger] += 1
            if self._trigger_counts[control, trigger] == 1:
                self._register(control, trigger, self._make_callback(control, trigger), extra)

    def remove(self, subscription: EventSubscription, extra: dict[str, Any]) -> None:
        """Remove a subscription, even if `add` failed halfway."""
        self._subscriptions.remove(subscription)
        for control, trigger in subscription.registered:
            self._trigger_counts[control, trigger] -= 1
            if self._trigger_counts[control, trigger] == 0:
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

    def _make_callback(self, control: Control, trigger: EventType) -> ControlFunction:
        def distribute(event: Event) -> None:
            for subscription in self._subscriptions:
                if (control, trigger) in subscription.event_filter:
                    subscription.add(event)

        def callback(event: Event) -> None:
            # A driver may call this from another thread.
            if _get_running_loop() is self._loop:
                distribute(event)
            elif not self._loop.is_closed():
                self._loop.call_soon_threadsafe(distribute, event)

        return callback


class EventSubscription:
    """The queue of events for one client.

    An overflow ends the stream with an error. If events were dropped instead, a button whose
    release is dropped would stay pressed forever.
    """

    def __init__(self, event_filter: EventFilter) -> None:
        self.event_filter = event_filter
        self.registered: list[tuple[Control, EventType]] = []
        """The part of the filter that is registered with the broadcast."""
        self._queue: deque[Event] = deque()
        self._overflowed = False
        self._wakeup = asyncio.Event()

    def add(self, event: Event) -> None:
        if len(self._queue) == MAX_QUEUED_EVENTS:
            self._overflowed = True
        if not self._overflowed:
            self._queue.append(event)
        self._wakeup.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield events. An empty filter ends the stream immediately."""
        while self.event_filter:
            while self._queue:
                yield self._queue.popleft()
            if self._overflowed:
                raise SlowConsumer(
                    f"the client reads too slowly: {MAX_QUEUED_EVENTS} events were waiting"
                )
            self._wakeup.clear()
            await self._wakeup.wait()


def _parse_filter(request: inputs.StreamEventsRequest) -> EventFilter:
    """Return the requested events, without events that another requested type includes."""
    event_filter: set[tuple[Control, EventType]] = set()
    for each in request.events:
        control = _parse_enum(Control, "control", each.control)
        triggers = _parse_triggers(each.events) - _parse_triggers(each.cancelled_events)
        if EventType.ALL_EVENTS in triggers:
            triggers = {EventType.ALL_EVENTS}
        event_filter |= {(control, trigger) for trigger in triggers}
    return frozenset(event_filter)


def _parse_triggers(names: Iterable[str]) -> set[EventType]:
    triggers = {_parse_enum(EventType, "event", name) for name in names}
    if EventType.BUTTON_CHANGE in triggers:
        triggers |= {EventType.BUTTON_PRESS, EventType.BUTTON_RELEASE}
    return triggers - {EventType.BUTTON_CHANGE}


def _parse_enum(kind: type[EnumT], what: str, text: str) -> EnumT:
    try:
        return kind(text)
    except ValueError:
        hint = did_you_mean(text, [each.value for each in kind])
        raise InvalidRequest(f'there is no {what} "{text}"{f": {hint}" if hint else ""}') from None


def _from_proto(event: inputs.Event) -> Event:
    """Convert an event. A missing time becomes 0."""
    return Event(
        _to_seconds(event.time),
        _parse_enum(EventType, "event", event.event),
        _parse_enum(Control, "control", event.control),
        event.value,
    )


def _to_seconds(time: Timestamp) -> float:
    seconds = time.seconds + time.nanos / 1e9
    # Reject an invalid time now: the controller would keep the event as its last event, and clients
    # could not get it.
    if not _MIN_SECONDS <= seconds < _MAX_SECONDS:
        raise InvalidRequest(
            f"the event's time is {seconds:.0f} s after 1970, which is not between the years 1 "
            "and 9999; set it in seconds, or omit it"
        )
    return seconds


def _to_proto(event: Event) -> inputs.Event:
    time = Timestamp()
    # Convert in two parts: a float cannot represent that many nanoseconds exactly.
    seconds = math.floor(event.time)
    time.FromNanoseconds(seconds * 10**9 + round((event.time - seconds) * 1e9))
    return inputs.Event(
        time=time, event=event.event.value, control=event.control.value, value=event.value
    )


def _get_running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None

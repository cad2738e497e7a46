"""Event streams of any driver of the API, as the service provides them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from grpclib.const import Status
from h2.exceptions import StreamClosedError
from tests.support.machine.served import Serve, refused
from tests.support.waiting import poll
from viam.components.input import Control, ControlFunction, Controller, Event, EventType
from viam.components.input.client import ControllerClient
from viam.errors import NotSupportedError
from viam.proto.component.inputcontroller import (
    Event as EventMessage,
)
from viam.proto.component.inputcontroller import (
    InputControllerServiceStub,
    StreamEventsRequest,
    TriggerEventRequest,
)

from cogwork.resource.services.input_controller import MAX_QUEUED_EVENTS

SOUTH, EAST = Control.BUTTON_SOUTH, Control.BUTTON_EAST
PRESS = EventType.BUTTON_PRESS


class MinimalPad(Controller):
    """A minimal driver: one callback per kind of event, and no trigger_event."""

    def __init__(self) -> None:
        super().__init__("pad")
        self.functions: dict[tuple[Control, EventType], ControlFunction] = {}

    async def get_controls(self, **_: Any) -> list[Control]:
        return [SOUTH, EAST]

    async def get_events(self, **_: Any) -> dict[Control, Event]:
        return {SOUTH: press(0.0)}

    def register_control_callback(
        self,
        control: Control,
        triggers: list[EventType],
        function: ControlFunction | None,
        **_: Any,
    ) -> None:
        for trigger in triggers:
            if control is EAST and trigger is EventType.BUTTON_HOLD:
                raise ValueError("it does not last")
            if function is None:
                del self.functions[control, trigger]
            else:
                self.functions[control, trigger] = function

    def emit(self, event: Event) -> None:
        for trigger in (event.event, EventType.ALL_EVENTS):
            if (event.control, trigger) in self.functions:
                self.functions[event.control, trigger](event)


def press(read_value: float, control: Control = SOUTH) -> Event:
    return Event(1_700_000_000.25, PRESS, control, read_value)


@pytest.fixture
def pad() -> MinimalPad:
    return MinimalPad()


@pytest.fixture
async def channel(pad: MinimalPad, serve: Serve) -> AsyncIterator[Any]:
    async with serve(pad) as channel:
        yield channel


@contextlib.asynccontextmanager
async def streaming(channel: Any, *wanted: tuple[str, list[str], list[str]]) -> AsyncIterator[Any]:
    events = [
        StreamEventsRequest.Events(control=control, events=events, cancelled_events=cancelled)
        for control, events, cancelled in wanted
    ]
    stub = InputControllerServiceStub(channel)
    async with stub.StreamEvents.open(timeout=10) as stream:
        request = StreamEventsRequest(controller="pad", events=events)
        await stream.send_message(request, end=True)
        await stream.recv_initial_metadata()
        yield stream
        with contextlib.suppress(StreamClosedError):
            await stream.cancel()


async def receive_error(stream: Any) -> None:
    """Wait for an error that comes before any reply."""
    await stream.recv_message()
    await stream.recv_trailing_metadata()


async def read_value(stream: Any) -> float:
    reply = await stream.recv_message()
    assert reply is not None
    found: float = reply.event.value
    return found


def has_functions(pad: MinimalPad, channel: Any, count: int) -> Any:
    async def has_count() -> bool:
        await ControllerClient("pad", channel).get_controls()
        return len(pad.functions) == count

    return has_count


async def test_two_streams_of_the_same_event_both_receive_it(pad: MinimalPad, channel: Any) -> None:
    wanted: tuple[str, list[str], list[str]] = ("ButtonSouth", ["ButtonPress"], [])
    async with streaming(channel, wanted) as one:
        async with streaming(channel, wanted) as other:
            pad.emit(press(0.5))
            assert [await read_value(one), await read_value(other)] == [0.5, 0.5]
        pad.emit(press(0.75))
        assert await read_value(one) == 0.75
    await poll(has_functions(pad, channel, 0))


async def test_event_matching_several_kinds_is_sent_once(pad: MinimalPad, channel: Any) -> None:
    kinds = ["ButtonPress", "AllEvents", "ButtonChange"]
    async with streaming(channel, ("ButtonSouth", kinds, [])) as stream:
        for each in (0.1, 0.2):
            pad.emit(press(each))
        assert [await read_value(stream), await read_value(stream)] == [0.1, 0.2]


async def test_cancelled_event_kinds_are_not_sent(pad: MinimalPad, channel: Any) -> None:
    cancelled = ("ButtonSouth", ["ButtonPress", "ButtonRelease"], ["ButtonPress"])
    async with streaming(channel, cancelled, ("ButtonEast", ["ButtonPress"], [])) as stream:
        assert set(pad.functions) == {(SOUTH, EventType.BUTTON_RELEASE), (EAST, PRESS)}
        pad.emit(press(0.1))
        pad.emit(press(0.2, EAST))
        assert await read_value(stream) == 0.2


async def test_stream_without_events_ends_at_once(channel: Any) -> None:
    async with streaming(channel, ("ButtonSouth", [], ["ButtonPress"])) as stream:
        assert await stream.recv_message() is None


async def test_events_from_other_threads_are_sent(pad: MinimalPad, channel: Any) -> None:
    async with streaming(channel, ("ButtonSouth", ["ButtonPress"], [])) as stream:
        thread = threading.Thread(target=lambda: pad.emit(press(0.5)))
        thread.start()
        assert await read_value(stream) == 0.5
        thread.join()


async def test_event_times_do_not_depend_on_the_time_zone(
    pad: MinimalPad, channel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        async with streaming(channel, ("ButtonSouth", ["ButtonPress"], [])) as stream:
            pad.emit(press(1))
            reply = await stream.recv_message()
            assert (reply.event.time.seconds, reply.event.time.nanos) == (
                1_700_000_000,
                250_000_000,
            )
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_slow_stream_reader_gets_resource_exhausted(pad: MinimalPad, channel: Any) -> None:
    with refused() as told:
        async with streaming(channel, ("ButtonSouth", ["ButtonPress"], [])) as stream:
            for number in range(MAX_QUEUED_EVENTS + 10):
                pad.emit(press(number / 10_000))
            for number in range(MAX_QUEUED_EVENTS):
                assert await read_value(stream) == number / 10_000
            assert await stream.recv_message() is None
            await stream.recv_trailing_metadata()
    assert told.status is Status.RESOURCE_EXHAUSTED
    assert told.words == f"the client reads too slowly: {MAX_QUEUED_EVENTS} events were waiting"
    await poll(has_functions(pad, channel, 0))


async def test_refused_stream_does_not_affect_the_others(pad: MinimalPad, channel: Any) -> None:
    both = ["ButtonPress", "ButtonRelease"]
    async with streaming(channel, ("ButtonEast", both, [])) as staying:
        with refused():
            async with streaming(channel, ("ButtonEast", [*both, "ButtonHold"], [])) as stream:
                await receive_error(stream)
        assert len(pad.functions) == 2
        pad.emit(press(0.5, EAST))
        assert await read_value(staying) == 0.5


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (
            ("ButtonSooth", ["ButtonPress"], []),
            'there is no control "ButtonSooth": did you mean "ButtonSouth"?',
        ),
        (("", ["ButtonPress"], []), 'there is no control ""'),
        (("ButtonSouth", ["Tickle"], []), 'there is no event "Tickle"'),
        (
            ("ButtonSouth", [], ["ButtonPres"]),
            'there is no event "ButtonPres": did you mean "ButtonPress"?',
        ),
    ],
)
async def test_unknown_controls_and_events_are_refused(
    channel: Any, wanted: tuple[str, list[str], list[str]], words: str
) -> None:
    with refused() as told:
        async with streaming(channel, wanted) as stream:
            await receive_error(stream)
    assert (told.status, told.words) == (Status.INVALID_ARGUMENT, words)


async def test_driver_without_trigger_event_is_unsupported(channel: Any) -> None:
    with pytest.raises(NotSupportedError):
        await ControllerClient("pad", channel).trigger_event(press(1))


async def test_trigger_event_without_a_control_is_refused(channel: Any) -> None:
    stub = InputControllerServiceStub(channel)
    with refused() as told:
        await stub.TriggerEvent(
            TriggerEventRequest(controller="pad", event=EventMessage(event="ButtonPress"))
        )
    assert (told.status, told.words) == (Status.INVALID_ARGUMENT, 'there is no control ""')


async def test_client_receives_a_burst_in_order(pad: MinimalPad, channel: Any) -> None:
    heard: list[float] = []
    full = asyncio.Event()

    def record(event: Event) -> None:
        heard.append(event.value)
        if len(heard) == 100:
            full.set()

    client = ControllerClient("pad", channel)
    client.register_control_callback(SOUTH, [PRESS], record)
    await poll(has_functions(pad, channel, 1))
    for number in range(100):
        pad.emit(press(number))
    await asyncio.wait_for(full.wait(), 10)
    assert heard == list(range(100))

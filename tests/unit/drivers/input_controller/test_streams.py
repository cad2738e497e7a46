"""Streams of events from any driver of the API, as our service hands them out."""

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
from tests.served import Serve, refused, until
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

from cogwork.resource.input_controller_service import MAX_QUEUED_EVENTS

SOUTH, EAST = Control.BUTTON_SOUTH, Control.BUTTON_EAST
PRESS = EventType.BUTTON_PRESS


class Pad(Controller):
    """As small as a driver may be: one function for each kind of event, nothing to trigger."""

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

    def happen(self, event: Event) -> None:
        for trigger in (event.event, EventType.ALL_EVENTS):
            if (event.control, trigger) in self.functions:
                self.functions[event.control, trigger](event)


def press(value: float, control: Control = SOUTH) -> Event:
    return Event(1_700_000_000.25, PRESS, control, value)


@pytest.fixture
def pad() -> Pad:
    return Pad()


@pytest.fixture
async def channel(pad: Pad, serve: Serve) -> AsyncIterator[Any]:
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


async def refused_by(stream: Any) -> None:
    """An error that comes before any reply."""
    await stream.recv_message()
    await stream.recv_trailing_metadata()


async def value(stream: Any) -> float:
    reply = await stream.recv_message()
    assert reply is not None
    found: float = reply.event.value
    return found


def has_functions(pad: Pad, channel: Any, count: int) -> Any:
    async def it_has() -> bool:
        await ControllerClient("pad", channel).get_controls()
        return len(pad.functions) == count

    return it_has


async def test_two_who_want_the_same_both_get_it(pad: Pad, channel: Any) -> None:
    wanted: tuple[str, list[str], list[str]] = ("ButtonSouth", ["ButtonPress"], [])
    async with streaming(channel, wanted) as one:
        async with streaming(channel, wanted) as other:
            pad.happen(press(0.5))
            assert [await value(one), await value(other)] == [0.5, 0.5]
        pad.happen(press(0.75))
        assert await value(one) == 0.75
    await until(has_functions(pad, channel, 0))


async def test_an_event_comes_once_whatever_it_is_called(pad: Pad, channel: Any) -> None:
    kinds = ["ButtonPress", "AllEvents", "ButtonChange"]
    async with streaming(channel, ("ButtonSouth", kinds, [])) as stream:
        for each in (0.1, 0.2):
            pad.happen(press(each))
        assert [await value(stream), await value(stream)] == [0.1, 0.2]


async def test_what_is_cancelled_does_not_come(pad: Pad, channel: Any) -> None:
    cancelled = ("ButtonSouth", ["ButtonPress", "ButtonRelease"], ["ButtonPress"])
    async with streaming(channel, cancelled, ("ButtonEast", ["ButtonPress"], [])) as stream:
        assert set(pad.functions) == {(SOUTH, EventType.BUTTON_RELEASE), (EAST, PRESS)}
        pad.happen(press(0.1))
        pad.happen(press(0.2, EAST))
        assert await value(stream) == 0.2


async def test_who_wants_nothing_is_done_at_once(channel: Any) -> None:
    async with streaming(channel, ("ButtonSouth", [], ["ButtonPress"])) as stream:
        assert await stream.recv_message() is None


async def test_events_of_other_threads_come_too(pad: Pad, channel: Any) -> None:
    async with streaming(channel, ("ButtonSouth", ["ButtonPress"], [])) as stream:
        thread = threading.Thread(target=lambda: pad.happen(press(0.5)))
        thread.start()
        assert await value(stream) == 0.5
        thread.join()


async def test_times_are_kept_whatever_the_zone(
    pad: Pad, channel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        async with streaming(channel, ("ButtonSouth", ["ButtonPress"], [])) as stream:
            pad.happen(press(1))
            reply = await stream.recv_message()
            assert (reply.event.time.seconds, reply.event.time.nanos) == (
                1_700_000_000,
                250_000_000,
            )
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_who_reads_too_slowly_is_told_so(pad: Pad, channel: Any) -> None:
    with refused() as told:
        async with streaming(channel, ("ButtonSouth", ["ButtonPress"], [])) as stream:
            for number in range(MAX_QUEUED_EVENTS + 10):
                pad.happen(press(number / 10_000))
            for number in range(MAX_QUEUED_EVENTS):
                assert await value(stream) == number / 10_000
            assert await stream.recv_message() is None
            await stream.recv_trailing_metadata()
    assert told.status is Status.RESOURCE_EXHAUSTED
    assert told.words == f"{MAX_QUEUED_EVENTS} events were waiting to be read; read them faster"
    await until(has_functions(pad, channel, 0))


async def test_one_that_cannot_join_takes_nothing_from_the_others(pad: Pad, channel: Any) -> None:
    both = ["ButtonPress", "ButtonRelease"]
    async with streaming(channel, ("ButtonEast", both, [])) as staying:
        with refused():
            async with streaming(channel, ("ButtonEast", [*both, "ButtonHold"], [])) as stream:
                await refused_by(stream)
        assert len(pad.functions) == 2
        pad.happen(press(0.5, EAST))
        assert await value(staying) == 0.5


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
async def test_what_nobody_has_is_refused(
    channel: Any, wanted: tuple[str, list[str], list[str]], words: str
) -> None:
    with refused() as told:
        async with streaming(channel, wanted) as stream:
            await refused_by(stream)
    assert (told.status, told.words) == (Status.INVALID_ARGUMENT, words)


async def test_a_driver_that_cannot_trigger_says_so(channel: Any) -> None:
    with pytest.raises(NotSupportedError):
        await ControllerClient("pad", channel).trigger_event(press(1))


async def test_an_event_of_no_control_is_refused(channel: Any) -> None:
    stub = InputControllerServiceStub(channel)
    with refused() as told:
        await stub.TriggerEvent(
            TriggerEventRequest(controller="pad", event=EventMessage(event="ButtonPress"))
        )
    assert (told.status, told.words) == (Status.INVALID_ARGUMENT, 'there is no control ""')


async def test_the_client_hears_a_burst_in_order(pad: Pad, channel: Any) -> None:
    heard: list[float] = []
    full = asyncio.Event()

    def hear(event: Event) -> None:
        heard.append(event.value)
        if len(heard) == 100:
            full.set()

    client = ControllerClient("pad", channel)
    client.register_control_callback(SOUTH, [PRESS], hear)
    await until(has_functions(pad, channel, 1))
    for number in range(100):
        pad.happen(press(number))
    await asyncio.wait_for(full.wait(), 10)
    assert heard == list(range(100))

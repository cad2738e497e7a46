from __future__ import annotations

import asyncio
import typing
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.support.machine.served import Serve, refused
from tests.support.waiting import poll
from viam.components.input import Control, Event, EventType
from viam.components.input.client import ControllerClient

from cogwork.core.clock import ManualClock
from cogwork.drivers.input_controller.attributes import (
    ControlName,
    EventName,
    FakeInputControllerAttributes,
)
from cogwork.drivers.input_controller.fake import FakeInputController
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:input_controller/pad")
X, SOUTH, START = Control.ABSOLUTE_X, Control.BUTTON_SOUTH, Control.BUTTON_START
PRESS, RELEASE = EventType.BUTTON_PRESS, EventType.BUTTON_RELEASE


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000)


@pytest.fixture
async def controller(clock: ManualClock) -> FakeInputController:
    return await FakeInputController.new(NAME, FakeInputControllerAttributes(), {}, clock)


@pytest.fixture
async def client(controller: FakeInputController, serve: Serve) -> AsyncIterator[ControllerClient]:
    async with serve(controller) as channel:
        yield ControllerClient("pad", channel)


def event(
    kind: EventType = PRESS, control: Control = SOUTH, value: float = 1.0, time: float = 0.0
) -> Event:
    return Event(time, kind, control, value)


def has_callbacks(client: ControllerClient, count: int) -> Callable[[], Awaitable[bool]]:
    async def has_count() -> bool:
        return (await client.get_status())["callbacks"] == count

    return has_count


class EventLog(list[tuple[str, str, float]]):
    """Records the events passed to callbacks, except the SDK client's own connection events."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.full = asyncio.Event()

    def __call__(self, event: Event) -> None:
        if event.event not in (EventType.CONNECT, EventType.DISCONNECT):
            self.append((event.control.value, event.event.value, event.value))
        if len(self) == self._count:
            self.full.set()


async def test_controls_start_with_connect_events(client: ControllerClient) -> None:
    assert await client.get_controls() == [X, Control.ABSOLUTE_Y, SOUTH, START]
    events = await client.get_events()
    assert list(events) == await client.get_controls()
    assert {event.event for event in events.values()} == {EventType.CONNECT}


async def test_client_callbacks_receive_triggered_events(
    client: ControllerClient, serve: Serve, controller: FakeInputController
) -> None:
    presses, everything = EventLog(2), EventLog(3)
    client.register_control_callback(SOUTH, [PRESS], presses)
    client.register_control_callback(START, [EventType.ALL_EVENTS], everything)
    await poll(has_callbacks(client, 2))
    async with serve(controller) as channel:
        other = ControllerClient("pad", channel)
        await other.trigger_event(event(PRESS, SOUTH, 1))
        await other.trigger_event(event(RELEASE, SOUTH, 0))
        await other.trigger_event(event(PRESS, SOUTH, 0.5))
        for kind in (PRESS, EventType.BUTTON_HOLD, RELEASE):
            await other.trigger_event(event(kind, START))
    await asyncio.wait_for(asyncio.gather(presses.full.wait(), everything.full.wait()), 10)
    assert presses == [("ButtonSouth", "ButtonPress", 1), ("ButtonSouth", "ButtonPress", 0.5)]
    assert [kind for _, kind, _ in everything] == ["ButtonPress", "ButtonHold", "ButtonRelease"]


async def test_button_change_means_press_and_release(client: ControllerClient) -> None:
    changes = EventLog(2)
    client.register_control_callback(SOUTH, [EventType.BUTTON_CHANGE], changes)
    await poll(has_callbacks(client, 2))
    for kind in (PRESS, EventType.BUTTON_HOLD, RELEASE):
        await client.trigger_event(event(kind))
    await asyncio.wait_for(changes.full.wait(), 10)
    assert [kind for _, kind, _ in changes] == ["ButtonPress", "ButtonRelease"]


async def test_last_event_of_each_control_is_kept(
    controller: FakeInputController, clock: ManualClock
) -> None:
    await controller.trigger_event(event(PRESS, time=5))
    await clock.advance(3)
    await controller.trigger_event(event(RELEASE, value=0))
    events = await controller.get_events()
    assert events[SOUTH] == Event(1_700_000_003, RELEASE, SOUTH, 0)
    assert events[START].event is EventType.CONNECT


async def test_scripted_events_repeat_in_rounds(clock: ManualClock) -> None:
    script = [
        {"at": "500ms", "control": "ButtonSouth", "event": "ButtonRelease"},
        {"at": "0s", "control": "ButtonSouth", "event": "ButtonPress", "value": 1},
    ]
    attributes = FakeInputControllerAttributes.model_validate({"events": script, "round": "2s"})
    controller = await FakeInputController.new(NAME, attributes, {}, clock)
    heard: list[tuple[float, EventType]] = []
    controller.register_control_callback(
        SOUTH, [PRESS, RELEASE], lambda event: heard.append((event.time, event.event))
    )
    await clock.advance(4.25)
    start = 1_700_000_000
    assert heard == [
        (start, PRESS),
        (start + 0.5, RELEASE),
        (start + 2, PRESS),
        (start + 2.5, RELEASE),
        (start + 4, PRESS),
    ]
    assert (await controller.get_events())[SOUTH].event is PRESS
    await controller.close()
    await clock.advance(10)
    assert len(heard) == 5


async def test_configured_value_is_reported_periodically(clock: ManualClock) -> None:
    attributes = FakeInputControllerAttributes.model_validate(
        {"controls": ["AbsoluteX"], "callback_delay_sec": 0.5, "event_value": 0.25}
    )
    controller = await FakeInputController.new(NAME, attributes, {}, clock)
    heard: list[Event] = []
    controller.register_control_callback(X, [EventType.ALL_EVENTS], heard.append)
    await clock.advance(1.1)
    assert [(each.event, each.value) for each in heard] == [
        (EventType.POSITION_CHANGE_ABSOLUTE, 0.25)
    ] * 3
    await controller.close()


async def test_failing_callback_does_not_affect_the_others(
    controller: FakeInputController, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Event) -> None:
        raise ValueError("no")

    heard: list[Event] = []
    controller.register_control_callback(SOUTH, [PRESS], fail)
    controller.register_control_callback(SOUTH, [EventType.ALL_EVENTS], heard.append)
    await controller.trigger_event(event())
    assert len(heard) == 1
    assert "a callback for the control ButtonSouth failed" in caplog.text


@pytest.mark.parametrize(
    ("wrong", "status", "words"),
    [
        (
            event(control=Control.BUTTON_MENU),
            Status.NOT_FOUND,
            'input controller "pad" has no control ButtonMenu: '
            "it has AbsoluteX, AbsoluteY, ButtonSouth, ButtonStart",
        ),
        (
            event(value=2),
            Status.INVALID_ARGUMENT,
            'input controller "pad" accepts event values from -1 to 1, not 2',
        ),
        (
            event(EventType.ALL_EVENTS),
            Status.INVALID_ARGUMENT,
            "AllEvents stands for several events: trigger one of them",
        ),
    ],
)
async def test_invalid_events_are_refused(
    client: ControllerClient, wrong: Event, status: Status, words: str
) -> None:
    with refused() as told:
        await client.trigger_event(wrong)
    assert (told.status, told.words) == (status, words)


async def test_status_of_the_controller(client: ControllerClient) -> None:
    await client.trigger_event(event(value=0.5))
    assert await client.get_geometries() == []
    assert await client.get_status() == {
        "events": 1,
        "values": {"AbsoluteX": 0, "AbsoluteY": 0, "ButtonSouth": 0.5, "ButtonStart": 0},
        "callbacks": 0,
    }


def test_names_in_the_configuration_match_the_api() -> None:
    assert set(typing.get_args(ControlName)) == {control.value for control in Control}
    for_listeners = {EventType.ALL_EVENTS.value, EventType.BUTTON_CHANGE.value}
    kinds = {kind.value for kind in EventType}
    assert set(typing.get_args(EventName)) == kinds - for_listeners


@pytest.mark.parametrize(
    "attributes",
    [
        {"controls": ["ButtonNowhere"]},
        {"controls": [], "events": [{"control": "ButtonEast", "event": "ButtonPress"}]},
        {"events": [{"control": "ButtonSouth", "event": "AllEvents"}]},
        {"events": [{"control": "ButtonSouth", "event": "ButtonPress", "value": 2}]},
        {
            "events": [{"control": "ButtonSouth", "event": "ButtonPress", "at": "3s"}],
            "round": "2s",
        },
        {
            "events": [{"control": "ButtonSouth", "event": "ButtonPress"}],
            "callback_delay_sec": 1,
        },
        {"round": "1ms"},
        {"callback_delay_sec": 0},
    ],
)
def test_invalid_attributes_are_refused(attributes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        FakeInputControllerAttributes.model_validate(attributes)

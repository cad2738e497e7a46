from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from evdev import UInput, ecodes
from grpclib.const import Status
from tests.support.machine.served import Serve, refused
from tests.support.waiting import advance_until, poll
from tests.unit.drivers.input_controller.pads import AXES, BUTTONS, FakeDesk, FakePad
from viam.components.input import Control, Event, EventType
from viam.components.input.client import ControllerClient

from cogwork.core.clock import ManualClock
from cogwork.core.errors import NotFound
from cogwork.drivers.input_controller import gamepad_device
from cogwork.drivers.input_controller.attributes import GamepadAttributes
from cogwork.drivers.input_controller.gamepad import Gamepad
from cogwork.drivers.input_controller.gamepad_device import GamepadFault, open_gamepad
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:input_controller/g")
CONTROLS = 8


@pytest.fixture
def desk() -> FakeDesk:
    return FakeDesk()


@pytest.fixture
async def gamepad(desk: FakeDesk, clock: ManualClock) -> AsyncIterator[Gamepad]:
    gamepad = await Gamepad.new(NAME, GamepadAttributes(), {}, clock, desk.find)
    yield gamepad
    await gamepad.close()


@pytest.fixture
async def pad(desk: FakeDesk, gamepad: Gamepad, clock: ManualClock) -> FakePad:
    return await plug_in(desk, gamepad, clock)


async def plug_in(desk: FakeDesk, gamepad: Gamepad, clock: ManualClock) -> FakePad:
    desk.pad = FakePad()
    await advance_until(clock, lambda: gamepad.fault is None)
    return desk.pad


@pytest.fixture
async def client(gamepad: Gamepad, serve: Serve) -> AsyncIterator[ControllerClient]:
    async with serve(gamepad) as channel:
        yield ControllerClient("g", channel)


async def test_device_events_update_the_controls(
    client: ControllerClient, pad: FakePad, gamepad: Gamepad
) -> None:
    assert len(await client.get_controls()) == CONTROLS
    pad.emit(ecodes.EV_KEY, ecodes.BTN_SOUTH, 1)
    pad.emit(ecodes.EV_ABS, ecodes.ABS_X, -32768)
    pad.emit(ecodes.EV_SYN, ecodes.SYN_REPORT, 0)

    async def is_received() -> bool:
        return (await client.get_events())[Control.ABSOLUTE_X].value == -1

    await poll(is_received)
    pressed = (await gamepad.get_events())[Control.BUTTON_SOUTH]
    assert pressed == Event(100.5, EventType.BUTTON_PRESS, Control.BUTTON_SOUTH, 1.0)
    status = await client.get_status()
    assert (status["device"], status["reason"]) == ("/dev/input/event7 (Test Pad)", "")
    assert await client.get_geometries() == []


async def test_callbacks_receive_the_events_they_registered_for(
    gamepad: Gamepad, pad: FakePad, clock: ManualClock
) -> None:
    heard: list[tuple[str, EventType]] = []

    def listen(name: str, *triggers: EventType) -> None:
        gamepad.register_control_callback(
            Control.BUTTON_SOUTH, list(triggers), lambda event: heard.append((name, event.event))
        )

    listen("change", EventType.BUTTON_CHANGE)
    listen("all", EventType.ALL_EVENTS)
    for value in (1, 2, 0):
        pad.emit(ecodes.EV_KEY, ecodes.BTN_SOUTH, value)
    await advance_until(clock, lambda: len(heard) >= 5)
    press, hold, release = (
        EventType.BUTTON_PRESS,
        EventType.BUTTON_HOLD,
        EventType.BUTTON_RELEASE,
    )
    assert heard == [
        ("change", press),
        ("all", press),
        ("all", hold),
        ("change", release),
        ("all", release),
    ]
    gamepad.register_control_callback(Control.BUTTON_SOUTH, [EventType.ALL_EVENTS], None)
    gamepad.register_control_callback(Control.BUTTON_SOUTH, [EventType.BUTTON_CHANGE], None)
    pad.emit(ecodes.EV_KEY, ecodes.BTN_SOUTH, 1)
    await advance_until(clock, lambda: gamepad._events[Control.BUTTON_SOUTH].event is press)
    assert len(heard) == 5


async def test_failing_callback_does_not_affect_the_others(
    gamepad: Gamepad, pad: FakePad, clock: ManualClock
) -> None:
    heard: list[Event] = []

    def fail(_: Event) -> None:
        raise ZeroDivisionError

    gamepad.register_control_callback(Control.BUTTON_START, [EventType.BUTTON_PRESS], fail)
    gamepad.register_control_callback(Control.BUTTON_START, [EventType.ALL_EVENTS], heard.append)
    pad.emit(ecodes.EV_KEY, ecodes.BTN_START, 1)
    await advance_until(clock, lambda: heard)


async def test_unknown_control_is_refused(gamepad: Gamepad, pad: FakePad) -> None:
    with pytest.raises(NotFound, match="has no control ButtonRecord: it has AbsoluteX, "):
        gamepad.register_control_callback(Control.BUTTON_RECORD, [], None)


async def test_unplugged_gamepad_disconnects_and_reconnects(
    client: ControllerClient, gamepad: Gamepad, pad: FakePad, desk: FakeDesk, clock: ManualClock
) -> None:
    heard: list[Event] = []
    gamepad.register_control_callback(Control.ABSOLUTE_Z, [EventType.ALL_EVENTS], heard.append)
    pad.emit(ecodes.EV_ABS, ecodes.ABS_Z, 255)
    await advance_until(clock, lambda: heard)
    pad.unplug()
    await advance_until(clock, lambda: len(heard) == 2)
    assert gamepad.fault is not None
    assert (heard[1].event, heard[1].value) == (EventType.DISCONNECT, 0)
    assert len(await client.get_controls()) == CONTROLS
    await plug_in(desk, gamepad, clock)
    assert (heard[2].event, heard[2].value) == (EventType.CONNECT, -1)


async def test_calls_without_a_gamepad_are_unavailable(
    client: ControllerClient, gamepad: Gamepad, clock: ManualClock
) -> None:
    await advance_until(clock, lambda: gamepad.fault == "no gamepad is at hand")
    for asking in (client.get_controls(), client.get_events()):
        with refused() as told:
            await asking
        assert (told.status, told.words) == (Status.UNAVAILABLE, "no gamepad is at hand")
    gamepad.register_control_callback(Control.BUTTON_RECORD, [EventType.ALL_EVENTS], print)


@pytest.mark.parametrize(
    "fault", [OSError(errno.ENODEV, "No such device"), ValueError("what is that?")]
)
async def test_search_for_the_gamepad_is_retried_after_any_error(
    gamepad: Gamepad, desk: FakeDesk, clock: ManualClock, fault: Exception
) -> None:
    desk.fault = fault
    await advance_until(clock, lambda: gamepad.fault == f"the gamepad cannot be read: {fault}")
    desk.fault = None
    await plug_in(desk, gamepad, clock)


async def test_state_is_read_again_after_dropped_kernel_events(
    gamepad: Gamepad, pad: FakePad, clock: ManualClock
) -> None:
    heard: list[Event] = []
    for control in await gamepad.get_controls():
        gamepad.register_control_callback(control, [EventType.ALL_EVENTS], heard.append)
    pad.pressed = [ecodes.BTN_TL]
    pad.emit(ecodes.EV_SYN, ecodes.SYN_DROPPED, 0)
    await advance_until(clock, lambda: heard)
    assert [(event.event, event.control) for event in heard] == [
        (EventType.BUTTON_PRESS, Control.BUTTON_LT)
    ]


async def test_missing_and_wrong_devices_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(GamepadFault, match='plug the gamepad in or change "device"'):
        open_gamepad(str(tmp_path / "none"))
    (tmp_path / "event0").touch()
    with pytest.raises(GamepadFault, match="cannot be opened"):
        open_gamepad(str(tmp_path / "event0"))
    monkeypatch.setattr(gamepad_device, "DEVICES", tmp_path)
    with pytest.raises(GamepadFault, match="no gamepad is plugged in"):
        open_gamepad("")


def test_device_unplugged_during_the_search_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pad = FakePad()

    def fail() -> Any:
        raise OSError(errno.ENODEV, "No such device")

    (tmp_path / "event3").touch()
    monkeypatch.setattr(pad, "capabilities", fail)
    monkeypatch.setattr(gamepad_device, "DEVICES", tmp_path)
    monkeypatch.setattr(gamepad_device, "InputDevice", lambda _: pad)
    with pytest.raises(GamepadFault, match="no gamepad is plugged in"):
        open_gamepad("")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(pad.fd)


def test_missing_permission_for_the_device_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The permission error is simulated, because root may open anything."""

    def refuse(path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    (tmp_path / "event3").touch()
    monkeypatch.setattr(gamepad_device, "DEVICES", tmp_path)
    monkeypatch.setattr(gamepad_device, "InputDevice", refuse)
    for path in ("", str(tmp_path / "event3")):
        with pytest.raises(GamepadFault) as error:
            open_gamepad(path)
        assert f"permission denied for {tmp_path}/event3: run `sudo usermod -aG input" in str(
            error.value
        )


async def test_real_kernel_device_is_read(clock: ManualClock) -> None:
    """This is skipped where no virtual device can be created."""
    capabilities = {ecodes.EV_KEY: BUTTONS, ecodes.EV_ABS: list(AXES.items())}
    try:
        made = UInput(capabilities, name="Cogwork Test Pad")
    except Exception as error:
        pytest.skip(f"no device can be made here: {error}")
    with made:
        path = str(made.device.path)
        gamepad = await Gamepad.new(NAME, GamepadAttributes(device=path), {}, clock)
        try:
            await advance_until(clock, lambda: gamepad.fault is None)
            made.write(ecodes.EV_KEY, ecodes.BTN_SOUTH, 1)
            made.syn()
            await advance_until(clock, lambda: gamepad._events[Control.BUTTON_SOUTH].value == 1)
        finally:
            await gamepad.close()

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.support.machine.served import Serve, refused
from tests.unit.drivers.gpio.wiring import BOARD, RecordingBoard
from viam.components.encoder import Encoder
from viam.components.motor import Motor
from viam.components.motor.client import MotorClient
from viam.proto.component.encoder import PositionType

from cogwork.core.clock import ManualClock
from cogwork.core.errors import Interrupted, Unsupported
from cogwork.drivers.encoder.attributes import SingleEncoderAttributes
from cogwork.drivers.encoder.gpio_single import SingleEncoder
from cogwork.drivers.gpio.pin_link import NoAnswer
from cogwork.drivers.motor.attributes import GpioMotorAttributes
from cogwork.drivers.motor.gpio import GpioMotor, MotorStalled
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:motor/m")
ENCODER = ResourceName.parse("rdk:component:encoder/e")
ATTRIBUTES: dict[str, Any] = {
    "board": "pins",
    "pins": {"dir": "d", "pwm": "p"},
    "max_rpm": 120,
}


class Shaft(Encoder):
    """Turns as the motor's pins demand, two revolutions per second at full power."""

    def __init__(self, board: RecordingBoard, clock: ManualClock) -> None:
        super().__init__("e")
        self.factor = 1.0
        self.ticks = 400
        """Of one revolution."""
        self.whole = 0.0
        """Revolutions that it really turned."""
        self.answers = asyncio.Event()
        self.answers.set()
        self._board = board
        self._clock = clock
        self._since = clock.monotonic()
        self._turned = 0.0

    async def get_position(
        self, position_type: PositionType.ValueType | None = None, **_: Any
    ) -> tuple[float, PositionType.ValueType]:
        await self.answers.wait()
        now = self._clock.monotonic()
        side = 1 if self._board.level("d") else -1
        turned = self._board.level("p") * side * 2 * (now - self._since) * self.factor
        self.whole += turned
        self._turned += turned
        self._since = now
        return round(self._turned * self.ticks), PositionType.POSITION_TYPE_TICKS_COUNT

    async def reset_position(self, **_: Any) -> None:
        self._turned = 0.0

    async def get_properties(self, **_: Any) -> Encoder.Properties:
        return Encoder.Properties(True, False)


@pytest.fixture
async def shaft(board: RecordingBoard, clock: ManualClock) -> Shaft:
    return Shaft(board, clock)


async def create_motor(
    board: RecordingBoard, clock: ManualClock, shaft: Encoder | None = None, **attributes: Any
) -> GpioMotor:
    given = {**ATTRIBUTES, **attributes}
    dependencies: dict[ResourceName, object] = {BOARD: board}
    if shaft is not None:
        given |= {"encoder": "e", "ticks_per_rotation": getattr(shaft, "ticks", 400)}
        dependencies[ENCODER] = shaft
    return await GpioMotor.new(NAME, GpioMotorAttributes(**given), dependencies, clock)


@pytest.fixture
async def motor(board: RecordingBoard, clock: ManualClock) -> GpioMotor:
    return await create_motor(board, clock)


@pytest.fixture
async def client(motor: GpioMotor, serve: Serve) -> AsyncIterator[MotorClient]:
    async with serve(motor) as channel:
        yield MotorClient("m", channel)


def levels(board: RecordingBoard) -> tuple[float, float]:
    return board.level("d"), board.level("p")


async def test_power_and_speed_are_set_on_the_pins(
    client: MotorClient, board: RecordingBoard
) -> None:
    assert levels(board) == (0, 0)
    await client.set_power(0.5)
    assert levels(board) == (1, 0.5)
    assert await client.is_moving()
    assert await client.is_powered() == (True, 0.5)
    await client.set_rpm(-30)
    assert levels(board) == (0, 0.25)
    await client.stop()
    assert levels(board) == (0, 0)
    assert await client.is_powered() == (False, 0)


async def test_power_is_removed_before_the_direction_changes(
    motor: GpioMotor, board: RecordingBoard
) -> None:
    await motor.set_power(1)
    board.writes.clear()
    await motor.set_power(-1)
    assert board.writes[:2] == [("p", 0.0), ("d", 0.0)]
    assert board.writes[-1] == ("p", 1.0)


async def test_repeated_power_writes_no_pins_but_stop_always_does(
    motor: GpioMotor, board: RecordingBoard
) -> None:
    """Another client may have set the pins meanwhile."""
    for command, writes in ((motor.set_power(0.5), 2), (motor.set_power(0.5), 0)):
        board.writes.clear()
        await command
        assert len(board.writes) == writes
    await motor.stop()
    await (await board.gpio_pin_by_name("p")).set_pwm(1)
    await motor.stop()
    assert board.level("p") == 0


async def test_dir_flip_reverses_the_direction(board: RecordingBoard, clock: ManualClock) -> None:
    motor = await create_motor(board, clock, dir_flip=True)
    await motor.set_power(0.5)
    assert levels(board) == (0, 0.5)
    assert await motor.is_powered() == (True, 0.5)


async def test_power_limits_are_applied(board: RecordingBoard, clock: ManualClock) -> None:
    motor = await create_motor(board, clock, min_power_pct=0.2, max_power_pct=0.8)
    for power, given in ((0.1, 0.2), (-0.1, 0.2), (0.5, 0.5), (1, 0.8), (0, 0)):
        await motor.set_power(power)
        assert board.level("p") == given


async def test_pwm_frequency_is_set(board: RecordingBoard, clock: ManualClock) -> None:
    await create_motor(board, clock, pins={"a": "x", "b": "y"}, pwm_freq=2000)
    for name in "xy":
        assert await (await board.gpio_pin_by_name(name)).get_pwm_frequency() == 2000


async def test_close_stops_the_motor(motor: GpioMotor, board: RecordingBoard) -> None:
    await motor.set_power(1)
    await motor.close()
    assert levels(board) == (0, 0)


async def test_go_for_is_timed_without_an_encoder(
    motor: GpioMotor, board: RecordingBoard, clock: ManualClock
) -> None:
    going = asyncio.ensure_future(motor.go_for(60, -2))
    await clock.advance(1.99)
    assert levels(board) == (0, 0.5)
    assert not going.done()
    await clock.advance(0.01)
    await going
    assert levels(board) == (0, 0)


@pytest.mark.parametrize(
    ("limits", "rpm", "power"),
    [({"max_power_pct": 0.5}, 120, 0.5), ({"min_power_pct": 0.5}, 15, 0.5)],
)
async def test_power_limits_do_not_change_the_distance(
    board: RecordingBoard, clock: ManualClock, limits: dict[str, Any], rpm: float, power: float
) -> None:
    motor = await create_motor(board, clock, **limits)
    going = asyncio.ensure_future(motor.go_for(rpm, 3))
    # At half power it makes one revolution per second.
    await clock.advance(2.99)
    assert levels(board) == (1, power)
    assert not going.done()
    await clock.advance(0.01)
    await asyncio.wait_for(going, 1)
    assert levels(board)[1] == 0


async def test_older_move_is_told_what_interrupted_it(
    motor: GpioMotor, board: RecordingBoard, clock: ManualClock
) -> None:
    going = asyncio.ensure_future(motor.go_for(60, 2))
    await clock.advance(1)
    await motor.set_power(-0.25)
    with pytest.raises(Interrupted, match="did not finish go_for: interrupted by set_power"):
        await going
    await clock.advance(10)
    assert levels(board) == (0, 0.25)


@pytest.mark.parametrize("encoded", [False, True])
async def test_cancelled_move_stops_the_motor(
    board: RecordingBoard, clock: ManualClock, shaft: Shaft, encoded: bool
) -> None:
    motor = await create_motor(board, clock, shaft if encoded else None)
    going = asyncio.ensure_future(motor.go_for(60, 100))
    await clock.advance(1)
    assert await motor.is_moving()
    going.cancel()
    with pytest.raises(asyncio.CancelledError):
        await going
    assert levels(board)[1] == 0
    assert not await motor.is_moving()


async def test_failing_pin_stops_the_motor(motor: GpioMotor, board: RecordingBoard) -> None:
    """The other pins are set to rest; the motor counts as moving, because it may be."""
    await motor.set_power(0.5)
    board.broken = "d"
    with pytest.raises(OSError, match="loose"):
        await motor.set_power(-0.5)
    assert board.level("p") == 0
    assert await motor.is_moving()
    board.broken = None
    await motor.stop()
    assert not await motor.is_moving()


@pytest.fixture
def short_answer_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give boards and encoders only a moment to answer."""
    monkeypatch.setattr("cogwork.drivers.gpio.pin_link.ANSWER_TIMEOUT", 0.02)


@pytest.mark.usefixtures("short_answer_timeout")
async def test_pin_that_does_not_answer_does_not_block_stop(
    board: RecordingBoard, clock: ManualClock
) -> None:
    motor = await create_motor(board, clock, pins={"a": "a", "b": "b", "pwm": "p", "en_high": "e"})
    await motor.set_power(1)
    board.gates["p"] = asyncio.Event()
    older = asyncio.ensure_future(motor.set_power(0.5))
    await clock.settle()
    with pytest.raises(NoAnswer, match='pin "p" of board "pins" did not answer within'):
        await asyncio.wait_for(motor.stop(), 10)
    assert [board.level(name) for name in "abe"] == [0, 0, 0]
    assert await motor.is_moving()
    with pytest.raises(NoAnswer):
        await older


async def test_cancelled_stop_still_stops_the_motor(
    board: RecordingBoard, clock: ManualClock
) -> None:
    """This holds while it waits for a pin that does not answer, or for another command."""
    motor = await create_motor(board, clock, pins={"a": "a", "b": "b", "pwm": "p", "en_high": "e"})
    for busy in (False, True):
        await motor.set_power(1)
        board.gates["p"] = gate = asyncio.Event()
        older = asyncio.ensure_future(motor.set_power(0.5 if busy else 1))
        await clock.settle()
        stop = asyncio.ensure_future(motor.stop())
        await clock.settle()
        stop.cancel()
        if busy:
            await clock.settle()
            gate.set()
        await asyncio.wait([stop, older])
        assert stop.cancelled()
        assert [board.level(name) for name in "abe"] == [0, 0, 0]
        gate.set()
        board.gates.clear()
        await motor.stop()


async def test_stop_overrides_a_move_that_still_reads_the_position(
    board: RecordingBoard, clock: ManualClock, shaft: Shaft
) -> None:
    motor = await create_motor(board, clock, shaft)
    for move in (motor.go_for(60, 2), motor.go_to(60, 2)):
        shaft.answers.clear()
        going = asyncio.ensure_future(move)
        await clock.settle()
        await motor.stop()
        shaft.answers.set()
        await clock.advance(1)
        with pytest.raises(Interrupted, match="interrupted by stop"):
            await asyncio.wait_for(going, 10)
        assert levels(board)[1] == 0


@pytest.mark.usefixtures("short_answer_timeout")
async def test_encoder_that_does_not_answer_ends_the_move(
    board: RecordingBoard, clock: ManualClock, shaft: Shaft
) -> None:
    motor = await create_motor(board, clock, shaft)
    going = asyncio.ensure_future(motor.go_for(60, 100))
    await clock.advance(1)
    assert levels(board)[1] == 0.5
    shaft.answers.clear()
    await clock.advance(1)
    with pytest.raises(NoAnswer, match='encoder "e" did not answer within'):
        await asyncio.wait_for(going, 10)
    assert levels(board)[1] == 0


async def test_moves_with_an_encoder_reach_their_positions(
    board: RecordingBoard, clock: ManualClock, shaft: Shaft
) -> None:
    motor = await create_motor(board, clock, shaft)
    assert (await motor.get_properties()).position_reporting
    for move, end in (
        (motor.go_for(60, 1.5), 1.5),
        (motor.go_to(-90, 0.25), 0.25),
        (motor.go_for(-120, 0.5), -0.25),
    ):
        going = asyncio.ensure_future(move)
        await clock.advance(5)
        await going
        assert await motor.get_position() == pytest.approx(end, abs=0.01)
        assert not await motor.is_moving()
    await motor.reset_zero_position(0.5)
    assert await motor.get_position() == -0.5


async def test_load_only_delays_the_move(
    board: RecordingBoard, clock: ManualClock, shaft: Shaft
) -> None:
    shaft.factor = 0.3
    motor = await create_motor(board, clock, shaft)
    going = asyncio.ensure_future(motor.go_for(60, 1))
    await clock.advance(2)
    assert not going.done()
    await clock.advance(5)
    await going
    assert await motor.get_position() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("factor", "words"),
    [(0.0, "reported no motion for 3 s"), (-1.0, "its encoder counts in the wrong direction")],
)
async def test_stalled_or_reversed_motor_is_stopped(
    board: RecordingBoard, clock: ManualClock, shaft: Shaft, factor: float, words: str
) -> None:
    shaft.factor = factor
    motor = await create_motor(board, clock, shaft)
    going = asyncio.ensure_future(motor.go_for(60, 5))
    await clock.advance(4)
    with pytest.raises(MotorStalled, match=words):
        await going
    assert levels(board)[1] == 0


async def test_encoder_with_few_ticks_gets_more_time(
    board: RecordingBoard, clock: ManualClock, shaft: Shaft
) -> None:
    """A tick comes every six seconds."""
    shaft.ticks = 1
    motor = await create_motor(board, clock, shaft)
    going = asyncio.ensure_future(motor.go_for(10, 3))
    await clock.advance(20)
    await asyncio.wait_for(going, 1)
    assert await motor.get_position() == 3
    shaft.factor = 0.0
    going = asyncio.ensure_future(motor.go_for(10, 3))
    await clock.advance(17.9)
    assert not going.done()
    await clock.advance(0.2)
    with pytest.raises(MotorStalled, match="reported no motion for 18 s"):
        await asyncio.wait_for(going, 1)


async def test_lower_power_limit_extends_the_stall_timeout(
    board: RecordingBoard, clock: ManualClock, shaft: Shaft
) -> None:
    shaft.ticks = 1
    motor = await create_motor(board, clock, shaft, max_power_pct=0.1)
    going = asyncio.ensure_future(motor.go_for(120, 2))
    await clock.advance(12)
    await asyncio.wait_for(going, 1)
    assert await motor.get_position() == 2


@pytest.mark.parametrize("by", ["motor", "encoder"])
@pytest.mark.parametrize("to", [5.0, -5.0])
@pytest.mark.parametrize("command", ["go_for", "go_to"])
async def test_zero_set_during_a_move_does_not_change_its_end(
    board: RecordingBoard, clock: ManualClock, shaft: Shaft, command: str, to: float, by: str
) -> None:
    motor = await create_motor(board, clock, shaft)
    await motor.reset_zero_position(-1)
    assert await motor.get_position() == 1
    end = to if command == "go_for" else to - 1
    going = asyncio.ensure_future(getattr(motor, command)(60, to))
    for seconds in (1.5, 2.0):
        await clock.advance(seconds)
        if by == "motor":
            await motor.reset_zero_position(0.75)
        else:
            await shaft.reset_position()
    assert not going.done()
    await clock.advance(5)
    await asyncio.wait_for(going, 1)
    assert shaft.whole == pytest.approx(end, abs=0.05)


async def test_concurrent_resets_of_the_zero_position_agree(
    board: RecordingBoard, clock: ManualClock, shaft: Shaft
) -> None:
    motor = await create_motor(board, clock, shaft)
    going = asyncio.ensure_future(motor.go_for(60, 1.5))
    await clock.advance(2)
    await asyncio.wait_for(going, 1)
    shaft.answers.clear()
    both = [asyncio.ensure_future(motor.reset_zero_position(0)) for _ in range(2)]
    await clock.settle()
    shaft.answers.set()
    await asyncio.gather(*both)
    assert await motor.get_position() == 0


async def test_motor_sets_the_direction_of_a_single_encoder(
    board: RecordingBoard, clock: ManualClock
) -> None:
    attributes = SingleEncoderAttributes.model_validate({"board": "pins", "pins": {"i": "a"}})
    encoder = await SingleEncoder.new(ENCODER, attributes, {BOARD: board}, clock)
    try:
        motor = await create_motor(board, clock, encoder)
        for power, ticks in ((0.5, 2), (-0.5, -1)):
            await motor.set_power(power)
            for _ in range(abs(ticks - int((await encoder.get_position())[0]))):
                await (await board.gpio_pin_by_name("1")).set(True)
                await (await board.gpio_pin_by_name("1")).set(False)
            await clock.settle()
            assert (await encoder.get_position())[0] == ticks
    finally:
        await encoder.close()


@pytest.mark.parametrize(
    ("ask", "status", "words"),
    [
        ("set_power:1.5", Status.INVALID_ARGUMENT, "accepts a power between -1 and 1, not 1.5"),
        ("set_rpm:121", Status.INVALID_ARGUMENT, "turns at 120 rpm at most, not at 121"),
        ("set_rpm:nan", Status.INVALID_ARGUMENT, "turns at 120 rpm at most, not at nan"),
        (
            "go_for:0:1",
            Status.INVALID_ARGUMENT,
            "does not move at 0 rpm: give go_for a nonzero speed",
        ),
        ("go_for:60:inf", Status.INVALID_ARGUMENT, "cannot go for inf revolutions"),
        (
            "go_to:60:1",
            Status.UNIMPLEMENTED,
            "does not support go_to, because its position is unknown: configure",
        ),
        ("get_position", Status.UNIMPLEMENTED, "does not support get_position, because"),
        ("reset_zero_position:0", Status.UNIMPLEMENTED, 'configure an "encoder"'),
    ],
)
async def test_invalid_and_unsupported_commands_are_refused(
    client: MotorClient, ask: str, status: Status, words: str
) -> None:
    method, *numbers = ask.split(":")
    with refused() as told:
        await getattr(client, method)(*map(float, numbers))
    assert told.status is status
    assert words in told.words


async def test_motor_without_max_rpm_supports_only_power(
    board: RecordingBoard, clock: ManualClock, serve: Serve
) -> None:
    async with serve(await create_motor(board, clock, max_rpm=0)) as channel:
        client = MotorClient("m", channel)
        for asking in (client.set_rpm(1), client.go_for(1, 1)):
            with refused() as told:
                await asking
            assert told.status is Status.UNIMPLEMENTED
            assert 'its speed is unknown: set "max_rpm"' in told.words
        await client.set_power(1)


async def test_status_of_the_motor(
    board: RecordingBoard, clock: ManualClock, shaft: Shaft, client: MotorClient
) -> None:
    status = {"is_powered": False, "is_moving": False, "power": 0.0}
    assert await client.get_status() == status
    assert await client.get_geometries() == []
    assert await (await create_motor(board, clock, shaft)).get_status() == {
        **status,
        "position": 0.0,
    }


async def test_motor_turns_by_time_if_the_ticks_of_its_encoder_are_unknown(
    board: RecordingBoard, clock: ManualClock, shaft: Shaft
) -> None:
    shaft.ticks = 0
    motor = await create_motor(board, clock, shaft)
    assert await motor.get_properties() == Motor.Properties(position_reporting=False)
    turning = asyncio.create_task(motor.go_for(60, 1))
    await clock.advance(0.5)
    assert await motor.is_moving()
    await clock.advance(0.6)
    await turning
    assert not await motor.is_moving()
    with pytest.raises(Unsupported, match='"encoder" and "ticks_per_rotation"'):
        await motor.get_position()


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"pins": {"a": "1"}}, r"configured: a\)"),
        ({"pins": {}}, r"configured: none\)"),
        ({"pins": {"a": "1", "b": "2", "dir": "3"}}, r"configured: a and b and dir\)"),
        ({"pins": {"a": "1", "b": "1"}}, 'pin "1" is used twice'),
        ({"min_power_pct": 0.5, "max_power_pct": 0.4}, "is more than"),
        ({"max_power_pct": -1}, "greater than or equal to 0"),
    ],
)
def test_invalid_attributes_are_refused(attributes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        GpioMotorAttributes.model_validate({**ATTRIBUTES, **attributes})

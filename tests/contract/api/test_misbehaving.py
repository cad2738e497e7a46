"""What the contracts of the APIs find out about drivers that misbehave: fakes, with one mistake."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from viam.components.board import Board
from viam.components.motor.client import MotorClient
from viam.components.movement_sensor import Vector3

from cogwork.contracts.audio_out import AudioOutContract
from cogwork.contracts.base import BaseContract
from cogwork.contracts.bench import Bench, bench
from cogwork.contracts.board import BoardContract
from cogwork.contracts.contract import Contract
from cogwork.contracts.encoder import EncoderContract
from cogwork.contracts.gantry import GantryContract
from cogwork.contracts.motor import MotorContract
from cogwork.contracts.movement_sensor import MovementSensorContract
from cogwork.contracts.power_sensor import PowerSensorContract
from cogwork.contracts.servo import ServoContract
from cogwork.drivers.audio_out.fake import FakeAudioOut
from cogwork.drivers.base.fake import FakeBase
from cogwork.drivers.board.fake import FakeAnalog, FakeInterrupt, FakePin
from cogwork.drivers.encoder.fake import FakeEncoder
from cogwork.drivers.gantry.fake import FakeGantry
from cogwork.drivers.motor.fake import FakeMotor
from cogwork.drivers.movement_sensor.fake import FakeMovementSensor
from cogwork.drivers.power_sensor.fake import FakePowerSensor
from cogwork.drivers.servo.fake import FakeServo

Test = Callable[..., Any]
Mistake = Callable[..., Any]


class Fake:
    __test__ = False
    model: ClassVar[str] = "fake"


class AudioOut(Fake, AudioOutContract):
    pass


class Base(Fake, BaseContract):
    pass


class Boards(Fake, BoardContract):
    attributes: ClassVar[Any] = {
        "analogs": [{"name": "joystick", "max": 3.3}],
        "digital_interrupts": [{"name": "door", "pin": "11"}],
    }
    readers = writers = ("joystick",)
    interrupts = ("door",)
    drives: ClassVar[Any] = {"door": "11"}


class UnnamedBoards(Fake, BoardContract):
    pass


class Encoder(Fake, EncoderContract):
    attributes: ClassVar[Any] = {"motor": "m"}
    beside: ClassVar[Any] = [{"name": "m", "api": "rdk:component:motor", "model": "fake"}]
    ticks_per_revolution = 360

    async def turn(self, bench: Bench, way: int) -> None:
        await MotorClient("m", bench.channel).go_for(way * 60, 0.1)


class Gantry(Fake, GantryContract):
    pass


class Motor(Fake, MotorContract):
    pass


class BlindMotor(Fake, MotorContract):
    attributes: ClassVar[Any] = {"position_reporting": False}


class MovementSensor(Fake, MovementSensorContract):
    pass


class PowerSensor(Fake, PowerSensorContract):
    pass


class Servo(Fake, ServoContract):
    pass


def nothing(*_: Any, **__: Any) -> Any:
    async def done() -> bool:
        return True

    return done()


def giving(value: Any) -> Mistake:
    async def give(*_: Any, **__: Any) -> Any:
        return value

    return give


def unsigned(call: Mistake) -> Mistake:
    async def without_signs(it: Any, *numbers: float, **_: Any) -> None:
        await call(it, *map(abs, numbers))

    return without_signs


def times(factor: float, call: Mistake) -> Mistake:
    async def multiplied(it: Any, **_: Any) -> float:
        result: float = await call(it)
        return result * factor

    return multiplied


def counting_up(call: Mistake) -> Mistake:
    """Ticks of a shaft that may turn either way."""
    last, counted = 0.0, 0.0

    async def position(it: Any, *kind: Any, **_: Any) -> tuple[float, Any]:
        nonlocal last, counted
        ticks, kind_given = await call(it, *kind)
        counted, last = counted + abs(ticks - last), ticks
        return counted % 360, kind_given

    return position


@pytest.mark.parametrize(
    ("contract", "test", "driver", "method", "mistake", "words"),
    [
        (
            Servo,
            Servo.test_it_moves_and_stops,
            *(FakeServo, "stop", nothing),
            "it was stopped, and says that it moves",
        ),
        (
            Servo,
            Servo.test_where_it_is_stopped_it_stays,
            *(FakeServo, "stop", nothing),
            "it was stopped, and goes on",
        ),
        (
            Encoder,
            Encoder.test_it_counts_as_its_shaft_turns,
            *(FakeEncoder, "_count", giving(0.0)),
            "its shaft turned, and it counted nothing",
        ),
        (
            Encoder,
            Encoder.test_it_counts_as_its_shaft_turns,
            *(FakeEncoder, "get_position", counting_up(FakeEncoder.get_position)),
            "its shaft turned back, and it counted on",
        ),
        (
            Encoder,
            Encoder.test_it_counts_as_its_shaft_turns,
            *(FakeEncoder, "_degrees", lambda _, ticks: math.radians(ticks)),
            "its ticks say that it turned by 36 degrees, and its degrees differ by",
        ),
        (
            Encoder,
            Encoder.test_a_count_is_gone_when_it_is_reset,
            *(FakeEncoder, "reset_position", nothing),
            "36.0 == 0 ± 1",
        ),
        (
            Motor,
            Motor.test_power_below_zero_is_backward,
            *(FakeMotor, "set_power", unsigned(FakeMotor.set_power)),
            "0.5 == -0.5 ± 0.05",
        ),
        (
            Motor,
            Motor.test_a_speed_turns_it_its_way_until_it_is_stopped,
            *(FakeMotor, "set_rpm", unsigned(FakeMotor.set_rpm)),
            "it turned the other way",
        ),
        (
            Motor,
            Motor.test_backward_is_a_speed_or_a_distance_below_zero_and_not_both,
            *(FakeMotor, "go_for", unsigned(FakeMotor.go_for)),
            "go_for at -60 rpm for 0.1 revolutions",
        ),
        (
            BlindMotor,
            BlindMotor.test_a_speed_turns_it_its_way_until_it_is_stopped,
            *(FakeMotor, "set_rpm", unsigned(FakeMotor.set_rpm)),
            "it turns the other way, with a power of 0.6",
        ),
        (
            BlindMotor,
            BlindMotor.test_it_goes_for_as_long_as_it_takes,
            *(FakeMotor, "go_for", nothing),
            r"it was over after 0\.0\d s, and takes 0\.20 s",
        ),
        (
            Base,
            Base.test_it_comes_to_rest_where_it_is_sent,
            *(FakeBase, "move_straight", nothing),
            r"it was over after 0\.0\d s, and takes 0\.20 s",
        ),
        (
            Base,
            Base.test_it_comes_to_rest_where_it_is_sent,
            *(FakeBase, "spin", nothing),
            r"it was over after 0\.0\d s, and takes 0\.20 s",
        ),
        (
            Gantry,
            Gantry.test_it_takes_the_time_that_its_speed_says,
            *(FakeGantry, "move_to_position", nothing),
            r"it was over after 0\.0\d s, and takes 0\.20 s",
        ),
        (
            Gantry,
            Gantry.test_its_position_changes_on_its_way,
            *(FakeGantry, "get_position", giving([0.0])),
            "it moves, and its position stays the same",
        ),
        (
            Gantry,
            Gantry.test_it_comes_home_from_elsewhere,
            *(FakeGantry, "home", nothing),
            r"\[10.0\] == approx\(\[0.0",
        ),
        (
            AudioOut,
            AudioOut.test_it_plays_a_sound,
            *(FakeAudioOut, "play", nothing),
            r"it was over after 0\.0\d s, and takes 0\.20 s",
        ),
        (
            AudioOut,
            AudioOut.test_it_plays_a_sound_that_comes_bit_by_bit,
            *(FakeAudioOut, "play_stream", nothing),
            r"it was over after 0\.0\d s, and takes 0\.20 s",
        ),
        (
            Boards,
            Boards.test_an_analog_reads_within_its_range,
            *(FakeAnalog, "read", giving(Board.Analog.Value(value=70, max_range=3.3))),
            "joystick reads what it has no range for",
        ),
        (
            Boards,
            Boards.test_an_analog_keeps_what_is_written,
            *(FakeAnalog, "write", nothing),
            "0 == 1",
        ),
        (
            Boards,
            Boards.test_an_interrupt_counts_and_ticks_with_its_signal,
            *(FakePin, "set", nothing),
            "door went high, and did not tick",
        ),
        (
            Boards,
            Boards.test_an_interrupt_counts_and_ticks_with_its_signal,
            *(FakeInterrupt, "value", giving(0)),
            "door ticked, and counted nothing",
        ),
        (
            MovementSensor,
            MovementSensor.test_it_measures_what_it_says_it_measures,
            *(FakeMovementSensor, "get_linear_velocity", giving(Vector3(x=math.nan))),
            r"its linear_velocity is \[nan, 0.0, 0.0\]",
        ),
        (
            MovementSensor,
            MovementSensor.test_it_reads_about_what_it_measures,
            *(FakeMovementSensor, "get_compass_heading", giving(120.0)),
            r"its compass_heading is \[120.0\], and its readings say \[0.0\]",
        ),
        (
            PowerSensor,
            PowerSensor.test_its_power_is_its_voltage_times_its_current,
            *(FakePowerSensor, "get_power", times(1000, FakePowerSensor.get_power)),
            r"its power is \d+ W, and its voltage times its current ",
        ),
        (
            PowerSensor,
            PowerSensor.test_it_reads_what_it_measures,
            *(FakePowerSensor, "get_voltage", giving((230.0, False))),
            'its readings have another "voltage" than it measures',
        ),
        (
            PowerSensor,
            PowerSensor.test_it_reads_what_it_measures,
            *(FakePowerSensor, "get_voltage", giving((12.0, True))),
            "its voltage and its current disagree",
        ),
    ],
)
async def test_a_mistake_is_found(
    contract: type[Contract],
    test: Test,
    driver: type,
    method: str,
    mistake: Mistake,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("board", "gantry"):
        monkeypatch.setattr(f"cogwork.contracts.{module}.PATIENCE", 0.2)
    monkeypatch.setattr(driver, method, mistake)
    with pytest.raises((AssertionError, pytest.fail.Exception), match=words):
        await judge(contract, test)


async def test_a_board_of_which_nothing_is_named() -> None:
    with pytest.raises(AssertionError, match="nothing of the board is judged: name what it has"):
        await judge(UnnamedBoards, UnnamedBoards.test_there_is_something_to_judge)


async def judge(contract: type[Contract], test: Test) -> None:
    async with bench() as made:
        await made.run(*contract.beside, contract.configured())
        known = {"bench": made, "it": contract.client("it", made.channel)}
        wanted = [name for name in inspect.signature(test).parameters if name != "self"]
        await test(contract(), **{name: known[name] for name in wanted})

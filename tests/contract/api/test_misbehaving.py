"""What the contracts of the APIs report about misbehaving drivers: fakes with one mistake."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from viam.components.board import Board
from viam.components.motor.client import MotorClient
from viam.components.movement_sensor import Vector3

from cogwork.contracts.audio_out import AudioOutContract
from cogwork.contracts.base import BaseContract
from cogwork.contracts.board import BoardContract
from cogwork.contracts.contract import Contract
from cogwork.contracts.encoder import EncoderContract
from cogwork.contracts.gantry import GantryContract
from cogwork.contracts.harness import Harness, running_harness
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

ATTEMPTS = 3
"""A busy computer can make a call that returns at once seem to last."""


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
    other_resources: ClassVar[Any] = [{"name": "m", "api": "rdk:component:motor", "model": "fake"}]
    ticks_per_revolution = 360

    async def turn(self, harness: Harness, way: int) -> None:
        await MotorClient("m", harness.channel).go_for(way * 60, 0.1)


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


def do_nothing(*_: Any, **__: Any) -> Any:
    async def done() -> bool:
        return True

    return done()


def return_value(value: Any) -> Mistake:
    async def give(*_: Any, **__: Any) -> Any:
        return value

    return give


def ignore_signs(call: Mistake) -> Mistake:
    async def without_signs(resource: Any, *numbers: float, **_: Any) -> None:
        await call(resource, *map(abs, numbers))

    return without_signs


def multiply_result(factor: float, call: Mistake) -> Mistake:
    async def multiplied(resource: Any, **_: Any) -> float:
        result: float = await call(resource)
        return result * factor

    return multiplied


def count_only_up(call: Mistake) -> Mistake:
    """Count ticks of a shaft upward, whichever way it turns."""
    last, counted = 0.0, 0.0

    async def position(resource: Any, *kind: Any, **_: Any) -> tuple[float, Any]:
        nonlocal last, counted
        ticks, kind_given = await call(resource, *kind)
        counted, last = counted + abs(ticks - last), ticks
        return counted % 360, kind_given

    return position


@pytest.mark.parametrize(
    ("contract", "test", "driver", "method", "mistake", "words"),
    [
        (
            Servo,
            Servo.test_moves_and_stops,
            *(FakeServo, "stop", do_nothing),
            "it was stopped but reports that it is moving",
        ),
        (
            Servo,
            Servo.test_stays_where_stopped,
            *(FakeServo, "stop", do_nothing),
            "it was stopped but continued to move",
        ),
        (
            Encoder,
            Encoder.test_counts_as_shaft_turns,
            *(FakeEncoder, "_raw_count", return_value(0.0)),
            "the shaft turned but the position did not change",
        ),
        (
            Encoder,
            Encoder.test_counts_as_shaft_turns,
            *(FakeEncoder, "get_position", count_only_up(FakeEncoder.get_position)),
            "the shaft turned back but the count increased",
        ),
        (
            Encoder,
            Encoder.test_counts_as_shaft_turns,
            *(FakeEncoder, "_to_degrees", lambda _, ticks: math.radians(ticks)),
            "its ticks are 36 degrees, from which its degrees differ by",
        ),
        (
            Encoder,
            Encoder.test_reset_clears_count,
            *(FakeEncoder, "reset_position", do_nothing),
            "36.0 == 0 ± 1",
        ),
        (
            Motor,
            Motor.test_negative_power_is_backward,
            *(FakeMotor, "set_power", ignore_signs(FakeMotor.set_power)),
            "0.5 == -0.5 ± 0.05",
        ),
        (
            Motor,
            Motor.test_set_rpm_turns_until_stopped,
            *(FakeMotor, "set_rpm", ignore_signs(FakeMotor.set_rpm)),
            "it turned in the wrong direction",
        ),
        (
            Motor,
            Motor.test_go_for_direction_follows_signs,
            *(FakeMotor, "go_for", ignore_signs(FakeMotor.go_for)),
            "go_for at -60 rpm for 0.1 revolutions",
        ),
        (
            BlindMotor,
            BlindMotor.test_set_rpm_turns_until_stopped,
            *(FakeMotor, "set_rpm", ignore_signs(FakeMotor.set_rpm)),
            "it turns in the wrong direction, with a power of 0.6",
        ),
        (
            BlindMotor,
            BlindMotor.test_go_for_takes_expected_time,
            *(FakeMotor, "go_for", do_nothing),
            r"the call returned after 0\.\d\ds instead of 0\.20s",
        ),
        (
            Base,
            Base.test_stops_at_target,
            *(FakeBase, "move_straight", do_nothing),
            r"the call returned after 0\.\d\ds instead of 0\.20s",
        ),
        (
            Base,
            Base.test_stops_at_target,
            *(FakeBase, "spin", do_nothing),
            r"the call returned after 0\.\d\ds instead of 0\.20s",
        ),
        (
            Gantry,
            Gantry.test_move_duration_matches_speed,
            *(FakeGantry, "move_to_position", do_nothing),
            r"the call returned after 0\.\d\ds instead of 0\.20s",
        ),
        (
            Gantry,
            Gantry.test_position_changes_while_moving,
            *(FakeGantry, "get_position", return_value([0.0])),
            "it is moving but its position does not change",
        ),
        (
            Gantry,
            Gantry.test_homes_from_elsewhere,
            *(FakeGantry, "home", do_nothing),
            r"\[10.0\] == approx\(\[0.0",
        ),
        (
            AudioOut,
            AudioOut.test_plays_sound,
            *(FakeAudioOut, "play", do_nothing),
            r"the call returned after 0\.\d\ds instead of 0\.20s",
        ),
        (
            AudioOut,
            AudioOut.test_plays_streamed_sound,
            *(FakeAudioOut, "play_stream", do_nothing),
            r"the call returned after 0\.\d\ds instead of 0\.20s",
        ),
        (
            Boards,
            Boards.test_analog_reads_within_range,
            *(FakeAnalog, "read", return_value(Board.Analog.Value(value=70, max_range=3.3))),
            "joystick returned a value outside its range",
        ),
        (
            Boards,
            Boards.test_analog_keeps_written_value,
            *(FakeAnalog, "write", do_nothing),
            "0 == 1",
        ),
        (
            Boards,
            Boards.test_interrupt_counts_and_ticks,
            *(FakePin, "set", do_nothing),
            "door went high but did not tick",
        ),
        (
            Boards,
            Boards.test_interrupt_counts_and_ticks,
            *(FakeInterrupt, "value", return_value(0)),
            "door ticked but its count did not change",
        ),
        (
            MovementSensor,
            MovementSensor.test_measurements_match_properties,
            *(FakeMovementSensor, "get_linear_velocity", return_value(Vector3(x=math.nan))),
            r"its linear_velocity is \[nan, 0.0, 0.0\]",
        ),
        (
            MovementSensor,
            MovementSensor.test_readings_match_measurements,
            *(FakeMovementSensor, "get_compass_heading", return_value(120.0)),
            r"its compass_heading is \[120.0\] but its readings contain \[0.0\]",
        ),
        (
            PowerSensor,
            PowerSensor.test_power_is_voltage_times_current,
            *(FakePowerSensor, "get_power", multiply_result(1000, FakePowerSensor.get_power)),
            r"its power is \d+ W but voltage times current is ",
        ),
        (
            PowerSensor,
            PowerSensor.test_readings_match_measurements,
            *(FakePowerSensor, "get_voltage", return_value((230.0, False))),
            '"voltage" of its readings differs from its measurement',
        ),
        (
            PowerSensor,
            PowerSensor.test_readings_match_measurements,
            *(FakePowerSensor, "get_voltage", return_value((12.0, True))),
            "voltage and current disagree about AC",
        ),
    ],
)
async def test_mistake_is_reported(
    contract: type[Contract],
    test: Test,
    driver: type,
    method: str,
    mistake: Mistake,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("board", "gantry"):
        monkeypatch.setattr(f"cogwork.contracts.{module}.TIMEOUT", 0.2)
    monkeypatch.setattr(driver, method, mistake)
    reports = [await report_of(contract, test)]
    while reports[-1] is None and len(reports) < ATTEMPTS:
        reports.append(await report_of(contract, test))
    assert re.search(words, reports[-1] or "")


async def report_of(contract: type[Contract], test: Test) -> str | None:
    try:
        await run_contract_test(contract, test)
    except (AssertionError, pytest.fail.Exception) as error:
        return str(error)
    return None


async def test_board_contract_without_names_is_reported() -> None:
    with pytest.raises(AssertionError, match="nothing of the board is tested; set at least one of"):
        await run_contract_test(UnnamedBoards, UnnamedBoards.test_names_something_to_test)


async def run_contract_test(contract: type[Contract], test: Test) -> None:
    async with running_harness() as made:
        await made.run(*contract.other_resources, contract.resource_config())
        known = {"harness": made, "resource": contract.client("it", made.channel)}
        wanted = [name for name in inspect.signature(test).parameters if name != "self"]
        await test(contract(), **{name: known[name] for name in wanted})

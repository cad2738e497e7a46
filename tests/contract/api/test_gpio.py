"""GPIO models fulfill their contracts on mock pins."""

from __future__ import annotations

import time
from typing import Annotated, Any, ClassVar

from viam.components.board import Board
from viam.components.board.client import BoardClient
from viam.components.encoder import Encoder
from viam.proto.component.encoder import PositionType

from cogwork.config.schema.fields import Attributes, Dependency
from cogwork.contracts.board import BoardContract
from cogwork.contracts.button import ButtonContract
from cogwork.contracts.encoder import EncoderContract
from cogwork.contracts.harness import Harness
from cogwork.contracts.motor import MotorContract
from cogwork.contracts.servo import ServoContract
from cogwork.contracts.switch import SwitchContract
from cogwork.graph.name import Api, ModelName, ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import Model, find_dependency

SIGNALS = {"a": "GPIO5", "b": "BOARD31"}
ATTRIBUTES = {
    "pin_factory": "mock",
    "digital_interrupts": [{"name": name, "pin": pin} for name, pin in SIGNALS.items()],
}
BOARD = {
    "name": "pins",
    "api": "rdk:component:board",
    "model": "gpio",
    "attributes": ATTRIBUTES,
}


class TestBoard(BoardContract):
    model = "gpio"
    unsupported_methods = ("SetPowerMode",)
    attributes = ATTRIBUTES
    pins = ("GPIO17", "27", "BOARD15")
    pwm_pins = ("GPIO18",)
    interrupts = ("a", "b")
    drives = SIGNALS

    async def drive(self, resource: Any, interrupt: str, high: bool) -> None:
        """Drive the watched pin from outside: it stays an input."""
        await resource.do_command({"drive": {SIGNALS[interrupt]: high}})


class OnMockBoard:
    model: ClassVar[str] = "gpio"
    other_resources: ClassVar[Any] = [BOARD]


class TestButton(OnMockBoard, ButtonContract):
    attributes: ClassVar[Any] = {"board": "pins", "pin": "17", "duration": "10ms"}


class TestMotor(OnMockBoard, MotorContract):
    unsupported_methods = ("GetPosition", "GoTo", "ResetZeroPosition")
    attributes: ClassVar[Any] = {
        "board": "pins",
        "pins": {"a": "17", "b": "27", "pwm": "18", "en_low": "22"},
        "max_rpm": 200,
    }


class TestMotorOfTwoPins(OnMockBoard, MotorContract):
    unsupported_methods = ("GetPosition", "GoFor", "GoTo", "ResetZeroPosition", "SetRPM")
    attributes: ClassVar[Any] = {"board": "pins", "pins": {"a": "17", "b": "27"}}


class ShaftAttributes(Attributes):
    board: Annotated[str, Dependency("rdk:component:board")]


class Shaft(Encoder):
    """Turns as the motor's pins demand, five revolutions per second at full power."""

    def __init__(self, name: str, board: Board) -> None:
        super().__init__(name)
        self._board = board
        self._since = time.monotonic()
        self._turned = 0.0

    @classmethod
    async def new(
        cls, name: ResourceName, attributes: ShaftAttributes, dependencies: Dependencies
    ) -> Shaft:
        return cls(name.name, find_dependency(dependencies, attributes.board))

    async def get_position(
        self, position_type: PositionType.ValueType | None = None, **_: Any
    ) -> tuple[float, PositionType.ValueType]:
        forward, power = [await self._board.gpio_pin_by_name(pin) for pin in ("17", "18")]
        speed = await power.get_pwm() * (5 if await forward.get() else -5)
        now = time.monotonic()
        self._turned += speed * (now - self._since)
        self._since = now
        return round(self._turned * 1000), PositionType.POSITION_TYPE_TICKS_COUNT

    async def reset_position(self, **_: Any) -> None:
        self._turned = 0.0

    async def get_properties(self, **_: Any) -> Encoder.Properties:
        return Encoder.Properties(ticks_count_supported=True, angle_degrees_supported=False)


class TestMotorWithEncoder(MotorContract):
    model = "gpio"
    models = (
        Model(
            Api.parse("rdk:component:encoder"),
            ModelName.parse("cogwork:test:shaft"),
            ShaftAttributes,
            Shaft.new,
        ),
    )
    other_resources: ClassVar[Any] = [
        BOARD,
        {
            "name": "shaft",
            "api": "rdk:component:encoder",
            "model": "cogwork:test:shaft",
            "attributes": {"board": "pins"},
        },
    ]
    attributes: ClassVar[Any] = {
        "board": "pins",
        "pins": {"dir": "17", "pwm": "18"},
        "max_rpm": 300,
        "encoder": "shaft",
        "ticks_per_rotation": 1000,
    }


class TestServo(OnMockBoard, ServoContract):
    attributes: ClassVar[Any] = {"board": "pins", "pin": "18", "degrees_per_second": 60}
    near = 5


class TestSwitch(OnMockBoard, SwitchContract):
    attributes: ClassVar[Any] = {"board": "pins", "pins": ["17", "27"], "labels": list("abcd")}


class TestIncrementalEncoder(OnMockBoard, EncoderContract):
    model = "incremental"
    attributes: ClassVar[Any] = {"board": "pins", "pins": {"a": "a", "b": "b"}}

    async def turn(self, harness: Harness, way: int) -> None:
        for interrupt, high in _pulses("ab" if way > 0 else "ba"):
            await _drive(harness, interrupt, high)


class TestSingleEncoder(OnMockBoard, EncoderContract):
    model = "single"
    attributes: ClassVar[Any] = {"board": "pins", "pins": {"i": "a"}}
    knows_way = False

    async def turn(self, harness: Harness, way: int) -> None:
        for interrupt, high in _pulses("a"):
            await _drive(harness, interrupt, high)


def _pulses(order: str) -> list[tuple[str, bool]]:
    """Return pulses of each signal, with the first signal leading."""
    return [(signal, high) for _ in range(5) for high in (True, False) for signal in order]


async def _drive(harness: Harness, interrupt: str, high: bool) -> None:
    await BoardClient("pins", harness.channel).do_command({"drive": {SIGNALS[interrupt]: high}})

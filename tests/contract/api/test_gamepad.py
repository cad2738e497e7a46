"""A gamepad, lying still, fulfills its contract."""

from __future__ import annotations

from typing import Any

from tests.unit.drivers.input_controller.pads import FakeDesk, FakePad

from cogwork.contracts.input_controller import InputControllerContract
from cogwork.drivers.input_controller.attributes import GamepadAttributes
from cogwork.drivers.input_controller.gamepad import Gamepad
from cogwork.graph.name import Api, ModelName, ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import Model


async def _create_gamepad(
    name: ResourceName, attributes: GamepadAttributes, dependencies: Dependencies
) -> Any:
    desk = FakeDesk()
    desk.pad = FakePad()
    return await Gamepad.new(name, attributes, dependencies, None, desk.find)


class TestGamepad(InputControllerContract):
    model = "cogwork:test:gamepad"
    models = (
        Model(
            Api.parse(InputControllerContract.api),
            ModelName.parse("cogwork:test:gamepad"),
            GamepadAttributes,
            _create_gamepad,
        ),
    )
    control = "ButtonSouth"
    triggers = False

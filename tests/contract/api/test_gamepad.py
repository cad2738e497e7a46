"""A gamepad keeps to its contract, with a pad that lies still."""

from __future__ import annotations

from typing import Any

from tests.unit.drivers.input_controller.pads import Desk, Pad

from cogwork.contracts.input_controller import InputControllerContract
from cogwork.drivers.input_controller.attributes import GamepadAttributes
from cogwork.drivers.input_controller.gamepad import Gamepad
from cogwork.graph.name import Api, ModelName, ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import Model


async def _built(
    name: ResourceName, attributes: GamepadAttributes, dependencies: Dependencies
) -> Any:
    desk = Desk()
    desk.pad = Pad()
    return await Gamepad.new(name, attributes, dependencies, None, desk.find)


class TestGamepad(InputControllerContract):
    model = "cogwork:test:gamepad"
    models = (
        Model(
            Api.parse(InputControllerContract.api),
            ModelName.parse("cogwork:test:gamepad"),
            GamepadAttributes,
            _built,
        ),
    )
    control = "ButtonSouth"
    triggers = False

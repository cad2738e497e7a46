"""A whole machine on a computer without GPIO pins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cogwork.contracts.harness import running_harness
from cogwork.graph.name import ResourceName
from cogwork.graph.node import NodeState
from cogwork.robot.status.health import health_of

BOARD: dict[str, Any] = {"name": "pins", "api": "rdk:component:board", "model": "gpio"}
MOTOR: dict[str, Any] = {
    "name": "wheel",
    "api": "rdk:component:motor",
    "model": "gpio",
    "attributes": {"board": "pins", "pins": {"a": "17", "b": "27"}},
}


async def test_board_reports_missing_pins_and_the_motor_waits_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("cogwork.drivers.gpio.factory.DEVICES", tmp_path)
    async with running_harness() as machine:
        await machine.run(BOARD, MOTOR)
        state, reason = health_of(machine.machine.nodes[name_of(BOARD)])
        assert state is NodeState.UNHEALTHY
        assert f"{tmp_path}/gpiochip0 does not exist; to try the" in str(reason)
        state, reason = health_of(machine.machine.nodes[name_of(MOTOR)])
        assert state is NodeState.UNHEALTHY
        assert str(reason).startswith('depends on "pins", which is not ready: this computer has no')
        await machine.run({**BOARD, "attributes": {"pin_factory": "mock"}}, MOTOR)
        machine.assert_ready(name_of(MOTOR))


def name_of(resource: dict[str, Any]) -> ResourceName:
    return ResourceName.parse(f"{resource['api']}/{resource['name']}")

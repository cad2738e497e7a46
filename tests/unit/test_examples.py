"""The configurations in `examples`: one without a fault, and one with ten different mistakes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.paths import REPOSITORY

from cogwork.cli.main import main
from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import load
from cogwork.core.clock import SystemClock
from cogwork.drivers.builtin_models import builtin_models
from cogwork.graph.node import NodeState
from cogwork.graph.provider import Providers
from cogwork.graph.reconciler import Reconciler
from cogwork.resource.registry import Registry

WORKSHOP = REPOSITORY / "examples" / "workshop.json"
TEN_MISTAKES = REPOSITORY / "examples" / "ten-mistakes.json"

MISTAKES = [
    (9, 23, "E103"),
    (22, 35, "E101"),
    (25, 15, "E202"),
    (30, 15, "E201"),
    (37, 16, "E206"),
    (41, 14, "E203"),
    (56, 22, "E303"),
    (68, 39, "E402"),
    (74, 22, "E301"),
    (77, 24, "E401"),
]


def test_workshop_has_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    """The release workflow checks this file with the wheel that it has built."""
    assert main(["config", "check", str(WORKSHOP)]) == 0, capsys.readouterr().out


def test_all_ten_are_found_at_their_places(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check", str(TEN_MISTAKES)]) == 1
    printed = capsys.readouterr().out
    for line, column, code in MISTAKES:
        heading = next(row for row in printed.splitlines() if f":{line}:{column}  " in row)
        assert heading.endswith(f"[{code}]")
    assert "10 errors; 4 of 12 resources would run" in printed


async def test_what_is_sound_runs_and_the_rest_says_why() -> None:
    registry = Registry(builtin_models())
    loaded = load(TEN_MISTAKES.read_text(), LoadContext(registry, Path("/nonexistent"), {}))
    reconciler = Reconciler(Providers({"built-in": registry}), SystemClock())
    try:
        await asyncio.wait_for(reconciler.apply(loaded.result.specs), 10)
        nodes = {name.short: node for name, node in reconciler.nodes.items()}
        ready = {name for name, node in nodes.items() if node.state is NodeState.READY}
        assert ready == {"outdoor", "indoor", "recorder", "player"}
        reasons = {name: node.reason.text for name, node in nodes.items() if node.reason}
        assert reasons == {
            "cellar": 'expected an object, got the string "damp" '
            "(at /components/2/attributes/readings)",
            "left pump": "a name starts with a letter (a to z) or a digit, and contains only "
            "letters, digits, - and _ (at /components/4/name)",
            "pump": 'unknown model "fkae" for rdk:component:generic: check the '
            "spelling, or add the module that provides it",
            "valve": 'unknown API "rdk:component:generc" (at /components/6/api)',
            "planner": 'circular dependency: "planner" -> "watcher" -> "planner"',
            "watcher": 'circular dependency: "watcher" -> "planner" -> "watcher"',
            "reporter": 'depends on "recoder", which is not configured',
        }
    finally:
        await reconciler.aclose()

"""The health gate: when a version is healthy, and why it is not, with a manual clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.support.agent.scripted_server import ScriptedServer

from cogwork.agent.supervision.health import HealthRules, find_fault
from cogwork.core.clock import ManualClock

RULES = HealthRules(start_timeout=60, probes=3, interval=20, poll=0.25)


class Gate:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.server = ScriptedServer(lambda: "1.1.0")
        self.result: asyncio.Task[str | None] | None = None

    async def open(self, version: str = "1.1.0") -> None:
        await self.server.start()
        finding = find_fault(self.server, self.server.probe, version, self.clock, RULES)
        self.result = asyncio.create_task(finding)
        await self.clock.advance(0)

    async def wait(self, seconds: float) -> str | None:
        """Return the verdict, "none yet" without one."""
        await self.clock.advance(seconds)
        assert self.result is not None
        return self.result.result() if self.result.done() else "none yet"


@pytest.fixture
async def gate() -> AsyncIterator[Gate]:
    made = Gate()
    yield made
    if made.result is not None:
        made.result.cancel()
        await asyncio.gather(made.result, return_exceptions=True)


async def test_version_is_healthy_after_three_probes(gate: Gate) -> None:
    await gate.open()
    assert await gate.wait(3 * RULES.interval - 0.1) == "none yet"
    assert await gate.wait(0.1) is None


async def test_first_answer_may_take_its_time(gate: Gate) -> None:
    gate.server.silent.add("1.1.0")
    await gate.open()
    assert await gate.wait(59) == "none yet"
    gate.server.silent.clear()
    # The probes begin with the first answer.
    assert await gate.wait(RULES.poll + 3 * RULES.interval - 0.1) == "none yet"
    assert await gate.wait(0.1) is None


async def test_no_answer_in_time_is_a_fault(gate: Gate) -> None:
    gate.server.silent.add("1.1.0")
    await gate.open()
    assert await gate.wait(59.9) == "none yet"
    assert await gate.wait(0.2) == "no answer within 60 s: the server is not ready yet"


@pytest.mark.parametrize("probe", [1, 2, 3])
async def test_each_probe_must_be_answered(gate: Gate, probe: int) -> None:
    await gate.open()
    assert await gate.wait(probe * RULES.interval - 0.1) == "none yet"
    gate.server.silent.add("1.1.0")
    assert await gate.wait(0.1) == "the server is not ready yet"


async def test_other_version_is_a_fault_at_once(gate: Gate) -> None:
    await gate.open("1.2.0")
    assert await gate.wait(0) == "version 1.1.0 runs, and not 1.2.0"


async def test_end_is_a_fault_at_once(gate: Gate) -> None:
    await gate.open()
    await gate.clock.advance(30)
    gate.server.crash()
    assert await gate.wait(0) == "the server ended while it was on trial: exit code 1"

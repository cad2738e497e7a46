"""The health gate: a new version must run and answer for a while before it is accepted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from cogwork.agent.errors import ServerSilent
from cogwork.agent.supervision.probe import ServerAnswer
from cogwork.agent.supervision.server_process import ServerProcess
from cogwork.core.clock import Clock


class Probe(Protocol):
    async def ask(self, process_id: int | None) -> ServerAnswer: ...


@dataclass(frozen=True, slots=True)
class HealthRules:
    start_timeout: float = 60.0
    """Timeout in seconds for the first answer of the server."""
    probes: int = 3
    interval: float = 20.0
    """Interval in seconds between probes, once the server has answered for the first time."""
    poll: float = 0.25
    """Seconds between two attempts to get the first answer."""


async def find_fault(
    server: ServerProcess, probe: Probe, version: str, clock: Clock, rules: HealthRules
) -> str | None:
    """Probe a server that was just started. Return its fault; None if it is healthy."""
    ended = asyncio.ensure_future(server.wait())
    checked = asyncio.ensure_future(_check(server, probe, version, clock, rules))
    try:
        await clock.wait({ended, checked}, None)
        if ended.done():
            return f"the server ended while it was on trial: {ended.result()}"
        return checked.result()
    finally:
        for task in (ended, checked):
            task.cancel()
        await asyncio.gather(ended, checked, return_exceptions=True)


async def _check(
    server: ServerProcess, probe: Probe, version: str, clock: Clock, rules: HealthRules
) -> str | None:
    if (fault := await _wait_for_answer(server, probe, version, clock, rules)) is not None:
        return fault
    for _ in range(rules.probes):
        await clock.sleep(rules.interval)
        try:
            await probe.ask(server.process_id)
        except ServerSilent as error:
            return str(error)
    return None


async def _wait_for_answer(
    server: ServerProcess, probe: Probe, version: str, clock: Clock, rules: HealthRules
) -> str | None:
    deadline = clock.monotonic() + rules.start_timeout
    while True:
        try:
            answer = await probe.ask(server.process_id)
        except ServerSilent as error:
            if clock.monotonic() >= deadline:
                return f"no answer within {rules.start_timeout:g} s: {error}"
            await clock.sleep(rules.poll)
        else:
            if answer.version != version:
                return f"version {answer.version} runs, and not {version}"
            return None

"""A file with 20,000 faults neither delays the next change nor fills memory or log."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.machine.running import with_free_port
from tests.support.machine.watched import FAKES, WatchedServer, run_watched

BROKEN = [{"name": f"g{n}", "api": "rdk:component:nope", "model": "fakee"} for n in range(20_000)]
LONGEST = 10.0
"""Seconds of a processor until the change is applied, though a file with faults is read before."""
REFUSED = json.dumps({"components": BROKEN, "network": {"bind_address": "nowhere"}})


async def test_change_after_20000_faults_is_applied_soon(tmp_path: Path) -> None:
    """The file is refused as a whole: this measures how long its validation takes."""
    async with run_watched(tmp_path) as machine:
        server = machine.server
        await machine.begin()
        since = len(server.out.lines)
        server.save(REFUSED)
        await server.out.wait_for("the changed configuration is refused", since=since)
        assert len(server.out.lines) - since < 1_000
        await server.out.wait_for(r"19,8\d\d more faults", since=since)
        before = computed(machine)
        server.save(REFUSED + " ")
        server.save({**with_free_port(FAKES), "components": FAKES["components"][:2]})
        await server.out.wait_for("applied in", since=since)
        took = computed(machine) - before
        phase = await machine.end(f"20,000 faults, refused and replaced in {took:.1f} s")
        assert took < LONGEST
        assert not phase.bystander.failed
        assert phase.growth < 100


def computed(machine: WatchedServer) -> float:
    """Return the seconds of a processor that the server has used."""
    return sum(machine.process.cpu_times()[:2])

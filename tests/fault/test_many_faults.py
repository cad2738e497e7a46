"""A file with 20,000 faults neither delays the next change nor fills memory or log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.machine.running import with_free_port
from tests.support.machine.watched import FAKES, run_watched

pytestmark = pytest.mark.alone

BROKEN = [{"name": f"g{n}", "api": "rdk:component:nope", "model": "fakee"} for n in range(20_000)]
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
        server.save(REFUSED + " ")
        server.save({**with_free_port(FAKES), "components": FAKES["components"][:2]})
        await server.out.wait_for("applied in", since=since, within=10)
        phase = await machine.end("20,000 faults")
        assert not phase.bystander.failed
        assert phase.growth < 100

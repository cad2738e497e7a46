"""The whole server is killed while it applies another configuration, repeatedly."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.machine.running import Server, run_server, with_free_port
from tests.support.sizes import limit, size
from tests.support.waiting import pass_time

KILLS = size(ci=5, full=50)
LONGEST_START = limit(10.0)
"""Seconds from the start of the process until it runs everything."""
TAKEN_OVER_WITHIN = 1.2
"""Seconds after which a saved file is surely applied, on a computer that is not too busy."""


def machine(revision: int) -> dict[str, Any]:
    """One resource stays, one is reconfigured, one replaced, and one is slow to build."""
    sensor = {"api": "rdk:component:sensor", "model": "fake"}
    config = {
        "revision": str(revision),
        "components": [
            {"name": "stays", **sensor},
            {"name": "changed", **sensor, "attributes": {"readings": {"revision": revision}}},
            {
                "name": "replaced",
                "api": "rdk:component:motor",
                "model": "fake",
                "attributes": {"max_rpm": 100 + revision},
            },
            {
                "name": f"slow-{revision}",
                **sensor,
                "attributes": {"start": {"delay": "300ms"}},
                "depends_on": ["replaced"],
            },
        ],
    }
    return dict(with_free_port(config))


@pytest.fixture
def sockets() -> Iterator[Path]:
    """Create a directory for the server's private directories, with a short path."""
    directory = Path(tempfile.mkdtemp(dir="/tmp", prefix="cw"))
    yield directory
    shutil.rmtree(directory)


@pytest.mark.timeout(size(ci=240, full=900))
async def test_server_killed_at_any_moment_recovers(tmp_path: Path, sockets: Path) -> None:
    moments = random.Random(0)
    seen, began = Counter[str](), time.monotonic()
    content: dict[str, Any] | str = machine(0)
    expected = {0}
    for kill in range(KILLS + 1):
        started = time.monotonic()
        around = {"TMPDIR": str(sockets)}
        async with run_server(content, tmp_path, exits=None, environment=around) as server:
            before = await wait_for_recovery(server, expected)
            seen["slowest start, in ms"] = max(
                seen["slowest start, in ms"], round(1000 * (time.monotonic() - started))
            )
            assert time.monotonic() - started < LONGEST_START
            assert len(list(sockets.iterdir())) == 1, "what killed servers leave piles up"
            if kill == KILLS:
                break
            server.save(machine(before + 1))
            await pass_time(moments.uniform(0, TAKEN_OVER_WITHIN))  # the moment is the input here
            server.process.kill()
            assert await server.exit_code() == -9
        expected, content = {before + 1}, machine(before + 1)
        if kill % 3 == 1:
            # The file is truncated as well: only the last applied configuration is left.
            content = json.dumps(content)[:150]
            expected = {before, before + 1}
            seen["cut off files"] += 1
        elif kill % 3 == 2:
            starting = kill_while_starting(content, tmp_path, around, moments.uniform(0.1, 0.8))
            seen["killed while starting"] += await starting
        seen["last good one is new"] += read_last_good(tmp_path) == before + 1
        seen["kills"] += 1
    print(f"\n{time.monotonic() - began:.1f} s: {dict(seen)}")
    assert list(sockets.iterdir()) == []
    assert len(list(tmp_path.glob("home/last-good/*"))) == 1


async def wait_for_recovery(server: Server, expected: set[int]) -> int:
    """Return the running revision, with all its resources ready."""
    status = await server.wait_for_status(state="running")
    assert int(status["revision"]) in expected, server.output
    wanted = [each["name"] for each in machine(int(status["revision"]))["components"]]
    names = [each["name"].rpartition("/")[2] for each in status["resources"]]
    assert names == wanted
    assert {each["state"] for each in status["resources"]} == {"ready"}
    assert server.err.lines == []
    return int(status["revision"])


async def kill_while_starting(
    content: dict[str, Any] | str, directory: Path, environment: dict[str, str], moment: float
) -> bool:
    """Return whether it was still starting: it may have been faster."""
    async with run_server(
        content, directory, exits=None, serves=False, environment=environment
    ) as server:
        await pass_time(moment)
        server.process.kill()
        assert await server.exit_code() == -9
    return "is ready" not in server.out.text


def read_last_good(directory: Path) -> int:
    (kept,) = directory.glob("home/last-good/*.json")
    return int(json.loads(kept.read_text().partition("\n")[2])["revision"])

"""A change saved while the server has no descriptors left is read once it has some again."""

from __future__ import annotations

import resource
from pathlib import Path

from tests.support.machine.running import run_server, with_free_port
from tests.support.machine.watched import FAKES

NONE_LEFT = 3
"""Fewer than it has open already."""


async def test_change_saved_without_descriptors_is_read_later(tmp_path: Path) -> None:
    async with run_server(FAKES, tmp_path) as server:
        await server.wait_for_status(state="running")
        limits = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (NONE_LEFT, limits[1]))
        changed = {**with_free_port(FAKES), "components": FAKES["components"][:2], "services": []}
        server.save(changed)
        await server.out.wait_for("cannot read .*Too many open files.*retrying")
        since = len(server.out.lines)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limits)
        await server.out.wait_for("applied in", since=since)
        assert len((await server.status())["resources"]) == 2

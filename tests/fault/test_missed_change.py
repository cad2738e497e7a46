"""A change saved while the server has no descriptors left is read once it has some again."""

from __future__ import annotations

import resource
from pathlib import Path

from tests.fault.watched import FAKES
from tests.running import running, served_anywhere

NONE_LEFT = 3
"""Fewer than it has open already."""


async def test_change_saved_without_descriptors_is_read_later(tmp_path: Path) -> None:
    async with running(FAKES, tmp_path) as server:
        await server.until(state="running")
        limits = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (NONE_LEFT, limits[1]))
        changed = {**served_anywhere(FAKES), "components": FAKES["components"][:2], "services": []}
        server.save(changed)
        await server.out.says("cannot read .*Too many open files.*retrying")
        since = len(server.out.lines)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limits)
        await server.out.says("applied in", since=since)
        assert len((await server.status())["resources"]) == 2

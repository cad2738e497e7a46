"""Updates that the agent prepares, as the status shows them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cogwork.core.versions.update_progress import PROGRESS_VARIABLE
from cogwork.robot.status.update_file import UpdateFile

WAITING = {"phase": "waiting", "version": "2.0.0", "detail": "it is busy", "since": 5.0}
CURRENT = {"phase": "current", "version": "1.0.0", "detail": "", "since": 1.0}


async def read(path: Path) -> list[dict[str, object]]:
    return await UpdateFile({PROGRESS_VARIABLE: str(path)}).read()


async def test_shows_only_updates_that_have_not_arrived(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    products = {"server": WAITING, "agent": CURRENT, "another": "of a newer agent"}
    path.write_text(json.dumps({"products": products, "new": 1}))
    assert await read(path) == [{"product": "server", **WAITING}]


async def test_shows_nothing_without_an_agent() -> None:
    assert await UpdateFile({}).read() == []


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"products": {"server": {}}}', '{"products": []}', "\xff"]
)
async def test_shows_nothing_of_a_damaged_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "progress.json"
    path.write_bytes(text.encode("latin-1"))
    assert await read(path) == []


async def test_shows_nothing_of_a_missing_file(tmp_path: Path) -> None:
    assert await read(tmp_path / "progress.json") == []

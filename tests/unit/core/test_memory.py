from __future__ import annotations

import os
from pathlib import Path

import pytest

from cogwork.core.memory import total_memory

PHYSICAL = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, PHYSICAL),
        ({"system.slice/cogwork.service": "max"}, PHYSICAL),
        ({"system.slice/cogwork.service": "1000000"}, 1_000_000),
        ({"system.slice/cogwork.service": "2000000", "system.slice": "1500000"}, 1_500_000),
        ({"": "3000000"}, 3_000_000),
    ],
)
def test_memory_is_that_of_the_narrowest_group(
    tmp_path: Path, limits: dict[str, str], expected: int
) -> None:
    own = tmp_path / "own"
    own.write_text("0::/system.slice/cogwork.service\n")
    for group, limit in limits.items():
        folder = tmp_path / "groups" / group
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "memory.max").write_text(f"{limit}\n")
    assert total_memory(tmp_path / "groups", own) == expected


@pytest.mark.parametrize("text", ["", "12:memory:/\n", None])
def test_computer_without_groups_has_its_own_memory(tmp_path: Path, text: str | None) -> None:
    own = tmp_path / "own"
    if text is not None:
        own.write_text(text)
    assert total_memory(tmp_path, own) == PHYSICAL

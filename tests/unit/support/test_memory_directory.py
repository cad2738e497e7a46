from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.support.memory_directory import find_memory_directory


def report(monkeypatch: pytest.MonkeyPatch, *, blocks: int = 100, flags: int = 0) -> None:
    found = SimpleNamespace(f_bavail=blocks, f_frsize=10, f_flag=flags)
    monkeypatch.setattr(os, "statvfs", lambda _: found)


def test_directory_with_room_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    report(monkeypatch)
    assert find_memory_directory(tmp_path, 1000) == tmp_path


@pytest.mark.parametrize(("blocks", "flags"), [(99, 0), (100, os.ST_NOEXEC)])
def test_directory_without_room_or_for_data_only_is_not_used(
    blocks: int, flags: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report(monkeypatch, blocks=blocks, flags=flags)
    assert find_memory_directory(tmp_path, 1000) is None


def test_computer_may_have_none(tmp_path: Path) -> None:
    assert find_memory_directory(tmp_path / "missing", 0) is None

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cogwork.agent.errors import DiskFull
from cogwork.agent.slots.disk import (
    InstalledVersion,
    choose_removals,
    clean_up,
    remove_old_downloads,
    remove_unfinished,
    require_space,
)
from cogwork.agent.slots.layout import Layout
from cogwork.core.versions.product import Product

DAY = 24 * 3600.0
NOW = 1_800_000_000.0


def version(name: str, days: float, size: int = 100) -> InstalledVersion:
    return InstalledVersion(name, -days * DAY, size)


def test_old_versions_are_removed_unless_they_are_used() -> None:
    installed = [version("1", 90), version("2", 60), version("3", 40), version("4", 1)]
    assert choose_removals(installed, {"2"}, 0) == ["1", "3"]


def test_oldest_are_removed_above_the_limit() -> None:
    installed = [version(str(number), 10 - number) for number in range(5)]
    assert choose_removals(installed, {"4"}, 0, max_bytes=250) == ["0", "1"]


def test_used_versions_stay_whatever_they_need() -> None:
    installed = [version("1", 90, 1 << 40), version("2", 80, 1 << 40)]
    assert choose_removals(installed, {"1", "2"}, 0) == []


def test_current_version_stays(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    for name in ("1", "2"):
        layout.slot(Product.SERVER, name).mkdir(parents=True)
    layout.switch(Product.SERVER, "1")
    assert clean_up(layout, Product.SERVER, (), 1e12) == ["2"]
    assert layout.installed(Product.SERVER) == ["1"]


def test_unfinished_versions_are_not_versions(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    (layout.versions / ".unfinished-server-3").mkdir(parents=True)
    assert layout.installed(Product.SERVER) == []
    remove_unfinished(layout)
    assert [*layout.versions.iterdir()] == []


def test_missing_space_is_explained(tmp_path: Path) -> None:
    require_space(tmp_path, 0)
    with pytest.raises(DiskFull, match="free some"):
        require_space(tmp_path, 1 << 60)


def test_downloads_that_nobody_continues_are_removed(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    remove_old_downloads(layout, 0)
    layout.downloads.mkdir()
    for name, age in (("new.tar.part", 6 * DAY), ("old.tar.part", 8 * DAY)):
        path = layout.downloads / name
        path.touch()
        os.utime(path, (NOW - age, NOW - age))
    remove_old_downloads(layout, NOW)
    assert [each.name for each in layout.downloads.iterdir()] == ["new.tar.part"]

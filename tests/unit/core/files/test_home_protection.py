from __future__ import annotations

from pathlib import Path

from cogwork.core.files.home_protection import protect_home


def make(path: Path, mode: int) -> Path:
    path.mkdir()
    path.chmod(mode)
    return path


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_directories_that_everyone_may_change_are_closed(tmp_path: Path) -> None:
    home = make(tmp_path / "home", 0o777)
    joined = make(home / "joined", 0o777)
    part = make(joined / "part", 0o777)
    private = make(home / "auth", 0o700)
    group = make(home / "group", 0o775)
    shared = make(home / "shared", 0o1777)
    outside = make(tmp_path / "outside", 0o777)
    (home / "link").symlink_to(outside)
    assert sorted(protect_home(home)) == [home, joined, part]
    assert [mode_of(each) for each in (home, joined, part)] == [0o755] * 3
    assert [mode_of(each) for each in (private, group, shared)] == [0o700, 0o775, 0o1777]
    assert mode_of(outside) == 0o777
    assert protect_home(home) == []


def test_home_that_does_not_exist_is_left_alone(tmp_path: Path) -> None:
    assert protect_home(tmp_path / "nothing") == []

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.config.source import config_history
from cogwork.config.source.config_history import ConfigHistory, config_history_for
from cogwork.config.source.history_entry import Author, AuthorKind
from cogwork.config.source.last_good import last_good_for

PAGE = Author(AuthorKind.PAGE, "key-1")


class Recorder:
    """A history and the sentences that it reported."""

    def __init__(self, directory: Path) -> None:
        self.reports: list[str] = []
        self.history = ConfigHistory(directory, self.reports.append)

    def record(self, *texts: str, now: float = 100.0) -> None:
        for text in texts:
            self.history.record(text, f"revision of {text[:5]}", now)

    def texts(self) -> list[str]:
        return [entry.text for entry in self.history.entries()]

    def ids(self) -> list[int]:
        return [entry.id for entry in self.history.entries()]

    def listed(self) -> list[int]:
        return [details.id for details in self.history.list_details()]

    def path(self, entry_id: int) -> Path:
        return self.history.directory / f"{entry_id}.config"


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path / "history")


def test_history_is_empty_before_the_first_record(recorder: Recorder) -> None:
    assert recorder.texts() == []
    assert recorder.history.find(1) is None


def test_entries_are_listed_newest_first_with_all_they_know(recorder: Recorder) -> None:
    recorder.record("größe", now=5.0)
    recorder.record("größe\nmore", now=6.5)
    newest, oldest = recorder.history.entries()
    assert (oldest.id, oldest.applied_at, oldest.text, oldest.size) == (1, 5.0, "größe", 7)
    assert (newest.id, newest.applied_at, newest.revision) == (2, 6.5, "revision of größe")
    assert newest.author == Author(AuthorKind.FILE)
    assert (oldest.summary, newest.summary) == ("first entry", "lines: 1 added")
    assert recorder.history.find(1) == oldest


def test_same_text_in_a_row_is_one_entry(recorder: Recorder) -> None:
    recorder.record("a", "a", "b", "b", "a")
    assert recorder.texts() == ["a", "b", "a"]
    Recorder(recorder.history.directory).record("a")
    assert recorder.ids() == [3, 2, 1]


def test_oldest_entries_beyond_200_are_removed(recorder: Recorder) -> None:
    recorder.record(*(f"text {number}" for number in range(1, 204)))
    assert recorder.ids() == [*range(203, 3, -1)]
    assert len([*recorder.history.directory.iterdir()]) == 200


def test_oldest_entries_are_removed_when_all_together_are_too_large(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_history, "MAX_TOTAL_SIZE", 3000)
    recorder.record("a" * 1000, "b" * 1000, "c" * 1000)
    assert recorder.ids() == [3, 2]
    recorder.record("d" * 9000)
    assert recorder.ids() == [4]


def test_files_and_directory_are_private(recorder: Recorder) -> None:
    recorder.history.directory.mkdir(mode=0o755)
    recorder.history.announce("b", PAGE, 100.0)
    recorder.record("a")
    assert stat.S_IMODE(recorder.history.directory.stat().st_mode) == 0o700
    modes = {stat.S_IMODE(path.stat().st_mode) for path in recorder.history.directory.iterdir()}
    assert modes == {0o600}


def test_details_are_those_of_the_entries_without_their_texts(recorder: Recorder) -> None:
    recorder.record("a", "größe")
    newest, oldest = recorder.history.entries()
    assert recorder.history.list_details() == [newest.details, oldest.details]
    assert (newest.details.id, newest.details.size) == (2, 7)


def test_files_are_read_again_for_the_list_only_after_a_change(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder.record("a", "b")
    assert recorder.listed() == [2, 1]
    opened: list[str] = []
    open_file = os.open

    def remember(path: Path, flags: int) -> int:
        opened.append(Path(path).name)
        return open_file(path, flags)

    monkeypatch.setattr(os, "open", remember)
    assert recorder.listed() == [2, 1]
    assert opened == []
    truncate(recorder.path(2))
    assert recorder.listed() == [1]
    assert opened == ["2.config"]
    os.utime(recorder.path(1), (0, 0))
    assert recorder.listed() == [1]
    assert opened[-1] == "1.config"


def test_listed_entry_that_is_damaged_meanwhile_is_not_shown(recorder: Recorder) -> None:
    recorder.record("a", "b")
    assert recorder.listed() == [2, 1]
    flip(recorder.path(2))
    assert recorder.history.find(2) is None


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def replace_by_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("1.config")


def replace_by_other_entry(path: Path) -> None:
    path.write_bytes(path.with_name("1.config").read_bytes())


@pytest.mark.parametrize(
    "damage",
    [
        truncate,
        flip,
        replace_by_directory,
        replace_by_pipe,
        replace_by_link,
        replace_by_other_entry,
        lambda path: path.write_text(""),
        lambda path: path.write_text("{}"),
        lambda path: path.chmod(0) if os.geteuid() else path.write_text("no"),
    ],
)
def test_damaged_entry_is_reported_once_and_skipped(
    recorder: Recorder, damage: Callable[[Path], None]
) -> None:
    recorder.record("a", "b", "c")
    damage(recorder.path(3))
    assert recorder.texts() == ["b", "a"]
    assert recorder.listed() == [2, 1]
    assert recorder.history.find(3) is None
    recorder.record("d")
    assert recorder.ids() == [4, 2, 1]
    assert len(recorder.reports) == 1
    assert recorder.reports[0].startswith(f"skipping {recorder.path(3)} in the configuration")


def test_foreign_file_is_reported_once_and_stays(recorder: Recorder) -> None:
    recorder.record("a")
    foreign = recorder.history.directory / "note\nto self"
    foreign.write_text("mine")
    recorder.record("b")
    assert recorder.texts() == ["b", "a"]
    assert foreign.exists()
    (report,) = recorder.reports
    assert "\n" not in report


def test_every_flipped_byte_is_detected(recorder: Recorder) -> None:
    recorder.record("text")
    content = recorder.path(1).read_bytes()
    for at in range(len(content)):
        recorder.path(1).write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        assert recorder.texts() == []


@given(st.text())
def test_any_text_is_read_back_unchanged(text: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        recorder = Recorder(Path(directory))
        recorder.record("first", text)
        assert recorder.texts()[0] == text


def test_full_disk_leaves_the_history_as_it_was(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder.record("a")

    def fill(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(os, "write", fill)
        with pytest.raises(OSError, match="No space left"):
            recorder.record("b")
    assert recorder.texts() == ["a"]
    assert [path.name for path in recorder.history.directory.iterdir()] == ["1.config"]
    recorder.record("c")
    assert recorder.ids() == [2, 1]


def test_announced_author_is_stored_with_the_announced_text(recorder: Recorder) -> None:
    recorder.history.announce("b", PAGE, 100.0)
    recorder.record("a", "b", "c", "b")
    kinds = [entry.author.kind.value for entry in recorder.history.entries()]
    assert kinds == ["file", "file", "page", "file"]


def test_announcement_survives_a_restart_of_the_server(recorder: Recorder) -> None:
    author = Author(AuthorKind.RESTORE, "root", 7)
    recorder.history.announce("b", author, 100.0)
    Recorder(recorder.history.directory).record("b", now=9e9)
    assert next(recorder.history.entries()).author == author


def test_announcement_ends_when_another_text_is_applied_much_later(recorder: Recorder) -> None:
    recorder.history.announce("b", PAGE, 100.0)
    recorder.record("a", now=1000.0)
    recorder.record("b", now=1001.0)
    assert {entry.author.kind for entry in recorder.history.entries()} == {AuthorKind.FILE}


def test_damaged_announcement_is_reported_and_ignored(recorder: Recorder) -> None:
    recorder.history.announce("a", PAGE, 100.0)
    truncate(recorder.history.directory / "next-author")
    recorder.record("a")
    assert next(recorder.history.entries()).author.kind is AuthorKind.FILE
    assert len(recorder.reports) == 1


def test_history_is_named_like_the_last_good_copy(tmp_path: Path) -> None:
    file = tmp_path / "robot.json"
    name = last_good_for(tmp_path, file).path.stem
    assert config_history_for(tmp_path, file).directory == tmp_path / "config-history" / name


def test_entry_with_a_very_long_revision_is_read_back(recorder: Recorder) -> None:
    recorder.history.record("a", "r" * 1_000_000, 1.0)
    assert next(recorder.history.entries()).revision == "r" * 200

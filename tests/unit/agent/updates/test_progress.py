"""The progress of updates: in the log once for each change, and in the file."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from cogwork.agent.updates.progress import UpdateProgress
from cogwork.core.clock import ManualClock
from cogwork.core.versions.product import Product
from cogwork.core.versions.update_progress import ProductProgress, read_progress

SERVER = Product.SERVER


class Following:
    def __init__(self, path: Path) -> None:
        self.path, self.clock = path, ManualClock(1000.0)
        self.progress = UpdateProgress(path, self.clock)

    @property
    def server(self) -> ProductProgress:
        return read_progress(self.path).products[SERVER]


@pytest.fixture
def following(tmp_path: Path) -> Following:
    return Following(tmp_path / "progress.json")


async def test_phase_has_the_time_of_its_beginning(following: Following) -> None:
    progress = following.progress
    assert progress.note_waiting(SERVER, "1.1.0", "the arm moves") == 1000
    await following.clock.advance(50)
    # The same phase, for another reason.
    assert progress.note_waiting(SERVER, "1.1.0", "the window is closed") == 1000
    assert following.server == ProductProgress("waiting", "1.1.0", "the window is closed", 1000)
    progress.note_switching(SERVER, "1.1.0")
    assert following.server.since == 1050
    await following.clock.advance(50)
    # The same phase of another version.
    progress.note_switching(SERVER, "1.2.0")
    assert (following.server.version, following.server.since) == ("1.2.0", 1100)


def test_log_has_each_change_once(following: Following, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            following.progress.note_failed(SERVER, "1.1.0", "it crashed")
        following.progress.note_refused(SERVER, "1.1.0", "it is too old")
        for _ in range(3):
            following.progress.note_current(SERVER, "1.0.0")
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("WARNING", "server 1.1.0 has failed: it crashed"),
        ("WARNING", "server 1.1.0 is refused: it is too old"),
        ("INFO", "server 1.0.0 is current"),
    ]


def test_fault_of_the_source_is_said_once_until_it_ends(
    following: Following, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        for fault in (None, "it is away", "it is away", None, None):
            following.progress.note_source(fault)
    assert caplog.messages == [
        "cannot look for updates: it is away",
        "can look for updates again",
    ]
    assert read_progress(following.path).source_fault is None


def test_everyone_may_read_it(following: Following) -> None:
    following.progress.note_current(SERVER, "1.0.0")
    assert following.path.stat().st_mode & 0o777 == 0o644

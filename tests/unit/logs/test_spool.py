from __future__ import annotations

import contextlib
import errno
import io
import json
import logging
import math
import os
import shutil
import signal
import tempfile
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.sizes import size
from tests.support.waiting import block_until

from cogwork.core.files import complete_write
from cogwork.logs import segments as files
from cogwork.logs import spool as spool_module
from cogwork.logs.entry import Entry
from cogwork.logs.record_codec import (
    RECORD_OVERHEAD,
    decode_entry,
    decode_record,
    encode_entry,
    encode_record,
)
from cogwork.logs.segments import LEDGER_FILE, SegmentFiles
from cogwork.logs.spool import Spool, SpoolInUse
from cogwork.logs.spool_index import (
    SLOT_SIZE,
    Batch,
    Ledger,
    LinePosition,
    QueuedLine,
    Segment,
    collect_batch,
    count_delivered,
    count_excess,
    decode_slots,
    encode_slot,
    scan_segment,
)

DEADLINE = 30.0
SEGMENT_BYTES, MAX_BYTES = 1000, 4000


def line(number: int, filler: int = 0) -> Entry:
    return Entry(float(number), logging.INFO, "rdk.test", "x.py:1", f"{number} {'x' * filler}")


def number_of(entry: Entry) -> int:
    return int(entry.message.split()[0])


def entry_numbers(batch: Batch | None) -> list[int]:
    return [] if batch is None else [number_of(entry) for entry in batch.entries]


@contextlib.contextmanager
def open_spool(directory: Path, memory_bytes: int = 1 << 20) -> Iterator[Spool]:
    spool = Spool(directory, MAX_BYTES, SEGMENT_BYTES, memory_bytes, retry=0.01)
    try:
        yield spool
    finally:
        spool.close(DEADLINE)


def put(spool: Spool, first: int, stop: int, filler: int = 0) -> None:
    for number in range(first, stop):
        spool.put(line(number, filler))


def put_on_disk(spool: Spool, first: int, stop: int, filler: int = 0) -> None:
    put(spool, first, stop, filler)
    assert spool.flush(DEADLINE)


def drain(spool: Spool) -> tuple[list[int], int]:
    """Return the delivered numbers and the count of lines reported as dropped."""
    arrived, dropped = [], 0
    while batch := spool.next_batch():
        arrived += entry_numbers(batch)
        dropped += batch.dropped
        spool.mark_delivered(batch)
    return arrived, dropped


def copy_as_killed(spool: Spool) -> Path:
    """Copy the spool directory as it would be if the process were killed now."""
    with spool._disk_lock:
        return shutil.copytree(spool.directory, spool.directory.with_name("killed"))


def next_number(spool: Spool) -> int:
    """Return the number of the next line according to the ledger."""
    with spool._disk_lock:
        _, ledger = decode_slots((spool.directory / LEDGER_FILE).read_bytes())
    assert ledger is not None
    return ledger.following


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.jsonl"))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "queue"


def test_lines_are_delivered_once_in_ordered_batches(directory: Path) -> None:
    with open_spool(directory) as spool:
        put(spool, 0, 15)
        first = spool.next_batch(10)
        assert first is not None
        assert (entry_numbers(first), first.more, first.dropped) == ([*range(10)], True, 0)
        assert spool.next_batch(10) is first, "it is the same until it is done"
        spool.mark_delivered(first)
        second = spool.next_batch(10)
        assert second is not None
        assert (entry_numbers(second), second.more) == ([*range(10, 15)], False)
        spool.mark_delivered(second)
        spool.mark_delivered(second)
        assert spool.next_batch() is None
        assert spool.counts() == (15, 15, 0, 0)


def test_entry_is_delivered_unchanged(directory: Path) -> None:
    entry = Entry(1.5, 40, "rdk.ü", "a.py:1", "two\nlines  ", {"a": [1, None]}, "Traceback:\n  x")
    with open_spool(directory) as spool:
        spool.put(entry)
        assert spool.flush(DEADLINE)
        batch = spool.next_batch()
        assert batch is not None
        assert batch.entries == [entry]


def test_only_undelivered_lines_are_repeated_after_a_restart(
    directory: Path,
) -> None:
    with open_spool(directory) as spool:
        put(spool, 0, 10)
        first = spool.next_batch(4)
        assert first is not None
        spool.mark_delivered(first)
        assert entry_numbers(spool.next_batch(4)) == [4, 5, 6, 7]
    with open_spool(directory) as spool:
        put(spool, 10, 12)
        assert spool.counts() == (12, 4, 0, 8)
        assert drain(spool) == ([*range(4, 12)], 0)


def test_batch_size_is_limited_in_bytes(directory: Path) -> None:
    lines = [
        QueuedLine(number, encode_entry(line(number, 300_000)), LinePosition(0, 0))
        for number in range(5)
    ]
    batch, _ = collect_batch(lines, 0, 5, 100)
    assert (entry_numbers(batch), batch.more) == ([0, 1, 2], True)


def test_delivered_segments_are_removed(directory: Path) -> None:
    with open_spool(directory) as spool:
        put_on_disk(spool, 0, 25)
        assert len(segments(directory)) > 1
        drain(spool)
        assert len(segments(directory)) == 1


def test_notify_once_calls_back_once(directory: Path) -> None:
    notifications: list[str] = []
    with open_spool(directory) as spool:
        spool.notify_once(lambda: notifications.append("a"))
        put(spool, 0, 3)
        block_until(lambda: bool(notifications))
        put_on_disk(spool, 3, 6)
        spool.notify_once(lambda: notifications.append("b"))
        put(spool, 6, 7)
        block_until(lambda: len(notifications) > 1)
    assert notifications == ["a", "b"]


def test_oldest_lines_are_dropped_and_counted_over_the_limit(directory: Path) -> None:
    with open_spool(directory) as spool:
        for number in range(200):
            put_on_disk(spool, number, number + 1)
            assert sum(path.stat().st_size for path in segments(directory)) <= MAX_BYTES
        counts = spool.counts()
        assert counts.dropped > 100
    with open_spool(directory) as spool:
        assert spool.counts() == counts
        arrived, dropped = drain(spool)
    assert arrived == [*range(200 - counts.queued, 200)]
    assert dropped == counts.dropped == 200 - counts.queued
    with open_spool(directory) as spool:
        assert drain(spool) == ([], 0)
        assert spool.counts() == (200, counts.queued, counts.dropped, 0)


def test_batch_in_delivery_is_not_dropped(directory: Path) -> None:
    with open_spool(directory) as spool:
        put_on_disk(spool, 0, 10)
        batch = spool.next_batch(5)
        assert batch is not None
        put_on_disk(spool, 10, 200)
        assert spool.next_batch(5) is batch
        spool.mark_delivered(batch)
        arrived, dropped = drain(spool)
        assert entry_numbers(batch) == [*range(5)]
        assert arrived == [*range(5 + dropped, 200)]
        assert spool.counts() == (200, 5 + len(arrived), dropped, 0)


def test_batch_in_delivery_without_its_segment_is_dropped_by_a_restart(directory: Path) -> None:
    with open_spool(directory) as spool:
        put_on_disk(spool, 0, 10)
        spool.next_batch(5)
        put_on_disk(spool, 10, 200)
    with open_spool(directory) as spool:
        arrived, dropped = drain(spool)
    assert arrived == [*range(dropped, 200)]


@pytest.mark.parametrize("on_disk", [True, False])
def test_older_lines_are_dropped_and_counted(directory: Path, on_disk: bool) -> None:
    with open_spool(directory) as spool:
        (put_on_disk if on_disk else put)(spool, 0, 20)
        batch = spool.next_batch()
        assert batch is not None
        assert spool.drop_older(kept=8) == 12
        assert spool.drop_older(kept=8) == 0
        assert spool.counts() == (20, 0, 12, 8)
        spool.mark_delivered(batch)
        assert spool.counts() == (20, 0, 12, 8), "it was dropped in the meantime"
        put(spool, 20, 24)
        assert spool.drop_older(kept=8) == 4
        assert drain(spool) == ([*range(16, 24)], 16)
        assert spool.counts() == (24, 8, 16, 0)
        assert spool.drop_older(kept=0) == 0


def test_dropped_lines_are_back_after_a_kill(directory: Path) -> None:
    with open_spool(directory) as spool:
        put_on_disk(spool, 0, 20)
        assert spool.drop_older(kept=8) == 12
        copy = copy_as_killed(spool)
    with open_spool(copy) as spool:
        assert drain(spool) == ([*range(20)], 0)


def test_dropped_report_counts_toward_the_batch_size(directory: Path) -> None:
    with open_spool(directory) as spool:
        put_on_disk(spool, 0, 200)
        batch = spool.next_batch(5)
        assert batch is not None
        assert batch.dropped > 0
        assert len(batch.entries) == 4


def test_invalid_size_limits_raise(directory: Path) -> None:
    with pytest.raises(ValueError, match="at least two segments"):
        Spool(directory, max_bytes=1000, segment_bytes=501)
    with pytest.raises(ValueError, match="more than 64 bytes"):
        Spool(directory, segment_bytes=64)


def test_hanging_disk_does_not_block_put_and_overflow_is_counted(
    directory: Path,
) -> None:
    with open_spool(directory, memory_bytes=1000) as spool:
        with spool._disk_lock:
            put(spool, 0, 100)
        block_until(lambda: spool.flush(0))
        put_on_disk(spool, 100, 101)
        arrived, dropped = drain(spool)
    assert arrived == [*range(len(arrived) - 1), 100]
    assert 5 < len(arrived) < 20
    assert len(arrived) + dropped == 101


def test_memory_overflow_stays_counted_after_a_kill(directory: Path) -> None:
    with open_spool(directory, memory_bytes=1000) as spool:
        put_on_disk(spool, 0, 1)
        with spool._disk_lock:
            put(spool, 1, 100)
        assert spool.flush(DEADLINE)
        copy = copy_as_killed(spool)
    with open_spool(copy) as spool:
        arrived, dropped = drain(spool)
        assert len(arrived) + dropped == 100


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "entry",
    [
        line(1, SEGMENT_BYTES),
        Entry(1.0, 20, "a", "b", "c", {"x": Unprintable()}),
        Entry(1.0, 20, "a", "b", "c", {("a", "tuple"): 1}),  # type: ignore[dict-item]
    ],
    ids=["too long", "unprintable", "not JSON"],
)
def test_line_that_cannot_be_stored_is_only_counted(directory: Path, entry: Entry) -> None:
    with open_spool(directory) as spool:
        spool.put(line(0))
        spool.put(entry)
        spool.put(line(2))
        assert spool.flush(DEADLINE)
        arrived, dropped = drain(spool)
        assert (arrived, dropped) == ([0, 2], 1)


def test_signal_handlers_and_threads_put_without_losing_any(directory: Path) -> None:
    handled = 0

    def handler(*_: object) -> None:
        nonlocal handled
        handled += 1
        spool.put(line(0))

    def put_many() -> None:
        put(spool, 0, 3000)

    with contextlib.closing(Spool(directory)) as spool:
        thread = threading.Thread(target=put_many)
        before = signal.signal(signal.SIGALRM, handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
            thread.start()
            put_many()
            thread.join()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert spool.flush(DEADLINE)
        assert handled > 0
        assert spool.counts() == (6000 + handled, 0, 0, 6000 + handled)


def test_closed_spool_accepts_and_delivers_nothing(directory: Path) -> None:
    with open_spool(directory) as spool:
        put(spool, 0, 3)
    spool.put(line(3))
    spool.close()
    with open_spool(directory) as again:
        assert drain(again) == ([0, 1, 2], 0)
    assert entry_numbers(spool.next_batch()) == []


def test_second_spool_on_a_directory_raises(directory: Path) -> None:
    with (
        open_spool(directory),
        pytest.raises(SpoolInUse, match="in use by another process; stop that process"),
    ):
        Spool(directory)
    with open_spool(directory):
        pass


def test_deleted_directory_is_created_again_and_its_lines_counted(directory: Path) -> None:
    with open_spool(directory) as spool:
        put_on_disk(spool, 0, 10)
        with spool._disk_lock:
            shutil.rmtree(directory.parent)
        put_on_disk(spool, 10, 20)
        assert drain(spool) == ([*range(10, 20)], 10)
        put_on_disk(spool, 20, 30)
    with open_spool(directory) as spool:
        assert spool.counts() == (30, 10, 10, 10)
        assert drain(spool) == ([*range(20, 30)], 0)


@pytest.mark.parametrize("victim", ["*.jsonl", LEDGER_FILE])
def test_deleted_file_is_created_again(directory: Path, victim: str) -> None:
    with open_spool(directory) as spool:
        put_on_disk(spool, 0, 3)
        with spool._disk_lock:
            for path in directory.glob(victim):
                path.unlink()
        put_on_disk(spool, 3, 6)
        batch = spool.next_batch()
        assert batch is not None
        spool.mark_delivered(batch)
        assert spool.flush(DEADLINE)
        block_until(lambda: (directory / LEDGER_FILE).exists() and not spool._ledger_unsaved)
        put_on_disk(spool, 6, 9)
    with open_spool(directory) as spool:
        arrived, _ = drain(spool)
        assert arrived == [6, 7, 8]
        assert spool.counts().put == 9


def test_spool_without_its_ledger_is_delivered_from_the_start(directory: Path) -> None:
    with open_spool(directory) as spool:
        put_on_disk(spool, 0, 5)
        drain(spool)
    (directory / LEDGER_FILE).unlink()
    with open_spool(directory) as spool:
        put(spool, 5, 7)
        assert drain(spool) == ([*range(7)], 0)


def test_lines_are_delivered_from_memory_while_the_disk_fails(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory.parent.mkdir()
    directory.write_text("not a directory")
    with caplog.at_level(logging.INFO), open_spool(directory) as spool:
        block_until(lambda: spool.fault is not None)
        put(spool, 0, 5)
        assert drain(spool) == ([*range(5)], 0)
        put(spool, 5, 8)
        assert not spool.flush(0.05)
        directory.unlink()
        assert spool.flush(DEADLINE)
        block_until(lambda: spool.fault is None)
        assert drain(spool) == ([5, 6, 7], 0)
        put(spool, 8, 9)
    with open_spool(directory) as spool:
        assert drain(spool) == ([8], 0)
        assert spool.counts() == (9, 9, 0, 0)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert f"the log queue in {directory} cannot be written: File exists" in caplog.text


def test_directory_that_appears_later_is_delivered_before_memory(directory: Path) -> None:
    with open_spool(directory) as spool:
        put_on_disk(spool, 0, 5)
    hidden = directory.with_name("hidden")
    directory.rename(hidden)
    directory.write_text("in the way")
    with open_spool(directory) as spool:
        put(spool, 5, 10)
        batch = spool.next_batch(2)
        assert batch is not None
        with spool._disk_lock:
            directory.unlink()
            hidden.rename(directory)
        assert spool.flush(DEADLINE)
        spool.mark_delivered(batch)
        assert drain(spool) == ([*range(10)], 0)


def test_lines_delivered_from_memory_leave_no_gap_on_disk(
    directory: Path,
) -> None:
    with open_spool(directory) as spool:
        put_on_disk(spool, 0, 5)
    hidden = directory.with_name("hidden")
    directory.rename(hidden)
    directory.write_text("in the way")
    with open_spool(directory) as spool:
        put(spool, 5, 10)
        batch = spool.next_batch(2)
        assert batch is not None
        spool.mark_delivered(batch)
        with spool._disk_lock:
            directory.unlink()
            hidden.rename(directory)
        assert spool.flush(DEADLINE)
        assert drain(spool) == ([0, 1, 2, 3, 4, 7, 8, 9], 0)


def test_directory_taken_by_another_process_is_not_touched(directory: Path) -> None:
    with open_spool(directory) as spool, contextlib.ExitStack() as stack:
        put_on_disk(spool, 0, 3)
        with spool._disk_lock:
            directory.rename(directory.with_name("elsewhere"))
            other = stack.enter_context(open_spool(directory))
        with stack:
            put_on_disk(other, 100, 103)
            put(spool, 3, 6)
            block_until(lambda: "it is in use by another process" in (spool.fault or ""))
        assert spool.flush(DEADLINE)
        arrived, dropped = drain(spool)
    assert (arrived, dropped) == ([100, 101, 102, 3, 4, 5], 3)


def test_partial_writes_lose_and_repeat_no_line(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all = complete_write.write_all
    failures = iter([0, 7, 150, 300, 299, 500, 1, 90])

    def write_partly(descriptor: int, data: bytes) -> None:
        cut = next(failures, None)
        write_all(descriptor, data if cut is None else data[:cut])
        if cut is not None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "write_all", write_partly)
    with open_spool(directory) as spool:
        put_on_disk(spool, 0, 20)
        assert next(failures, None) is None
        assert drain(spool) == ([*range(20)], 0)
    assert all(map(decode_record, pieces(directory)))


def test_lines_lost_from_memory_by_a_kill_are_not_counted(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_disk_full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with open_spool(directory) as spool:
        put_on_disk(spool, 0, 3)
        with monkeypatch.context() as patch:
            patch.setattr(files, "write_all", raise_disk_full)
            put(spool, 3, 6)
            block_until(lambda: spool.fault is not None)
            batch = spool.next_batch(2)
            assert batch is not None
            spool.mark_delivered(batch)
            assert spool.counts() == (6, 2, 0, 4)
            copy = copy_as_killed(spool)
    with open_spool(copy) as spool:
        assert spool.counts() == (3, 2, 0, 1)
        assert drain(spool) == ([2], 0)


def test_synced_lines_are_recorded_in_the_ledger(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_module, "SYNC_INTERVAL", 0.0)
    with open_spool(directory) as spool:
        put_on_disk(spool, 0, 1)
        block_until(lambda: next_number(spool) == 1)
        put_on_disk(spool, 1, 5)
        block_until(lambda: next_number(spool) == 5)


class Unreadable(io.BytesIO):
    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def readline(self, _: int | None = -1, /) -> bytes:
        raise OSError(self._number, os.strerror(self._number))


def test_read_error_ends_a_segment_only_when_it_is_permanent() -> None:
    assert files._read_piece(Unreadable(errno.EIO)) == b""
    with pytest.raises(OSError, match=os.strerror(errno.ENOMEM)):
        files._read_piece(Unreadable(errno.ENOMEM))


def test_temporarily_unreadable_segment_is_read_later(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_too_many_files(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with open_spool(directory) as spool:
        put_on_disk(spool, 0, 5)
        with monkeypatch.context() as patch:
            patch.setattr(SegmentFiles, "_open_reader", raise_too_many_files)
            assert spool.next_batch() is None
        assert drain(spool) == ([*range(5)], 0)


def test_torn_last_line_is_cut_off_and_not_counted(directory: Path) -> None:
    with open_spool(directory) as spool:
        put_on_disk(spool, 0, 3)
    with segments(directory)[-1].open("ab") as file:
        file.write(encode_record(3, encode_entry(line(3)))[:-9])
    with open_spool(directory) as spool:
        assert spool.counts().put == 3
        put_on_disk(spool, 3, 6)
        assert drain(spool) == ([*range(6)], 0)
    assert len(segments(directory)) == 1


def test_torn_ledger_slot_falls_back_to_the_previous_one(directory: Path) -> None:
    with open_spool(directory) as spool:
        put_on_disk(spool, 0, 6)
        for _ in range(3):
            batch = spool.next_batch(2)
            assert batch is not None
            spool.mark_delivered(batch)
        assert batch is not None
        data = bytearray((directory / LEDGER_FILE).read_bytes())
        turn, _ = decode_slots(bytes(data))
    # As if the process had been killed during its last write to the ledger.
    data[turn % 2 * SLOT_SIZE + 20] ^= 1
    (directory / LEDGER_FILE).write_bytes(data)
    with open_spool(directory) as spool:
        assert drain(spool) == ([4, 5], 0)


@st.composite
def damages(draw: st.DrawFn) -> tuple[float, float, bytes | None, int]:
    """Draw segment and offset as fractions, the garbage (None: truncate) and its extent."""
    share = st.floats(0, 1, exclude_max=True)
    garbage = st.one_of(st.none(), st.binary(max_size=30), st.just(b"\n"), st.just(bytes(300)))
    return draw(share), draw(share), draw(garbage), draw(st.integers(0, 300))


def damage(path: Path, where: float, garbage: bytes | None, over: int) -> None:
    data = path.read_bytes()
    at = int(where * len(data))
    rest = b"" if garbage is None else garbage + data[at + over :]
    path.write_bytes(data[:at] + rest)


@settings(max_examples=size(ci=40, full=1000))
@given(st.integers(1, 60), st.lists(damages(), min_size=1, max_size=4))
def test_damage_loses_and_counts_only_the_damaged_lines(
    count: int, marks: list[tuple[float, float, bytes | None, int]]
) -> None:
    with tempfile.TemporaryDirectory() as home:
        directory = Path(home)
        with open_spool(directory) as spool:
            put_on_disk(spool, 0, count)
            queued = spool.counts().queued
        for which, where, garbage, over in marks:
            files = segments(directory)
            damage(files[int(which * len(files))], where, garbage, over)
        whole = sorted(whole_lines(directory))
        with open_spool(directory) as spool:
            put_on_disk(spool, count, count + 5)
            arrived, dropped = drain(spool)
            # The garbage may have made the segments larger than the limit.
            kept = [number for number in whole if number >= arrived[0]]
            assert arrived == [*kept, *range(count, count + 5)]
            assert len(arrived) + dropped == count + 5
            assert len(arrived) <= queued + 5


def whole_lines(directory: Path) -> set[int]:
    return {found[0] for piece in pieces(directory) if (found := decode_record(piece))}


def pieces(directory: Path) -> Iterator[bytes]:
    """Yield the pieces between line breaks."""
    for path in segments(directory):
        yield from io.BytesIO(path.read_bytes())


@dataclass
class ModelSegment:
    first: int
    size: int = 0
    numbers: list[int] = field(default_factory=list)


@dataclass
class SpoolModel:
    """A naive model of the spool that keeps lists and recounts everything."""

    segments: list[ModelSegment] = field(default_factory=list)
    put: int = 0
    position: int = 0
    delivered: set[int] = field(default_factory=set)
    claimed: list[int] | None = None
    claimed_until: int = 0

    def add(self, filler: int) -> None:
        size = len(encode_record(self.put, encode_entry(line(self.put, filler))))
        if not self.segments or self.segments[-1].size + size > SEGMENT_BYTES:
            self.segments.append(ModelSegment(self.put))
        while sum(s.size for s in self.segments) + size > MAX_BYTES and len(self.segments) > 1:
            del self.segments[0]
        self.segments[-1].numbers.append(self.put)
        self.segments[-1].size += size
        self.put += 1

    def batch(self, most: int) -> list[int]:
        if self.claimed is None:
            rest = [n for s in self.segments for n in s.numbers if n >= self.position]
            count = sum(self._fits(rest, index, most) for index in range(len(rest)))
            self.claimed = rest[:count]
            self.claimed_until = self.put if count == len(rest) else rest[count - 1] + 1
        return self.claimed

    def _fits(self, rest: list[int], index: int, most: int) -> bool:
        is_any_missing = rest[index] - self.position > index
        return index + 1 + is_any_missing <= most

    def done(self) -> None:
        assert self.claimed is not None
        self.delivered.update(self.claimed)
        self.position, self.claimed = self.claimed_until, None
        while len(self.segments) > 1 and self.segments[1].first <= self.position:
            del self.segments[0]

    def counts(self) -> tuple[int, int, int, int]:
        on_disk = {n for s in self.segments for n in s.numbers if n >= self.position}
        missing = set() if self.claimed is None else {*range(self.claimed_until)} - {*self.claimed}
        queued = len((on_disk | {*(self.claimed or ())}) - missing)
        return self.put, len(self.delivered), self.put - len(self.delivered) - queued, queued


STEPS = st.one_of(
    st.tuples(st.just("put"), st.lists(st.integers(0, 500), min_size=1, max_size=12)),
    st.tuples(st.just("deliver"), st.integers(2, 8)),
    st.tuples(st.just("fail"), st.integers(2, 8)),
    st.tuples(st.just("restart"), st.just(0)),
)


@given(st.lists(STEPS, max_size=30))
@example([("put", [100] * 9), ("fail", 5), ("put", [400] * 12), ("restart", 0), ("deliver", 5)])
@example([("put", [100] * 9), ("fail", 5), ("put", [400] * 12), ("deliver", 5), ("deliver", 5)])
def test_spool_behaves_like_its_model(steps: list[tuple[str, int | list[int]]]) -> None:
    with tempfile.TemporaryDirectory() as home, contextlib.ExitStack() as stack:
        spool, model = stack.enter_context(open_spool(Path(home))), SpoolModel()
        for step, argument in steps:
            if isinstance(argument, list):
                for filler in argument:
                    put_on_disk(spool, model.put, model.put + 1, filler)
                    model.add(filler)
            elif step == "restart":
                stack.close()
                spool, model.claimed = stack.enter_context(open_spool(Path(home))), None
            else:
                batch = spool.next_batch(argument)
                assert entry_numbers(batch) == model.batch(argument)
                if step == "deliver" and batch is not None:
                    spool.mark_delivered(batch)
                    model.done()
                elif batch is None:
                    model.claimed = None
            assert spool.counts() == model.counts()


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXT)
ENTRIES = st.builds(
    Entry,
    time=st.floats(0, 4e9),
    level=st.integers(0, 60),
    logger=TEXT,
    place=TEXT,
    message=TEXT,
    fields=st.dictionaries(TEXT, VALUES, max_size=3),
    trace=st.one_of(st.none(), TEXT.filter(bool)),
)


@given(ENTRIES, st.integers(0, 10**18))
def test_record_is_a_json_line_that_decodes_to_the_entry(entry: Entry, number: int) -> None:
    record = encode_record(number, encode_entry(entry))
    assert len(record) <= len(encode_entry(entry)) + RECORD_OVERHEAD
    assert record.count(b"\n") == 1
    assert json.loads(record)["n"] == number
    found = decode_record(record)
    assert found is not None
    assert found[0] == number
    assert decode_entry(found[1]) == entry


@given(ENTRIES, st.data())
def test_record_with_a_changed_or_missing_byte_is_detected(
    entry: Entry, data: st.DataObject
) -> None:
    record = encode_record(7, encode_entry(entry))
    at = data.draw(st.integers(0, len(record) - 1))
    changed = bytearray(record)
    changed[at] ^= data.draw(st.integers(1, 255))
    assert decode_record(bytes(changed)) is None
    assert decode_record(record[:at]) is None


def test_surrogates_are_replaced_in_records() -> None:
    entry = decode_entry(encode_entry(Entry(1.0, 20, "a", "b", "half \ud800 a pair", {"x": {1}})))
    assert entry is not None
    assert entry.message == "half ? a pair"
    assert entry.fields == {"x": "{1}"}


def test_record_of_another_version_counts_as_dropped() -> None:
    batch, _ = collect_batch([QueuedLine(0, b'{"colour":1}', LinePosition(0, 0))], 0, 1, 100)
    assert batch == Batch(0, 1, [], more=False)
    assert batch.dropped == 1


@given(st.lists(st.integers(0, 50), unique=True).map(sorted), st.integers(1, 10))
def test_batches_cover_every_number_once_within_their_size(there: list[int], most: int) -> None:
    lines = [
        QueuedLine(number, encode_entry(line(number)), LinePosition(0, number)) for number in there
    ]
    start, arrived, dropped = 0, [], 0
    while start < 60:
        batch, place = collect_batch(lines, start, 60, most)
        assert batch.stop > batch.start == start
        assert len(batch.entries) + (batch.dropped > 0) <= most
        assert place is None or place.offset >= batch.stop
        arrived += entry_numbers(batch)
        dropped += batch.dropped
        start = batch.stop
    assert (arrived, dropped) == (there, 60 - len(there))


def test_count_excess_never_includes_the_last_segment() -> None:
    three = [Segment(0, 10), Segment(5, 20), Segment(9, 30)]
    assert [count_excess(three, most) for most in (60, 59, 50, 49, 0)] == [0, 1, 1, 2, 2]
    assert count_excess([], 0) == 0


def test_count_delivered_counts_segments_before_the_position() -> None:
    three = [Segment(0, 10), Segment(5, 20), Segment(9, 30)]
    assert [count_delivered(three, position) for position in (0, 4, 5, 8, 9, 99)] == [
        0,
        0,
        1,
        1,
        2,
        2,
    ]


def test_scan_segment_ends_after_the_last_whole_line() -> None:
    whole = [encode_record(number, encode_entry(line(number))) for number in (4, 5)]
    size = sum(map(len, whole))
    assert scan_segment(whole, 4) == (6, size)
    assert scan_segment([*whole, b"garbage\n", b"torn"], 4) == (6, size + 8)
    assert scan_segment([b"torn"], 4) == (4, 0)
    assert scan_segment([b"two\n", b"pieces\n", *whole], 4) == (6, size + 11)


def test_later_intact_ledger_slot_counts() -> None:
    first, second = Ledger("q", 1, 2, 0), Ledger("q", 2, 3, 1)
    slots = encode_slot(8, first) + encode_slot(9, second)
    assert len(slots) == 2 * SLOT_SIZE
    assert decode_slots(slots) == (9, second)
    assert decode_slots(slots[: SLOT_SIZE + 50]) == (8, first)
    assert decode_slots(bytes(SLOT_SIZE) + encode_slot(9, second)) == (9, second)
    assert decode_slots(b"") == (0, None)
    largest = Ledger("f" * 16, 10**18, 10**18, 10**18)
    assert decode_slots(encode_slot(10**18, largest)) == (10**18, largest)


def with_checksum(rest: bytes) -> bytes:
    """Return a line with a valid checksum and the given rest."""
    return b'{"crc":"%08x",%s' % (zlib.crc32(rest), rest)


@pytest.mark.parametrize(
    "rest",
    [
        b"\n",
        b'"n":,"data":{}}\n',
        b'"n":-1,"data":{}}\n',
        b'"n":1_0,"data":{}}\n',
        b'"n":%s,"data":{}}\n' % (b"9" * 5000),
        b'"n":1}\n',
    ],
    ids=lambda rest: rest[:12].decode(),
)
def test_record_without_a_valid_number_is_damaged(rest: bytes) -> None:
    assert decode_record(with_checksum(rest)) is None


def test_too_deeply_nested_ledger_is_ignored() -> None:
    # A body that Python's JSON parser refuses; the slot itself is smaller.
    assert decode_slots(encode_record(3, b"[" * 200)[:-1].ljust(SLOT_SIZE)) == (3, None)


@pytest.mark.parametrize(
    "change",
    [
        {"time": None},
        {"time": math.nan},
        {"time": 1e20},
        {"level": "info"},
        {"level": 1.5},
        {"logger": 5},
        {"place": None},
        {"message": {}},
        {"fields": []},
        {"trace": 1},
    ],
    ids=str,
)
def test_entry_with_invalid_fields_is_not_decoded(change: dict[str, object]) -> None:
    valid = {"time": 1.5, "level": 20, "logger": "a", "place": "b:1", "message": "c"}
    assert decode_entry(json.dumps(valid).encode()) == Entry(1.5, 20, "a", "b:1", "c")
    assert decode_entry(json.dumps(valid | change).encode()) is None

r"""The log queue killed at any moment, and on a full or read-only disk.

Run as a program, ``<directory> <journal> <bound>``, it is what is killed: it writes and delivers at
the same time, and keeps a journal of what is on disk and what was sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.paths import REPOSITORY
from tests.support.sizes import size
from tests.support.small_disk import small_disk
from tests.support.waiting import block, block_until, pass_time

from cogwork.core.clock import SystemClock
from cogwork.logs.entry import Entry
from cogwork.logs.record_codec import decode_entry, decode_record
from cogwork.logs.segments import LEDGER_FILE
from cogwork.logs.spool import LOGGER, Spool
from cogwork.logs.spool_index import decode_slots
from cogwork.logs.upload import Uploader, entries_to_send

KILLS = size(ci=10, full=200)
START_DEADLINE = 60.0
END_DEADLINE = 60.0
SEGMENT_BYTES = 16 << 10
ROOMY, TIGHT = 256 << 20, 64 << 10


def line(number: int) -> Entry:
    """Return an entry with the number that the queue will assign."""
    filler = "x" * random.Random(number).randint(0, 500)
    return Entry(float(number), logging.INFO, "rdk.test", "x.py:1", f"{number} {filler}")


async def put_and_deliver(directory: str, journal: str, bound: str) -> None:
    spool = Spool(Path(directory), int(bound), SEGMENT_BYTES)
    note = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def send(lines: Sequence[Entry]) -> None:
        await pass_time(random.choice((0, 0, 0.001, 0.02)))
        if random.random() < 0.01:
            raise ConnectionError("not this time")
        os.write(note, "".join(map(format_entry, lines)).encode())
        await pass_time(random.choice((0, 0, 0.001)))

    uploading = asyncio.create_task(Uploader(spool, send, SystemClock()).run())
    number = spool.counts().put
    os.write(1, b"ready\n")
    while not uploading.done():
        for _ in range(random.choice((1, 10, 100))):
            spool.put(line(number))
            number += 1
        if await asyncio.to_thread(spool.flush, 5.0):
            os.write(note, b"kept %d\n" % number)


def format_entry(entry: Entry) -> str:
    if entry.logger == LOGGER:
        return f"dropped {entry.fields['dropped']}\n"
    number = int(entry.message.split()[0])
    assert entry == line(number), f"line {number} was changed on its way"
    return f"sent {number}\n"


@dataclass
class Journal:
    kept: int = 0
    """So many were on the disk at least once."""
    sent: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)

    def read(self, path: Path) -> None:
        text = path.read_text() if path.exists() else ""
        for line in text.splitlines(keepends=True):
            # A kill may tear the last line, which then does not count.
            if line.endswith("\n"):
                word, number = line.split()
                self.note(word, int(number))

    def note(self, word: str, number: int) -> None:
        if word == "kept":
            self.kept = max(self.kept, number)
        elif word == "sent":
            self.sent.append(number)
        else:
            self.dropped.append(number)


@pytest.mark.timeout(size(ci=240, full=900))
@pytest.mark.parametrize("bound", [ROOMY, TIGHT], ids=["roomy", "tight"])
def test_killed_process_loses_nothing_that_was_on_disk(tmp_path: Path, bound: int) -> None:
    directory, journal, torn = tmp_path / "queue", Journal(), 0
    # Half of the kills for each of the two bounds.
    kills = KILLS // 2
    for kill in range(kills):
        path = tmp_path / f"journal-{kill}"
        kill_process(directory, path, bound, at_start=kill % 10 == 4)
        torn += assert_readable(directory)
        journal.read(path)
    assert journal.kept > 0
    with contextlib.closing(Spool(directory, bound, SEGMENT_BYTES)) as spool:
        before = spool.counts()
        assert before.put >= journal.kept, "lines are gone from the disk"
        sent, reported = drain(spool)
        after = spool.counts()
    missing = {*range(after.put)} - {*journal.sent} - {*sent}
    again = len(journal.sent) + len(sent) - len({*journal.sent, *sent})
    print(
        f"\n{kills} kills, {torn} torn ends: {after.put} lines, {after.delivered} delivered, "
        f"{again} of them again, {after.dropped} dropped"
    )
    assert (after.put, after.queued) == (before.put, 0)
    assert after.put == after.delivered + after.dropped
    # A batch that was sent but not yet recorded in the ledger may have been dropped.
    assert len(missing) <= after.dropped <= len(missing) + 100 * kills
    assert sum(journal.dropped) + reported >= after.dropped
    assert bound == TIGHT or not missing
    assert bound == ROOMY or missing, "nothing had to make room"


def kill_process(directory: Path, journal: Path, bound: int, *, at_start: bool) -> None:
    command = [sys.executable, "-m", "tests.fault.test_spool_kills"]
    arguments = [str(directory), str(journal), str(bound)]
    with subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, cwd=REPOSITORY
    ) as process:
        assert process.stdout is not None
        try:
            if not at_start:
                ready, _, _ = select.select([process.stdout], [], [], START_DEADLINE)
                assert ready, f"it did not start within {START_DEADLINE:g} s"
            block(random.uniform(0, 0.3))  # the moment is the input here
        finally:
            process.kill()
        process.communicate(timeout=END_DEADLINE)
    assert process.returncode == -9, "it ended by itself"


def assert_readable(directory: Path) -> bool:
    """Check that all lines but the last are complete; return whether the last one is torn."""
    segments = sorted(directory.glob("*.jsonl"))
    pieces = [piece for path in segments for piece in path.read_bytes().split(b"\n")]
    assert all(decode_record(piece + b"\n") for piece in pieces[:-1] if piece)
    ledger = (directory / LEDGER_FILE).read_bytes() if (directory / LEDGER_FILE).exists() else b""
    assert not ledger or decode_slots(ledger)[1] is not None
    return bool(pieces and pieces[-1])


def drain(spool: Spool) -> tuple[list[int], int]:
    sent, dropped = [], 0
    while batch := spool.next_batch():
        sent += [int(format_entry(entry).split()[1]) for entry in batch.entries]
        dropped += batch.dropped
        assert len(entries_to_send(batch, 0.0)) <= 100
        spool.mark_delivered(batch)
    return sent, dropped


@contextlib.contextmanager
def open_spool(directory: Path, memory_bytes: int = 1 << 20) -> Iterator[Spool]:
    spool = Spool(directory, ROOMY, SEGMENT_BYTES, memory_bytes, retry=0.01)
    try:
        yield spool
    finally:
        spool.close(END_DEADLINE)


def put(spool: Spool, first: int, stop: int) -> None:
    for number in range(first, stop):
        spool.put(line(number))


def wait_for_fault(spool: Spool, words: str) -> None:
    block_until(lambda: words in (spool.fault or ""), END_DEADLINE)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1000))


def test_full_disk_loses_nothing_that_fits_into_memory(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 256) as disk:
        with open_spool(disk / "queue") as spool:
            put(spool, 0, 100)
            assert spool.flush(END_DEADLINE)
            fill(disk / "filler")
            put(spool, 100, 500)
            wait_for_fault(spool, "No space left on device")
            batch = spool.next_batch()
            assert batch is not None
            spool.mark_delivered(batch)
            # It frees space itself as segments are delivered, so the disk is filled again.
            fill(disk / "more")
            (disk / "filler").unlink()
            (disk / "more").unlink()
            assert spool.flush(END_DEADLINE)
        with open_spool(disk / "queue") as spool:
            assert spool.counts() == (500, 100, 0, 400)
            assert drain(spool) == ([*range(100, 500)], 0)


def test_lines_dropped_on_a_disk_filled_by_the_queue_are_counted(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 128) as disk:
        with open_spool(disk / "queue", memory_bytes=20_000) as spool:
            count = 0
            while spool.fault is None:
                assert count < 2000
                put(spool, count, count + 20)
                count += 20
                spool.flush(0.1)
            put(spool, count, 2000)
            wait_for_fault(spool, "No space left on device")
            sent, dropped = drain(spool)
            assert dropped > 0
            assert sent == [*range(len(sent))]
            assert len(sent) >= count
            assert len(sent) + dropped == 2000
            put(spool, 2000, 2010)
            assert spool.flush(END_DEADLINE)
        with open_spool(disk / "queue") as spool:
            assert spool.counts() == (2010, len(sent), dropped, 10)
            assert drain(spool) == ([*range(2000, 2010)], 0)


def test_delivery_from_a_full_disk_is_recorded(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 256) as disk:
        with open_spool(disk / "queue") as spool:
            put(spool, 0, 20)
            assert spool.flush(END_DEADLINE)
            fill(disk / "filler")
            batch = spool.next_batch(10)
            assert batch is not None
            spool.mark_delivered(batch)
        with open_spool(disk / "queue") as spool:
            assert drain(spool) == ([*range(10, 20)], 0)


@contextlib.contextmanager
def read_only(disk: Path, directory: Path) -> Iterator[None]:
    if os.geteuid() == 0:
        remount = ["mount", "-o", "remount,{}", str(disk)]
        yes, no = ([word.format(mode) for word in remount] for mode in ("ro", "rw"))
    else:
        yes, no = (["chmod", mode, str(directory)] for mode in ("500", "700"))
    subprocess.run(yes, check=True, timeout=END_DEADLINE)
    try:
        yield
    finally:
        subprocess.run(no, check=True, timeout=END_DEADLINE)


def test_read_only_disk_is_delivered_from_and_recovers(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        disk = tmp_path / "disk"
        if os.geteuid() == 0:
            stack.enter_context(small_disk(disk, 1024))
        with open_spool(disk / "queue") as spool:
            put(spool, 0, 50)
        with contextlib.ExitStack() as locked:
            locked.enter_context(read_only(disk, disk / "queue"))
            spool = stack.enter_context(open_spool(disk / "queue"))
            wait_for_fault(spool, "Read-only" if os.geteuid() == 0 else "Permission denied")
            put(spool, 50, 100)
            assert drain(spool) == ([*range(100)], 0)
            put(spool, 100, 110)
            assert not spool.flush(0.05)
            locked.close()
            assert spool.flush(END_DEADLINE)
        spool.close(END_DEADLINE)
        with open_spool(disk / "queue") as spool:
            assert spool.counts() == (110, 100, 0, 10)
            assert drain(spool) == ([*range(100, 110)], 0)


def test_queued_entries_are_readable_json(tmp_path: Path) -> None:
    with open_spool(tmp_path / "queue") as spool:
        put(spool, 0, 1)
    (segment,) = (tmp_path / "queue").glob("*.jsonl")
    found = decode_record(segment.read_bytes())
    assert found is not None
    assert decode_entry(found[1]) == line(0)


if __name__ == "__main__":
    asyncio.run(put_and_deliver(*sys.argv[1:]))

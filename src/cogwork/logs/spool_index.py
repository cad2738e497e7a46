"""The index of the spool: the location of each line, and whether it is due, delivered or evicted.

Lines have sequence numbers. If a number is missing when it is due, the line was dropped. Pure,
without I/O.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import NamedTuple

from cogwork.logs.entry import Entry
from cogwork.logs.record_codec import COMPACT_JSON, decode_entry, decode_record, encode_record

MAX_BATCH_BYTES = 1 << 20
"""Maximum size of a batch in bytes: a quarter of what gRPC receives by default."""


class Batch(NamedTuple):
    start: int
    stop: int
    """The number after the last line."""
    entries: Sequence[Entry]
    more: bool
    """Whether more lines are queued after the batch."""

    @property
    def dropped(self) -> int:
        """Number of lines missing from the range of the batch."""
        return self.stop - self.start - len(self.entries)


class SpoolCounts(NamedTuple):
    """Counts since the queue was created: put = delivered + dropped + queued.

    Lines that are damaged, or did not fit into memory, are detected when they are due. Until then,
    they count as queued.
    """

    put: int
    delivered: int
    dropped: int
    queued: int


class LinePosition(NamedTuple):
    segment: int
    offset: int


NO_POSITION = LinePosition(-1, 0)


class QueuedLine(NamedTuple):
    number: int
    body: bytes
    position: LinePosition


@dataclass(slots=True)
class Segment:
    first: int
    """The number of the segment's first line. The segment ends where the next one starts."""
    size: int


@dataclass(slots=True)
class Ledger:
    queue: str
    """Random ID of the queue, which shows if another queue is at the same path."""
    position: int
    """The number of the next line to deliver. All earlier lines were delivered or dropped."""
    following: int
    """The number that the next new line gets."""
    dropped: int


def collect_batch(
    lines: Iterable[QueuedLine], start: int, end: int, limit: int
) -> tuple[Batch, LinePosition | None]:
    """Return a batch and the position of the first line after it."""
    entries: list[Entry] = []
    stop, size = start, 0
    for number, body, position in lines:
        if number < stop:
            continue
        # The notice about dropped lines counts as one line.
        room = limit if number - start == len(entries) else limit - 1
        size += len(body)
        if len(entries) >= room or (entries and size > MAX_BATCH_BYTES):
            return Batch(start, stop if entries else number, entries, more=True), position
        if (entry := decode_entry(body)) is not None:
            entries.append(entry)
            stop = number + 1
    if len(entries) == limit and stop < end:
        return Batch(start, stop, entries, more=True), None
    return Batch(start, end, entries, more=False), None


def count_excess(segments: Sequence[Segment], max_bytes: int) -> int:
    """Return how many of the oldest segments to evict. Never evict the last segment, because lines
    are still written to it."""
    total = sum(segment.size for segment in segments)
    count = 0
    while total > max_bytes and count < len(segments) - 1:
        total -= segments[count].size
        count += 1
    return count


def count_delivered(segments: Sequence[Segment], position: int) -> int:
    """Return how many of the oldest segments were delivered completely."""
    return sum(following.first <= position for _, following in pairwise(segments))


def segment_ranges(segments: Sequence[Segment], end: int) -> Iterator[tuple[Segment, int]]:
    """Yield each segment with the number at which it ends."""
    ends = [*(segment.first for segment in segments[1:]), end]
    return zip(segments, ends, strict=False)


def encode_fitting(lines: Iterable[tuple[int, bytes]], room: int) -> list[bytes]:
    """Encode the first lines that fit into `room` bytes."""
    portion: list[bytes] = []
    for number, body in lines:
        line = encode_record(number, body)
        room -= len(line)
        if room < 0:
            break
        portion.append(line)
    return portion


def scan_segment(pieces: Iterable[bytes], first: int) -> tuple[int, int]:
    """Return the number after the last valid line, and the size without an incomplete line."""
    stop, size, whole = first, 0, 0
    for piece in pieces:
        size += len(piece)
        if piece.endswith(b"\n"):
            whole = size
        if found := decode_record(piece):
            stop = found[0] + 1
    return stop, whole


SLOT_SIZE = 512
"""Size of a slot in bytes. The ledger has two slots that are written alternately, so that one of
them is always intact. Overwriting a slot also works on a full disk."""


def encode_slot(turn: int, ledger: Ledger) -> bytes:
    body = COMPACT_JSON.encode(asdict(ledger)).encode()
    return encode_record(turn, body).removesuffix(b"\n").ljust(SLOT_SIZE - 1) + b"\n"


def decode_slots(data: bytes) -> tuple[int, Ledger | None]:
    """Return the number of the last write, and its ledger; None if no slot is valid."""
    slots = (data[start : start + SLOT_SIZE].rstrip() + b"\n" for start in (0, SLOT_SIZE))
    found = max(filter(None, map(decode_record, slots)), default=None)
    if found is None:
        return 0, None
    turn, body = found
    try:
        return turn, Ledger(**json.loads(body))
    except (ValueError, TypeError, RecursionError):
        return turn, None

"""The account of the spool, pure: which numbers are where, which are due, which give way.

A number that is not found when its turn comes was dropped, whatever took it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import NamedTuple

from cogwork.logs.entry import Entry
from cogwork.logs.sealed import COMPACT, decode, seal, unseal

BATCH_BYTES = 1 << 20
"""A message of gRPC may have four times as many."""


class Batch(NamedTuple):
    start: int
    stop: int
    """The number after its last line."""
    entries: Sequence[Entry]
    more: bool
    """Whether others waited behind it."""

    @property
    def dropped(self) -> int:
        """How many lines should be among these and are not."""
        return self.stop - self.start - len(self.entries)


class Place(NamedTuple):
    segment: int
    offset: int


NOWHERE = Place(-1, 0)


class Line(NamedTuple):
    number: int
    body: bytes
    place: Place


@dataclass(slots=True)
class Segment:
    first: int
    """The number of its first line; the next segment's is where it ends."""
    size: int


@dataclass(slots=True)
class Ledger:
    queue: str
    """Tells this queue from another in the same place."""
    position: int
    """The number to be delivered next. All before it were delivered or dropped."""
    following: int
    """The number that the next line gets."""
    dropped: int


def gather(lines: Iterable[Line], start: int, end: int, most: int) -> tuple[Batch, Place | None]:
    """A batch, and where the first line behind it is."""
    entries: list[Entry] = []
    stop, size = start, 0
    for number, body, place in lines:
        if number < stop:
            continue
        # The line that tells how many are missing takes the place of one.
        room = most if number - start == len(entries) else most - 1
        size += len(body)
        if len(entries) >= room or (entries and size > BATCH_BYTES):
            return Batch(start, stop if entries else number, entries, more=True), place
        if (entry := decode(body)) is not None:
            entries.append(entry)
            stop = number + 1
    if len(entries) == most and stop < end:
        return Batch(start, stop, entries, more=True), None
    return Batch(start, end, entries, more=False), None


def excess(segments: Sequence[Segment], most: int) -> int:
    """How many of the oldest must go. Never the last, which is being written."""
    total = sum(segment.size for segment in segments)
    count = 0
    while total > most and count < len(segments) - 1:
        total -= segments[count].size
        count += 1
    return count


def used_up(segments: Sequence[Segment], position: int) -> int:
    """How many of the oldest hold nothing that is still to be delivered."""
    return sum(following.first <= position for _, following in pairwise(segments))


def spans(segments: Sequence[Segment], end: int) -> Iterator[tuple[Segment, int]]:
    """Each with the number at which it ends."""
    ends = [*(segment.first for segment in segments[1:]), end]
    return zip(segments, ends, strict=False)


def fitting(lines: Iterable[tuple[int, bytes]], room: int) -> list[bytes]:
    """As many of the first lines, ready to be written, as there is room for."""
    portion: list[bytes] = []
    for number, body in lines:
        line = seal(number, body)
        room -= len(line)
        if room < 0:
            break
        portion.append(line)
    return portion


def survey(pieces: Iterable[bytes], first: int) -> tuple[int, int]:
    """The number after the last whole line of a segment, and the size without a torn one."""
    stop, size, whole = first, 0, 0
    for piece in pieces:
        size += len(piece)
        if piece.endswith(b"\n"):
            whole = size
        if found := unseal(piece):
            stop = found[0] + 1
    return stop, whole


SLOT = 512
"""Bytes of one of the two places in the ledger, which are written by turns: whatever happens to
one while it is written, the other is whole. Nothing is allocated for it on a disk that is full."""


def encode_slot(turn: int, ledger: Ledger) -> bytes:
    body = COMPACT.encode(asdict(ledger)).encode()
    return seal(turn, body).removesuffix(b"\n").ljust(SLOT - 1) + b"\n"


def decode_slots(data: bytes) -> tuple[int, Ledger | None]:
    """The last turn and what was written in it; None if there is none that is whole."""
    slots = (data[start : start + SLOT].rstrip() + b"\n" for start in (0, SLOT))
    found = max(filter(None, map(unseal, slots)), default=None)
    if found is None:
        return 0, None
    turn, body = found
    try:
        return turn, Ledger(**json.loads(body))
    except (ValueError, TypeError):
        return turn, None

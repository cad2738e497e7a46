"""Reassembles the messages of one SCTP stream from their chunks (RFC 9260 section 6.6).

Chunks are numbered by TSN, and messages by stream sequence number. The two orders differ in Go's
stack if two threads send at the same time. The class of aiortc then stops delivering, because it
looks for the next message only among the first chunks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Protocol

from aiortc.rtcsctptransport import (
    SCTP_DATA_FIRST_FRAG,
    SCTP_DATA_LAST_FRAG,
    SCTP_DATA_UNORDERED,
)
from aiortc.utils import uint16_add, uint16_gt, uint32_gte

Message = tuple[int, int, bytes]
"""The ID of the stream, the protocol, and the data."""


class Chunk(Protocol):
    @property
    def flags(self) -> int: ...

    @property
    def tsn(self) -> int: ...

    @property
    def stream_id(self) -> int: ...

    @property
    def stream_seq(self) -> int: ...

    @property
    def protocol(self) -> int: ...

    @property
    def user_data(self) -> bytes: ...


class InboundStream:
    """A replacement for aiortc's class. Its time per chunk does not grow with the number of waiting
    chunks."""

    def __init__(self) -> None:
        self._expected = 0
        self._starts: dict[int, deque[Chunk]] = {}
        """Incomplete messages by their first TSN. Each is a run of consecutive chunks."""
        self._ends: dict[int, deque[Chunk]] = {}
        """The same incomplete messages by their last TSN."""
        self._early: dict[int, list[Message]] = {}
        """Complete messages that wait for earlier messages, by sequence number."""
        self._ready: deque[Message] = deque()

    @property
    def sequence_number(self) -> int:
        """The sequence number of the next ordered message."""
        return self._expected

    @sequence_number.setter
    def sequence_number(self, number: int) -> None:
        """Skip to a message, because the peer has abandoned the missing messages before it."""
        self._expected = number
        former = [each for each in self._early if uint16_gt(number, each)]
        for each in sorted(former, key=lambda each: uint16_add(each, -number)):
            self._ready.extend(self._early.pop(each))
        self._release()

    def add_chunk(self, chunk: Chunk) -> None:
        """Add a chunk whose TSN was not received before."""
        run = deque((chunk,))
        if not chunk.flags & SCTP_DATA_FIRST_FRAG:
            before = self._ends.get(_add(chunk.tsn, -1))
            if before is not None and not before[-1].flags & SCTP_DATA_LAST_FRAG:
                run = self._join(before, run)
        if not chunk.flags & SCTP_DATA_LAST_FRAG:
            after = self._starts.get(_add(chunk.tsn, 1))
            if after is not None and not after[0].flags & SCTP_DATA_FIRST_FRAG:
                run = self._join(run, after)
        if run[0].flags & SCTP_DATA_FIRST_FRAG and run[-1].flags & SCTP_DATA_LAST_FRAG:
            self._remove(run)
            self._complete(run)
        else:
            self._starts[run[0].tsn] = self._ends[run[-1].tsn] = run

    def pop_messages(self) -> Iterator[Message]:
        while self._ready:
            yield self._ready.popleft()

    def prune_chunks(self, tsn: int) -> int:
        """Drop incomplete messages that the peer has abandoned, and return their size in bytes.

        The peer has abandoned every missing chunk up to this TSN.
        """
        given_up = [run for run in self._starts.values() if _is_given_up(run, tsn)]
        for run in given_up:
            self._remove(run)
        return sum(len(chunk.user_data) for run in given_up for chunk in run)

    def _join(self, left: deque[Chunk], right: deque[Chunk]) -> deque[Chunk]:
        """Join two runs of chunks by extending the longer one, and return it."""
        self._remove(left)
        self._remove(right)
        if len(left) >= len(right):
            left.extend(right)
            return left
        right.extendleft(reversed(left))
        return right

    def _remove(self, run: deque[Chunk]) -> None:
        self._starts.pop(run[0].tsn, None)
        self._ends.pop(run[-1].tsn, None)

    def _complete(self, run: deque[Chunk]) -> None:
        first = run[0]
        data = first.user_data if len(run) == 1 else b"".join(each.user_data for each in run)
        message = (first.stream_id, first.protocol, data)
        number = first.stream_seq
        if first.flags & SCTP_DATA_UNORDERED or uint16_gt(self._expected, number):
            self._ready.append(message)
        else:
            self._early.setdefault(number, []).append(message)
            self._release()

    def _release(self) -> None:
        while self._expected in self._early:
            self._ready.extend(self._early.pop(self._expected))
            self._expected = uint16_add(self._expected, 1)


def _is_given_up(run: deque[Chunk], tsn: int) -> bool:
    """Return whether the peer has abandoned a chunk of this incomplete message."""
    first, last = run[0], run[-1]
    if not first.flags & SCTP_DATA_FIRST_FRAG and uint32_gte(tsn, _add(first.tsn, -1)):
        return True
    return not last.flags & SCTP_DATA_LAST_FRAG and uint32_gte(tsn, _add(last.tsn, 1))


def _add(tsn: int, number: int) -> int:
    return (tsn + number) & 0xFFFFFFFF

"""Deduplicates log messages: each is printed at most three times in a sliding window of ten
seconds.

Pure: callers pass in the time. Only printed messages count towards the limit, so a message that
occurs a hundred times a second is printed three times in ten seconds. Suppressed messages are
counted. The count is printed before the message is printed again, or after ten seconds without the
message.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

MAX_PER_WINDOW = 3
WINDOW = 10.0
MAX_KEYS = 4096
"""Maximum number of tracked messages. The least recently used one is evicted."""
MAX_BYTES = 4 << 20
"""Maximum size of all tracked messages."""

Key = TypeVar("Key", bound=Hashable)


class DedupDecision(NamedTuple):
    should_print: bool
    is_first_suppressed: bool = False
    """Whether this is the first suppressed message since one was printed."""
    suppressed: int = 0
    """Number of messages suppressed since the last printed message, to be reported now."""


PRINT = DedupDecision(should_print=True)
SUPPRESS = DedupDecision(should_print=False)
SUPPRESS_FIRST = DedupDecision(should_print=False, is_first_suppressed=True)


class RepeatSummary(NamedTuple, Generic[Key]):
    key: Key
    suppressed: int


class _MessageState:
    __slots__ = ("printed", "suppressed")

    def __init__(self, now: float) -> None:
        self.printed: tuple[float, ...] = (now,)
        """Times of the last prints, at most MAX_PER_WINDOW."""
        self.suppressed = 0

    def is_noisy(self, now: float) -> bool:
        return len(self.printed) == MAX_PER_WINDOW and now - self.printed[0] < WINDOW


class Dedup(Generic[Key]):
    def __init__(
        self,
        keys: int = MAX_KEYS,
        size: int = MAX_BYTES,
        size_of: Callable[[Key], int] = lambda _: 0,
    ) -> None:
        self._max_keys = keys
        self._max_bytes = size
        self._size_of = size_of
        self._size = 0
        self._messages: OrderedDict[Key, _MessageState] = OrderedDict()

    def decide(self, key: Key, now: float) -> DedupDecision:
        seen = self._messages.get(key)
        if seen is None:
            self._messages[key] = _MessageState(now)
            self._size += self._size_of(key)
            return PRINT
        self._messages.move_to_end(key)
        if seen.is_noisy(now):
            seen.suppressed += 1
            return SUPPRESS if seen.suppressed > 1 else SUPPRESS_FIRST
        seen.printed = (*seen.printed[1 - MAX_PER_WINDOW :], now)
        suppressed, seen.suppressed = seen.suppressed, 0
        return PRINT if not suppressed else DedupDecision(should_print=True, suppressed=suppressed)

    def evict_oldest(self) -> RepeatSummary[Key] | None:
        """If a limit is exceeded, evict a message and return its summary; otherwise, return
        None."""
        if len(self._messages) <= self._max_keys and self._size <= self._max_bytes:
            return None
        key, seen = self._messages.popitem(last=False)
        self._size -= self._size_of(key)
        return RepeatSummary(key, seen.suppressed)

    def take_due(self, now: float) -> Iterator[RepeatSummary[Key]]:
        """Yield summaries of suppressed messages whose window has ended, and forget old
        messages."""
        for key, seen in tuple(self._messages.items()):
            if seen.suppressed and not seen.is_noisy(now):
                yield RepeatSummary(key, seen.suppressed)
                seen.suppressed = 0
            if now - seen.printed[-1] >= WINDOW:
                del self._messages[key]
                self._size -= self._size_of(key)

    def close(self) -> Iterator[RepeatSummary[Key]]:
        """Yield summaries of all suppressed messages that were not reported, and forget
        everything."""
        for key, seen in self._messages.items():
            if seen.suppressed:
                yield RepeatSummary(key, seen.suppressed)
        self._messages.clear()
        self._size = 0

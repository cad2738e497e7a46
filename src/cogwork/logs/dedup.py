"""Noisy messages: one that was printed three times in the past ten seconds waits.

Pure: time comes in as a number. Only what is printed counts, and the window slides, so a message
that comes a hundred times a second is printed three times in ten seconds. What was held back is
counted, and the count is printed before the message is printed again, or when ten seconds have
passed without it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

MOST = 3
WINDOW = 10.0
KEYS = 4096
"""Messages that are remembered at once. The one that was not heard for longest gives way."""

Key = TypeVar("Key", bound=Hashable)


class Verdict(NamedTuple):
    prints: bool
    starts: bool = False
    """Whether this is the first one of a row that is held back."""
    held_back: int = 0
    """How many were held back since the last one was printed, and are now accounted for."""


PRINT = Verdict(prints=True)
HOLD = Verdict(prints=False)
HOLD_FIRST = Verdict(prints=False, starts=True)


class Summary(NamedTuple, Generic[Key]):
    key: Key
    held_back: int


class _Seen:
    __slots__ = ("held_back", "printed")

    def __init__(self, now: float) -> None:
        self.printed: tuple[float, ...] = (now,)
        """When the last ones were printed, at most as many as are printed in a window."""
        self.held_back = 0

    def is_noisy(self, now: float) -> bool:
        return len(self.printed) == MOST and now - self.printed[0] < WINDOW


class Dedup(Generic[Key]):
    def __init__(self, keys: int = KEYS) -> None:
        self._keys = keys
        self._seen: OrderedDict[Key, _Seen] = OrderedDict()

    def judge(self, key: Key, now: float) -> Verdict:
        seen = self._seen.get(key)
        if seen is None:
            self._seen[key] = _Seen(now)
            return PRINT
        self._seen.move_to_end(key)
        if seen.is_noisy(now):
            seen.held_back += 1
            return HOLD if seen.held_back > 1 else HOLD_FIRST
        seen.printed = (*seen.printed[1 - MOST :], now)
        held_back, seen.held_back = seen.held_back, 0
        return PRINT if not held_back else Verdict(prints=True, held_back=held_back)

    def crowded_out(self) -> Summary[Key] | None:
        """The message that gives way, if there are too many; None if there are not."""
        if len(self._seen) <= self._keys:
            return None
        key, seen = self._seen.popitem(last=False)
        return Summary(key, seen.held_back)

    def due(self, now: float) -> Iterator[Summary[Key]]:
        """What was held back and has not come again since its window is free; forgets the rest."""
        for key, seen in tuple(self._seen.items()):
            if seen.held_back and not seen.is_noisy(now):
                yield Summary(key, seen.held_back)
                seen.held_back = 0
            if now - seen.printed[-1] >= WINDOW:
                del self._seen[key]

    def close(self) -> Iterator[Summary[Key]]:
        """Everything that is still held back."""
        for key, seen in self._seen.items():
            if seen.held_back:
                yield Summary(key, seen.held_back)
        self._seen.clear()

"""Chooses which lost packets of a video are sent again. Pure.

A slow network loses many packets, and retransmitting all of them would congest it further.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

_REPEAT_INTERVAL = 0.1
"""Seconds during which a packet is retransmitted only once, even if it is reported again."""
_MAX_PER_SECOND = 60
"""Maximum retransmitted packets per second, about 0.6 Mbit/s. If more are lost, a new key frame is
better."""


class Retransmissions:
    def __init__(self) -> None:
        self._sent: deque[tuple[float, int]] = deque()
        """The times and numbers of packets retransmitted in the last second."""

    def choose(self, lost: Iterable[int], now: float) -> list[int]:
        """Return the numbers of the packets to retransmit now."""
        while self._sent and now - self._sent[0][0] >= 1.0:
            self._sent.popleft()
        recent = {number for at, number in self._sent if now - at < _REPEAT_INTERVAL}
        wanted = [number for number in dict.fromkeys(lost) if number not in recent]
        chosen = wanted[: max(0, _MAX_PER_SECOND - len(self._sent))]
        self._sent.extend((now, number) for number in chosen)
        return chosen

    @property
    def are_exhausted(self) -> bool:
        """Whether the maximum number of packets was retransmitted in the last second."""
        return len(self._sent) >= _MAX_PER_SECOND

"""Delays the responses to clients that fail to log in too often, to slow them down."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Final

from cogwork.auth.errors import TooManyAttempts
from cogwork.core.clock import Clock

DELAY: Final = 1.0
"""Seconds by which a response is delayed."""
_MAX_DELAYED: Final = 100
"""Maximum number of delayed responses. Further ones are sent at once, so memory stays bounded."""


class RefusalDelay:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._delayed = 0

    @contextlib.asynccontextmanager
    async def apply(self) -> AsyncIterator[None]:
        """Raise TooManyAttempts after a delay, and all other errors at once."""
        try:
            yield
        except TooManyAttempts:
            if self._delayed < _MAX_DELAYED:
                self._delayed += 1
                try:
                    await self._clock.sleep(DELAY)
                finally:
                    self._delayed -= 1
            raise

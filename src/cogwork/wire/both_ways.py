"""A call that hears and replies at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def both_ways(
    hearing: Coroutine[Any, Any, None], replying: Coroutine[Any, Any, None]
) -> None:
    """Until the last reply, or until one of the two fails. A client that has said its last is still
    replied to."""
    heard, replied = asyncio.ensure_future(hearing), asyncio.ensure_future(replying)
    try:
        await asyncio.wait({heard, replied}, return_when=asyncio.FIRST_COMPLETED)
        if heard.done():
            heard.result()
        await replied
    finally:
        heard.cancel()
        replied.cancel()
        await asyncio.gather(heard, replied, return_exceptions=True)

"""Runs both directions of a bidirectional stream concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def run_duplex(
    receiving: Coroutine[Any, Any, None], sending: Coroutine[Any, Any, None]
) -> None:
    """Run until the last reply is sent, or until one direction fails.

    A client that half-closes its side still gets its replies.
    """
    receiver, sender = asyncio.ensure_future(receiving), asyncio.ensure_future(sending)
    try:
        await asyncio.wait({receiver, sender}, return_when=asyncio.FIRST_COMPLETED)
        if receiver.done():
            receiver.result()
        await sender
    finally:
        receiver.cancel()
        sender.cancel()
        await asyncio.gather(receiver, sender, return_exceptions=True)

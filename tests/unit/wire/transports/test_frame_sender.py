"""Frames are sent in order, and no faster than the other side reads them."""

from __future__ import annotations

import asyncio
import operator
import socket

from tests.support.waiting import wait_until_stable

from cogwork.helpers.message_stream import MessageSplitter
from cogwork.wire.transports.frame_sender import FrameSender

DEADLINE = 30.0
FRAME = bytes(1 << 16)
COUNT = 100


async def _connect() -> tuple[FrameSender, socket.socket]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    sender = FrameSender()
    await asyncio.get_running_loop().create_connection(lambda: sender, sock=ours)
    return sender, theirs


async def test_sender_waits_while_the_other_side_does_not_read() -> None:
    loop = asyncio.get_running_loop()
    sender, theirs = await _connect()
    frames = iter([FRAME] * COUNT)
    sending = asyncio.ensure_future(sender.send(frames))
    with theirs:
        left = await wait_until_stable(lambda: operator.length_hint(frames), 0.05)
        assert 0 < left < COUNT
        splitter = MessageSplitter()
        received: list[bytes] = []
        async with asyncio.timeout(DEADLINE):
            while len(received) < COUNT:
                received += splitter.feed(await loop.sock_recv(theirs, 1 << 20))
            await sending
    assert received == [FRAME] * COUNT
    sender.close()


async def test_frames_after_the_end_are_dropped() -> None:
    sender, theirs = await _connect()
    theirs.close()
    sender.close()
    async with asyncio.timeout(DEADLINE):
        await sender.send([FRAME] * COUNT)
    sender.send_now(b"late")


async def test_frames_before_the_connection_are_dropped() -> None:
    sender = FrameSender()
    sender.close()
    sender.send_now(b"early")

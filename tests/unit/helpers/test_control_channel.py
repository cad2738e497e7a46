from __future__ import annotations

import asyncio
import socket
from typing import Any

from cogwork.helpers.control_channel import _MAX_QUEUED, ControlChannel, control_pair


class End:
    """One end of a channel, with what it received."""

    def __init__(self, connection: socket.socket) -> None:
        self.messages: list[Any] = []
        self.sockets: list[socket.socket] = []
        self.ended = asyncio.Event()
        self.news = asyncio.Event()
        self.channel = ControlChannel(connection, self._on_message, self.ended.set)

    def _on_message(self, message: Any, sockets: list[socket.socket]) -> None:
        self.messages.append(message)
        self.sockets += sockets
        self.news.set()

    async def wait_for(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self.messages) < count:
                self.news.clear()
                await self.news.wait()


async def test_messages_arrive_in_order_with_their_sockets() -> None:
    ours, theirs = (End(each) for each in control_pair())
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("", 0)) as other:
        ours.channel.send({"n": 1})
        ours.channel.send({"n": 2}, [one, other])
        ours.channel.send({"n": 3})
        await theirs.wait_for(3)
        assert theirs.messages == [{"n": 1}, {"n": 2}, {"n": 3}]
        assert [each.getsockname() for each in theirs.sockets] == [
            one.getsockname(),
            other.getsockname(),
        ]
    for each in theirs.sockets:
        each.close()
    theirs.channel.send({"back": "x" * 100_000})
    await ours.wait_for(1)
    assert len(ours.messages[0]["back"]) == 100_000
    ours.channel.close()
    async with asyncio.timeout(60):
        await theirs.ended.wait()
    theirs.channel.send({"too": "late"})


async def test_messages_to_a_peer_that_does_not_read_are_bounded() -> None:
    ours, theirs = control_pair()
    end = End(ours)
    for number in range(20 * _MAX_QUEUED):
        end.channel.send({"n": number, "text": "x" * 100})
    reader = End(theirs)
    await reader.wait_for(_MAX_QUEUED)
    numbers = [each["n"] for each in reader.messages]
    assert numbers == list(range(len(numbers)))
    end.channel.send({"n": "last"})
    async with asyncio.timeout(60):
        while reader.messages[-1]["n"] != "last":
            reader.news.clear()
            await reader.news.wait()
    assert len(reader.messages) < 10 * _MAX_QUEUED
    end.channel.close()
    reader.channel.close()

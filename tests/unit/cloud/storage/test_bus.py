"""The contract of the cloud's bus, for every engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from cogwork.cloud.storage.bus import MAX_UNREAD, MAX_UNREAD_BYTES, Bus
from cogwork.cloud.storage.local_bus import LocalBus

DEADLINE = 60.0


@pytest.fixture
def bus() -> Bus:
    return LocalBus()


async def take(messages: AsyncIterator[bytes], count: int) -> list[bytes]:
    async with asyncio.timeout(DEADLINE):
        return [await anext(messages) for _ in range(count)]


async def test_everyone_who_listens_gets_every_message_in_order(bus: Bus) -> None:
    sent = [str(number).encode() for number in range(50)]
    async with bus.listen("a") as first, bus.listen("a") as second, bus.listen("b") as other:
        for message in sent:
            bus.publish("a", message)
        bus.publish("b", b"other")
        assert await take(first, 50) == sent
        assert await take(second, 50) == sent
        assert await take(other, 1) == [b"other"]


async def test_messages_before_and_after_are_not_delivered(bus: Bus) -> None:
    bus.publish("a", b"before")
    async with bus.listen("a") as messages:
        bus.publish("a", b"during")
        assert await take(messages, 1) == [b"during"]
    bus.publish("a", b"after")
    async with bus.listen("a") as messages:
        bus.publish("a", b"later")
        assert await take(messages, 1) == [b"later"]


async def test_slow_reader_loses_the_oldest_messages_only(bus: Bus) -> None:
    async with bus.listen("a") as slow:
        for number in range(MAX_UNREAD + 5):
            bus.publish("a", str(number).encode())
        assert await take(slow, MAX_UNREAD) == [
            str(number).encode() for number in range(5, MAX_UNREAD + 5)
        ]


async def test_slow_reader_of_large_messages_holds_a_limited_amount(bus: Bus) -> None:
    async with bus.listen("a") as slow:
        for number in range(6):
            bus.publish("a", bytes([number]) * (MAX_UNREAD_BYTES // 4))
        assert [message[0] for message in await take(slow, 4)] == [2, 3, 4, 5]
        bus.publish("a", bytes(MAX_UNREAD_BYTES + 1))
        assert len((await take(slow, 1))[0]) == MAX_UNREAD_BYTES + 1


async def test_topic_without_listeners_takes_no_memory() -> None:
    bus = LocalBus()
    for number in range(1000):
        bus.publish(f"topic {number}", b"x")
        async with bus.listen(f"topic {number}"):
            pass
    assert not bus._inboxes

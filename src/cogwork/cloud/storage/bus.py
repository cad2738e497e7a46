"""Messages between the processes of a cloud.

A message is a hint: it may be lost when a process ends or a reader is too slow. The truth is in the
records and in the logs.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

MAX_UNREAD = 256
"""Messages that wait for a slow reader. Older ones are dropped."""
MAX_UNREAD_BYTES = 16 << 20
"""Bytes of these messages."""


class Bus(Protocol):
    def publish(self, topic: str, message: bytes) -> None:
        """Send a message to everyone who listens to the topic now."""

    def listen(self, topic: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Yield the messages that are published from the start of the block on."""


def part_topic(part_id: str) -> str:
    """What concerns a part: a new configuration, other access, or a request to restart."""
    return f"part.{part_id}"


def describe_change(ended: Iterable[str]) -> bytes:
    """Return a message for the topic of a part, given the principals whose access has ended."""
    return json.dumps(list(ended)).encode()


def read_ended(message: bytes) -> list[str]:
    """Return the principals whose access has ended, given a message for the topic of a part."""
    return list(map(str, json.loads(message)))


def log_topic(part_id: str) -> str:
    """New lines of a part's log, as a LogRequest."""
    return f"log.{part_id}"

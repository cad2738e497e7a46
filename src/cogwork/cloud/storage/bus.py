"""Messages between the processes of a cloud.

A message is only a hint. It may be lost when a process ends or a reader is too slow, so readers
must check the records and the logs.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

MAX_UNREAD = 256
"""Maximum number of messages that wait for a slow reader. Older ones are dropped."""
MAX_UNREAD_BYTES = 16 << 20
"""Maximum size in bytes of the messages that wait for a slow reader."""


class Bus(Protocol):
    def publish(self, topic: str, message: bytes) -> None:
        """Send a message to all current listeners of the topic."""

    def listen(self, topic: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Yield the messages that are published after the beginning of the block."""


def part_topic(part_id: str) -> str:
    """Return the topic for changes of a part: its configuration, access, or a restart request."""
    return f"part.{part_id}"


def describe_change(ended: Iterable[str]) -> bytes:
    """Return a message for a part's topic with the principals whose access has ended."""
    return json.dumps(list(ended)).encode()


def read_ended(message: bytes) -> list[str]:
    """Return the principals whose access has ended, from a message of a part's topic."""
    return list(map(str, json.loads(message)))


def log_topic(part_id: str) -> str:
    """Return the topic for new lines of a part's log, each message a LogRequest."""
    return f"log.{part_id}"

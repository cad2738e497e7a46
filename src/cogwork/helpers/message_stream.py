"""Messages of a data channel on a socket. Each message is preceded by its length."""

from __future__ import annotations

from collections.abc import Iterable

_LENGTH_SIZE = 4
MAX_MESSAGE_SIZE = 65535
"""Maximum size in bytes of a message that the SDK's peer reads."""


def join_messages(messages: Iterable[bytes]) -> bytes:
    return b"".join(
        part
        for message in messages
        for part in (len(message).to_bytes(_LENGTH_SIZE, "big"), message)
    )


class MessageSplitter:
    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that are complete."""
        received = self._received
        received += data
        messages = []
        at, end = 0, len(received)
        while end - at >= _LENGTH_SIZE:
            start = at + _LENGTH_SIZE
            size = int.from_bytes(received[at:start], "big")
            if start + size > end:
                break
            at = start + size
            messages.append(bytes(received[start:at]))
        del received[:at]
        return messages

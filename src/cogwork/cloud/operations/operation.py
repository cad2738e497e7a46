"""An operation of the cloud: a function that answers one request in one transaction."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from cogwork.cloud.identity.actor import Actor
from cogwork.cloud.identity.part_watch import PartWatch
from cogwork.cloud.identity.presence import Presence
from cogwork.cloud.identity.public_name import PublicName
from cogwork.cloud.keys.keyring import Keyring
from cogwork.cloud.storage.records import Transaction
from cogwork.core.errors import InvalidRequest


@dataclass(slots=True)
class Call:
    """The caller, the time and the effects of an operation."""

    actor: Actor
    now: int
    """Microseconds since 1970."""
    keyring: Keyring
    name: PublicName
    presence: Presence
    watch: PartWatch
    changed_parts: list[str] = field(default_factory=list)
    """Parts to notify after the transaction, because of a new configuration or a restart."""
    ended_credentials: list[str] = field(default_factory=list)
    """IDs of keys, parts, locations and secrets whose access was removed or changed. Their calls
    and connections end after the transaction."""


Answer = Callable[[Transaction, Call, Any], Message]


@dataclass(frozen=True, slots=True)
class CloudOperation:
    answer: Answer
    is_write: bool


def reading(answer: Answer) -> CloudOperation:
    return CloudOperation(answer, is_write=False)


def writing(answer: Answer) -> CloudOperation:
    return CloudOperation(answer, is_write=True)


def new_id() -> str:
    return str(uuid.uuid4())


def to_timestamp(microseconds: int) -> Timestamp:
    found = Timestamp()
    found.FromMicroseconds(microseconds)
    return found


def to_microseconds(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1e6)


def read_timestamp(timestamp: Timestamp, field_name: str) -> int:
    """Return a timestamp of a request in microseconds since 1970. Raise InvalidRequest."""
    try:
        return int(timestamp.ToMicroseconds())
    except ValueError as error:
        raise InvalidRequest(f"{field_name} is not a time: {error}") from None

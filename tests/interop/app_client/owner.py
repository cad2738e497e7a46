"""The owner of a cloud with the SDK's unmodified fleet client, whose replies are compared."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from grpclib.client import Channel
from grpclib.events import RecvMessage, listen
from tests.support.cloud.fleet import Cloud, run_cloud
from viam.app.app_client import AppClient
from viam.gen.app.packages.v1.packages_grpc import PackageServiceStub
from viam.gen.app.v1.app_grpc import AppServiceStub

from cogwork.core.clock import ManualClock

START = 1_800_000_000
_VALUES = frozenset({"google.protobuf.Timestamp", "google.protobuf.Struct"})
"""Messages that count as one value."""


@dataclass
class Replies:
    """The last reply of each method that a channel called.

    The SDK's own classes lack some fields, so the messages are compared that it made them from.
    """

    _last: dict[str, Message] = field(default_factory=dict)
    compared: Counter[str] = field(default_factory=Counter)
    """The number of fields that were compared with what they should be, by method."""

    def record(self, channel: Channel) -> None:
        async def receive(event: RecvMessage) -> None:
            self._last[_method_of(event.message)] = event.message

        listen(channel, RecvMessage, receive)

    def check(self, expected: Message) -> None:
        """Compare the last reply of the method whose reply this is, field by field."""
        method = _method_of(expected)
        found = self._last[method]
        assert found == expected, "\n".join([f"{method}:", *_list_differences(found, expected)])
        self.compared[method] += _count_fields(expected)


@dataclass
class Owner:
    cloud: Cloud
    clock: ManualClock
    client: AppClient
    replies: Replies
    organization: str

    @property
    def now(self) -> Timestamp:
        return at(int(self.clock.time()) - START)

    @property
    def app(self) -> AppServiceStub:
        """For the methods that the client lacks."""
        return AppServiceStub(self.client._channel)

    @property
    def packages(self) -> PackageServiceStub:
        """For the service that the SDK has no client of."""
        return PackageServiceStub(self.client._channel)

    @property
    def metadata(self) -> dict[str, str]:
        return dict(self.client._metadata)

    async def wait(self, seconds: int = 1) -> Timestamp:
        """Advance the clock of the cloud, and return its time."""
        await self.clock.advance(seconds)
        return self.now


@contextlib.asynccontextmanager
async def run_owner(directory: Path) -> AsyncIterator[Owner]:
    """A new cloud with one organization, "Acme", and its owner."""
    clock, replies = ManualClock(START), Replies()
    async with run_cloud(directory, clock) as cloud:
        connected = await cloud.connect()
        replies.record(connected._channel)
        (organization,) = await connected.app_client.list_organizations()
        yield Owner(cloud, clock, connected.app_client, replies, organization.id)
        connected.close()


def at(seconds: int) -> Timestamp:
    """Return a time by the seconds since the cloud was created."""
    return Timestamp(seconds=START + seconds)


def _method_of(reply: Message) -> str:
    return str(reply.DESCRIPTOR.name).removesuffix("Response")


def _count_fields(message: Message) -> int:
    return sum(_count_values(message, each) for each in message.DESCRIPTOR.fields)


def _count_values(message: Message, each: FieldDescriptor) -> int:
    """Unset fields and empty lists count, too: that they are empty was compared."""
    if each.message_type is None or each.message_type.full_name in _VALUES:
        return 1
    value = getattr(message, each.name)
    if each.is_repeated:
        return sum(map(_count_fields, value)) or 1
    return _count_fields(value) if message.HasField(each.name) else 1


def _list_differences(found: Message, expected: Message, path: str = "") -> Iterator[str]:
    for each in found.DESCRIPTOR.fields:
        one, two = getattr(found, each.name), getattr(expected, each.name)
        if one == two:
            continue
        name = f"{path}{each.name}"
        if each.message_type is None or each.message_type.full_name in _VALUES:
            yield f"{name} is {one!r}, and should be {two!r}"
        elif not each.is_repeated:
            yield from _list_differences(one, two, f"{name}.")
        elif len(one) != len(two):
            yield f"{name} has {len(one)} entries, and should have {len(two)}: {one} {two}"
        else:
            for number, pair in enumerate(zip(one, two, strict=True)):
                yield from _list_differences(*pair, f"{name}[{number}].")

"""A whole cloud without a network: its services and HTTP endpoints are called in this process."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

from grpclib import GRPCError
from grpclib.client import Channel
from multidict import CIMultiDict, MultiDict

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from google.protobuf.message import Message  # noqa: E402
from tests.support.cloud.cloud_at_rest import DOMAIN, new_cloud  # noqa: E402
from tests.support.cloud.small_cloud import SmallCloud  # noqa: E402
from tests.support.cloud.tenants import (  # noqa: E402
    Tenant,
    list_fleet_methods,
    list_machine_methods,
)
from viam.app.app_client import AppClient  # noqa: E402

from cogwork.cloud.control_plane.cloud_directory import CloudDirectory  # noqa: E402
from cogwork.cloud.control_plane.control_plane import ControlPlane  # noqa: E402
from cogwork.cloud.control_plane.open_cloud import open_cloud  # noqa: E402
from cogwork.cloud.fleet.keys import add_key  # noqa: E402
from cogwork.cloud.fleet.secrets import SecretOwner, list_secrets  # noqa: E402
from cogwork.cloud.http import create_app  # noqa: E402
from cogwork.cloud.identity.access import CloudRole, ResourceType  # noqa: E402
from cogwork.cloud.identity.actor import Actor, ActorType  # noqa: E402
from cogwork.cloud.identity.public_name import PublicName  # noqa: E402
from cogwork.cloud.machine.log_quota import LogRates  # noqa: E402
from cogwork.cloud.operations.context import CloudContext  # noqa: E402
from cogwork.cloud.signaling.relay_servers import NO_RELAYS, RelayServers  # noqa: E402
from cogwork.core.clock import Clock, ManualClock, SystemClock  # noqa: E402
from cogwork.net.peer import Peer  # noqa: E402
from cogwork.wire.table.handlers import Metadata, Method  # noqa: E402
from cogwork.wire.table.status import status_of  # noqa: E402
from cogwork.wire.transports.asgi import CLIENT_KEY  # noqa: E402

START = 1_800_000_000.0
ADDRESS = "ipv4:192.0.2.1:50000"
DEADLINE = 60.0
_PATHS = {
    name: method.path for name, method in {**list_fleet_methods(), **list_machine_methods()}.items()
}


class CloudTemplate(NamedTuple):
    """Directories of clouds, to copy from."""

    empty: Path
    """Has the hosting organization only."""
    two: Path
    """Has two other organizations with one of everything."""
    owner: tuple[str, str]
    """The ID of the key of the hosting organization's owner, and the key."""
    mine: Tenant
    other: Tenant


def create_cloud_template(path: Path) -> CloudTemplate:
    _, new = new_cloud(path / "empty", ManualClock(START))
    small = SmallCloud(path / "empty", path / "two", new.key_id)
    tenants = [small.add_tenant(name) for name in ("mine", "other")]
    return CloudTemplate(path / "empty", path / "two", (new.key_id, new.key), *tenants)


@dataclass
class _ServerStream:
    """What the handler of a call sees."""

    metadata: MultiDict[str]
    peer: str = ADDRESS
    deadline: None = None
    request: Any = None
    """The first message."""
    requests: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)
    replies: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)
    initial_metadata: dict[str, Any] = field(default_factory=dict)
    trailing_metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def client(self) -> Peer:
        return Peer(self.peer)

    async def recv_message(self) -> Any:
        message = await self.requests.get()
        if self.request is None:
            self.request = message
        return message

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        self.replies.put_nowait(message)

    async def send_initial_metadata(self, *, metadata: Metadata | None = None) -> None:
        self.initial_metadata.update(metadata or {})

    async def send_trailing_metadata(self, *, metadata: Metadata | None = None) -> None:
        self.trailing_metadata.update(metadata or {})

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.recv_message()) is not None:
            yield message


class OpenCall:
    """A call as its client sees it."""

    def __init__(self, method: Method, stream: _ServerStream) -> None:
        self._stream = stream
        self._task = asyncio.ensure_future(method.handle(stream))

    @property
    def is_done(self) -> bool:
        return self._task.done()

    @property
    def metadata(self) -> dict[str, Any]:
        """Initial metadata, and trailing metadata."""
        return {**self._stream.initial_metadata, **self._stream.trailing_metadata}

    def send(self, *messages: Message) -> None:
        for each in messages:
            self._stream.requests.put_nowait(each)

    def end(self) -> None:
        """Send nothing else."""
        self._stream.requests.put_nowait(None)

    async def receive(self) -> Any:
        """Return the next reply; None after the last one. Raise the error of the call."""
        replies = self._stream.replies
        if replies.empty():
            receiving = asyncio.ensure_future(replies.get())
            either: set[asyncio.Future[Any]] = {receiving, self._task}
            try:
                done, _ = await asyncio.wait(
                    either, timeout=DEADLINE, return_when=asyncio.FIRST_COMPLETED
                )
                assert done, "the call neither answers nor ends"
                if receiving.done():
                    return receiving.result()
            finally:
                receiving.cancel()
        if replies.empty():
            self._task.result()
            return None
        return replies.get_nowait()

    def has_reply(self) -> bool:
        return not self._stream.replies.empty()

    async def aclose(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class HttpReply(NamedTuple):
    status: int
    headers: CIMultiDict[str]
    body: bytes


class InProcessCloud:
    def __init__(self, plane: ControlPlane, owner: tuple[str, str]) -> None:
        self.plane = plane
        self.owner = owner
        self._app = create_app(plane)

    @property
    def context(self) -> CloudContext:
        return self.plane.context

    @property
    def channel(self) -> Channel:
        """For the stubs and clients of the SDK."""
        return cast("Channel", _InProcessChannel(self))

    async def connect(self, key_id: str = "", key: str = "") -> ConnectedClient:
        """Return the SDK's fleet client with a key: that of the owner by default."""
        entity, secret = (key_id, key) if key_id else self.owner
        metadata = {"authorization": f"Bearer {await self.log_in(entity, secret)}"}
        return ConnectedClient(AppClient(self.channel, metadata), self.channel, metadata)

    def list_methods(self) -> list[str]:
        """Return the paths of all methods."""
        table = self.plane.table
        return [method.path for each in table.services() for method in table.methods(each)]

    async def read_secret(self, part: str) -> str:
        """Return the newest secret of a part."""
        keyring = self.context.keyring
        secrets = await self.context.records.read(
            lambda tx: list_secrets(tx, keyring, SecretOwner.PART, part)
        )
        return secrets[0].secret

    async def log_in(
        self, entity: str, secret: str, kind: ActorType = ActorType.API_KEY, address: str = "::1"
    ) -> str:
        """Return a token."""
        return await self.plane.login.log_in(entity, kind, secret, address)

    def start(self, path: str, metadata: MultiDict[str]) -> OpenCall:
        """Begin a call, which the caller closes."""
        method = self.plane.table.find(path)
        assert method is not None
        return OpenCall(method, _ServerStream(metadata))

    @contextlib.asynccontextmanager
    async def open(
        self,
        name: str,
        token: str,
        *requests: Message,
        metadata: Mapping[str, str] | None = None,
        hosts: tuple[str, ...] = (),
    ) -> AsyncIterator[OpenCall]:
        """Call a method of the API by its name, and cancel the call after the block."""
        found = MultiDict(metadata or {})
        if token:
            found["authorization"] = f"Bearer {token}"
        for host in hosts:
            found.add("rpc-host", host)
        call = self.start(name if "/" in name else _PATHS[name], found)
        call.send(*requests)
        try:
            yield call
        finally:
            await call.aclose()

    async def call(self, name: str, token: str, *requests: Message, **options: Any) -> Any:
        """Return the first reply to a call."""
        async with self.open(name, token, *requests, **options) as call:
            call.end()
            return await call.receive()

    async def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        address: str = ADDRESS,
    ) -> HttpReply:
        """Send an HTTP request, and return the whole response."""
        bare, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": bare,
            "query_string": query.encode(),
            "headers": [
                (name.lower().encode(), value.encode()) for name, value in (headers or {}).items()
            ],
            "state": {CLIENT_KEY: Peer(address)},
        }
        events = [{"type": "http.request", "body": body}]
        sent: list[Any] = []

        async def receive() -> Any:
            if events:
                return events.pop()
            return await asyncio.Event().wait()

        async def send(event: Any) -> None:
            sent.append(event)

        await self._app(scope, receive, send)
        found = CIMultiDict((name.decode(), value.decode()) for name, value in sent[0]["headers"])
        content = b"".join(each.get("body", b"") for each in sent[1:])
        return HttpReply(sent[0]["status"], found, content)


class _ClientStream:
    """What the stubs of grpclib use of a stream. Both sides have their own copies of messages."""

    def __init__(self, call: OpenCall, path: str, reply: Any) -> None:
        self._call = call
        self._path = path
        self._reply = reply

    async def send_request(self) -> None:
        pass

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        self._call.send(type(message).FromString(message.SerializeToString()))
        if end:
            self._call.end()

    async def end(self) -> None:
        self._call.end()

    async def recv_message(self) -> Any:
        try:
            message = await self._call.receive()
        except Exception as error:
            raise GRPCError(*status_of(error, self._path)) from error
        return None if message is None else self._reply.FromString(message.SerializeToString())

    async def recv_trailing_metadata(self) -> None:
        await self.recv_message()

    async def cancel(self) -> None:
        await self._call.aclose()

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.recv_message()) is not None:
            yield message


class _InProcessChannel:
    def __init__(self, cloud: InProcessCloud) -> None:
        self._cloud = cloud

    @contextlib.asynccontextmanager
    async def request(
        self,
        path: str,
        cardinality: Any,
        request: Any,
        reply: Any,
        *,
        metadata: Any = None,
        **_: Any,
    ) -> AsyncIterator[_ClientStream]:
        call = self._cloud.start(path, MultiDict(metadata or {}))
        try:
            yield _ClientStream(call, path, reply)
        finally:
            await call.aclose()


@dataclass
class ConnectedClient:
    """The SDK's fleet client, logged in."""

    app_client: AppClient
    channel: Channel
    metadata: dict[str, str]

    def close(self) -> None:
        """There is no connection."""


class TwoTenantCloud(InProcessCloud):
    """A cloud with two organizations, which have one of everything."""

    def __init__(self, plane: ControlPlane, template: CloudTemplate, clock: ManualClock) -> None:
        super().__init__(plane, template.owner)
        self.clock = clock
        self.mine = template.mine
        self.other = template.other

    async def create_key(
        self,
        role: CloudRole,
        kind: ResourceType,
        resource: str = "",
        *,
        tenant: Tenant | None = None,
    ) -> tuple[str, str]:
        """Return the ID of a new key with one role, and the key."""
        tenant = tenant or self.mine
        resources = {
            ResourceType.ORGANIZATION: tenant.organization,
            ResourceType.LOCATION: tenant.location,
            ResourceType.MACHINE: tenant.machine,
        }
        grants = [((kind, resource or resources[kind]), role)]
        call = self.context.make_call(Actor(ActorType.API_KEY, tenant.key))
        return await self.context.records.write(
            lambda tx: add_key(tx, call, tenant.organization, "new", grants)
        )

    async def log_in_as(
        self,
        role: CloudRole,
        kind: ResourceType = ResourceType.ORGANIZATION,
        resource: str = "",
        *,
        tenant: Tenant | None = None,
    ) -> str:
        """Return a token of a new key."""
        return await self.log_in(*await self.create_key(role, kind, resource, tenant=tenant))

    async def log_in_part(self, tenant: Tenant | None = None) -> str:
        part = (tenant or self.mine).part
        return await self.log_in(part, await self.read_secret(part), ActorType.PART)


@contextlib.asynccontextmanager
async def open_two_tenants(
    template: CloudTemplate,
    path: Path,
    relays: RelayServers = NO_RELAYS,
    log_rates: LogRates | None = None,
) -> AsyncIterator[TwoTenantCloud]:
    clock = ManualClock(START)
    async with _open_copy(template.two, path, clock, relays, log_rates) as plane:
        yield TwoTenantCloud(plane, template, clock)


@contextlib.asynccontextmanager
async def open_empty(template: CloudTemplate, path: Path) -> AsyncIterator[InProcessCloud]:
    async with _open_copy(template.empty, path, SystemClock()) as plane:
        yield InProcessCloud(plane, template.owner)


def _open_copy(
    template: Path,
    path: Path,
    clock: Clock,
    relays: RelayServers = NO_RELAYS,
    log_rates: LogRates | None = None,
) -> contextlib.AbstractAsyncContextManager[ControlPlane]:
    directory = CloudDirectory(Path(shutil.copytree(template, path)))
    name = PublicName(DOMAIN, f"{DOMAIN}:443", is_encrypted=True)
    return open_cloud(directory, name, clock, relays, log_rates)

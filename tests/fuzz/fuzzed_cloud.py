"""A real cloud in this process, in a directory in memory, to which targets send mutated messages.

It has two organizations. The logins are of the first one, so what the second one has must neither
appear in a reply nor change.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import tempfile
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError, Message
from google.protobuf.struct_pb2 import Struct
from grpclib.const import Status
from tests.fuzz.message_builder import build_message
from tests.fuzz.target import ContractViolation
from tests.support.cloud.fleet import Cloud, run_cloud
from tests.support.memory_directory import find_memory_directory

from cogwork.cloud.http import create_app
from cogwork.cloud.storage.records import Transaction
from cogwork.core.clock import Clock, ManualClock
from cogwork.net.peer import Peer
from cogwork.resource.sdk import clean_import as sdk
from cogwork.wire.table.handlers import Method
from cogwork.wire.table.status import MAX_MESSAGE_BYTES, status_of
from cogwork.wire.transports.asgi import ABORT_KEY, CLIENT_KEY
from cogwork.wire.transports.in_process_call import InProcessStream, call

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402

MY_PART = b"aaaaaaaa-0000-4000-8000-000000000001"
THEIR_PART = b"bbbbbbbb-0000-4000-8000-000000000002"
"""Stand for the IDs of parts in inputs, because IDs are random and inputs are kept."""
MY_KEY, MY_KEY_ID = b"{my-key}", b"{my-key-id}"

_WORDS = (
    *("id", "product", "version", "outcome", "reason", "since", "server", "agent", "failed"),
    *("rolled_back", "waiting", "good", "1.4.0", "linux/amd64", "debian:12", "info", "error"),
)
_CANARY = "canary-of-another-organization"
_RENEW_AFTER = 10_000
"""Calls after which the cloud is replaced by an empty one, because logs add up."""
_ROOM = 1 << 30
"""Bytes of memory that a cloud may need before it is renewed."""
_DEADLINE = 20.0
_PATIENCE = 0.05
"""Seconds after which a call is waiting for the clock."""
_START = 1_800_000_000.0
_FAULTS = frozenset({Status.UNKNOWN, Status.INTERNAL, Status.DATA_LOSS})
_SERVER_ERROR = 500


Requests = Sequence[tuple[str, Message]]
"""Paths of methods, each with a valid request that names `MY_PART`."""


class FuzzedCloud:
    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._clients = itertools.count()
        self._calls = 0
        self._running: _RunningCloud | None = None
        self._clock = ManualClock(_START)

    def call(self, requests: Requests, data: bytes) -> None:
        """Call one of the methods; the first byte chooses the method and the login."""
        self._run(self._call(requests, data))

    def request(self, data: bytes) -> None:
        """Send an HTTP request: its line, its headers, an empty line and its body."""
        self._run(self._request(data))

    def close(self) -> None:
        """Check that the other organization is as it was, and free everything."""
        if self._loop is not None:
            try:
                self._loop.run_until_complete(self._stop())
            finally:
                self._loop.close()
                self._loop = None

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(asyncio.wait_for(self._pass_time(coroutine), _DEADLINE))

    async def _pass_time(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a call. While it waits, because refusals are delayed, let the time pass."""
        call = asyncio.ensure_future(coroutine)
        while not (await asyncio.wait({call}, timeout=_PATIENCE))[0]:
            await self._clock.advance(1.0)
        call.result()

    async def _call(self, requests: Requests, data: bytes) -> None:
        cloud = await self._find()
        choice = data[0] if data else 0
        path, valid = requests[choice % len(requests)]
        login = cloud.logins[choice // len(requests) % len(cloud.logins)]
        method = cloud.plane.table.find(path)
        assert method is not None
        request = cloud.make_request(valid, data[1:])
        stream = _FirstReply(method, request, self._next_address(), login)
        try:
            cloud.plane.login.check_call(method, stream)
            await method.handle(stream)
        except _Enough:
            pass
        except Exception as error:
            status, text = status_of(error, path)
            if status in _FAULTS:
                raise
            cloud.check_reply(text.encode())
            if not text or len(text) > MAX_MESSAGE_BYTES:
                raise ContractViolation(f"{path}: a message of {len(text)} characters") from error
        if isinstance(stream.reply, Message):
            cloud.check_reply(stream.reply.SerializeToString())

    async def _request(self, data: bytes) -> None:
        cloud = await self._find()
        head, _, body = cloud.insert_ids(data).partition(b"\r\n\r\n")
        line, *headers = head.split(b"\r\n")
        verb, _, target = line.partition(b" ")
        path, _, query = target.partition(b"?")
        if not verb.isalpha() or not path.startswith(b"/") or not head.isascii():
            return  # refused by the parser of HTTP
        peer = Peer(self._next_address())
        scope = {
            "type": "http",
            "http_version": "1.1",
            "scheme": "https",
            "method": verb.decode().upper(),
            "path": path.decode(),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": [_split_header(each) for each in headers if b":" in each],
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 0),
            "state": {ABORT_KEY: lambda: None, CLIENT_KEY: peer},
        }
        events = iter(({"type": "http.request", "body": body},))
        sent: list[Any] = []

        async def receive() -> Any:
            return next(events, {"type": "http.disconnect"})

        async def send(event: Any) -> None:
            sent.append(event)

        await cloud.app(scope, receive, send)
        for event in sent:
            if event.get("status", 0) == _SERVER_ERROR:
                raise ContractViolation(f"{line!r}: {sent}")
            cloud.check_reply(event.get("body", b""))

    def _next_address(self) -> str:
        """Return the address of another client, because failed logins of one are limited."""
        number = next(self._clients)
        return f"ipv4:10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}:1"

    async def _find(self) -> _RunningCloud:
        self._calls += 1
        if self._calls % _RENEW_AFTER == 0:
            await self._stop()
        if self._running is None:
            # Refusals are logged, a million times.
            logging.disable(logging.WARNING)
            self._running = await _start(self._clock)
        return self._running

    async def _stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            logging.disable(logging.NOTSET)
            try:
                await running.check_others()
            finally:
                await running.stack.aclose()


class _RunningCloud:
    def __init__(self, cloud: Cloud, stack: contextlib.AsyncExitStack) -> None:
        assert cloud._plane is not None
        self.plane = cloud._plane
        self.app = create_app(self.plane)
        self.stack = stack
        self.logins: list[dict[str, str]] = []
        self._ids: dict[bytes, bytes] = {}
        self._words: list[str] = []
        self._secrets: list[bytes] = [_CANARY.encode()]
        self._others: list[Any] = []
        self._their_part = ""

    def insert_ids(self, data: bytes) -> bytes:
        for placeholder, value in self._ids.items():
            data = data.replace(placeholder, value)
        return data

    def make_request(self, valid: Message, data: bytes) -> Message:
        """Return the encoded message. Bytes that are not one change fields of a valid message."""
        with contextlib.suppress(DecodeError):
            return type(valid).FromString(self.insert_ids(data))
        request = type(valid).FromString(self.insert_ids(valid.SerializeToString()))
        own_id = read_id(request)
        request.MergeFrom(build_message(type(valid), data, self._words))
        if data[-1] % 4:
            write_id(request, own_id)
        return request

    def check_reply(self, reply: bytes) -> None:
        for secret in self._secrets:
            if secret in reply:
                raise ContractViolation(f"a reply reveals a secret: {reply!r}")

    async def check_others(self) -> None:
        if await self.plane.context.records.read(self._read_others) != self._others:
            raise ContractViolation("a login of one organization has changed another one")

    async def fill(self, key_id: str, key: str) -> None:
        host = await self._log_in(key_id, "api-key", key)
        organizations = await self._call(host, "ListOrganizations", pb.ListOrganizationsRequest())
        mine = organizations.organizations[0].id
        created = await self._call(
            host, "CreateOrganization", pb.CreateOrganizationRequest(name="Other")
        )
        my_part, my_secret = await self._add_part(host, mine, "mine")
        their_part, their_secret = await self._add_part(host, created.organization.id, _CANARY)
        owner = await self._add_key(host, mine, "owner")
        operator = await self._add_key(host, mine, "operator")
        as_part = await self._log_in(my_part, "robot-secret", my_secret)
        as_owner = await self._log_in(owner[0], "api-key", owner[1])
        as_operator = await self._log_in(operator[0], "api-key", operator[1])
        self.logins = [as_part, as_owner, as_operator, {}, as_part, as_part, as_owner, as_part]
        self._ids = {
            MY_PART: my_part.encode(),
            THEIR_PART: their_part.encode(),
            MY_KEY_ID: owner[0].encode(),
            MY_KEY: owner[1].encode(),
        }
        ids = [each.decode() for each in self._ids.values()]
        self._words = [*ids, *_WORDS]
        # A machine gets no key that works elsewhere, not even one of its own organization.
        self._secrets += [their_secret.encode(), operator[1].encode()]
        self._their_part = their_part
        self._others = await self.plane.context.records.read(self._read_others)

    def _read_others(self, tx: Transaction) -> list[Any]:
        tables = {"part": "id", "part_software": "part_id", "update_report": "part_id"}
        return [
            tx.read_rows(f"SELECT * FROM {table} WHERE {column} = ?", self._their_part)
            for table, column in tables.items()
        ]

    async def _add_part(self, login: Any, organization: str, name: str) -> tuple[str, str]:
        """Return the ID and the secret of the main part of a new machine."""
        create = pb.CreateLocationRequest(organization_id=organization, name="Hall")
        location = (await self._call(login, "CreateLocation", create)).location.id
        machine = await self._call(
            login, "NewRobot", pb.NewRobotRequest(name=name, location=location)
        )
        parts = await self._call(
            login, "GetRobotParts", pb.GetRobotPartsRequest(robot_id=machine.id)
        )
        found = await self._call(
            login, "GetRobotPart", pb.GetRobotPartRequest(id=parts.parts[0].id)
        )
        config = Struct()
        config.update(
            {
                "agent": {"advanced_settings": {"note": name}},
                "components": [
                    {"name": "arm", "api": "rdk:component:arm", "model": "fake"},
                ],
            }
        )
        update = pb.UpdateRobotPartRequest(id=found.part.id, name=name, robot_config=config)
        await self._call(login, "UpdateRobotPart", update)
        return found.part.id, found.part.secret

    async def _add_key(self, login: Any, organization: str, role: str) -> tuple[str, str]:
        authorization = pb.Authorization(
            authorization_type="role",
            authorization_id=f"organization_{role}",
            resource_type="organization",
            resource_id=organization,
            organization_id=organization,
        )
        request = pb.CreateKeyRequest(authorizations=[authorization], name=role)
        reply = await self._call(login, "CreateKey", request)
        return reply.id, reply.key

    async def _log_in(self, entity: str, kind: str, secret: str) -> dict[str, str]:
        token = await self.plane.login.log_in(entity, kind, secret, "127.0.0.1")
        return {"authorization": f"Bearer {token}"}

    async def _call(self, login: Any, name: str, request: Message) -> Any:
        path = f"/viam.app.v1.AppService/{name}"
        return await call(
            self.plane.table, path, request, peer="ipv4:127.0.0.1:1", timeout=10, metadata=login
        )


async def _start(clock: Clock) -> _RunningCloud:
    stack = contextlib.AsyncExitStack()
    memory = find_memory_directory(room=_ROOM)
    directory = stack.enter_context(tempfile.TemporaryDirectory(dir=memory))
    cloud = await stack.enter_async_context(run_cloud(Path(directory), clock))
    running = _RunningCloud(cloud, stack)
    await running.fill(cloud.key_id, cloud.key)
    return running


def read_id(request: Message) -> str:
    """Return the part that a request is about; empty if it names none."""
    if isinstance(request, Struct):
        return str(request["id"])
    field = _find_id_field(request)
    return str(getattr(request, field)) if field else ""


def write_id(request: Message, part: str) -> None:
    if isinstance(request, Struct):
        request.update({"id": part})
    elif field := _find_id_field(request):
        setattr(request, field, part)


def _find_id_field(request: Message) -> str | None:
    return next(
        (each for each in ("id", "value") if each in request.DESCRIPTOR.fields_by_name), None
    )


class _Enough(Exception):
    """A stream has replied once."""


class _FirstReply(InProcessStream):
    """A call that ends with its first reply, because a watch goes on until its client ends it."""

    def __init__(self, method: Method, request: Message, peer: str, metadata: Any) -> None:
        super().__init__(request, peer=peer, metadata=metadata, deadline=None)
        self._is_endless = method.cardinality.server_streaming

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        await super().send_message(message, end=end)
        if self._is_endless:
            raise _Enough


def _split_header(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.strip().lower(), value.strip()

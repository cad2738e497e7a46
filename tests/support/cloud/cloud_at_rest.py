"""A cloud without a network, for tests of its keys and logins."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from google.protobuf.message import Message

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402

from cogwork.cloud.commands.create_cloud import NewCloud, create_cloud  # noqa: E402
from cogwork.cloud.control_plane.cloud_directory import CloudDirectory  # noqa: E402
from cogwork.cloud.control_plane.control_plane import ControlPlane  # noqa: E402
from cogwork.cloud.control_plane.open_cloud import open_cloud  # noqa: E402
from cogwork.cloud.fleet.locations import create_location  # noqa: E402
from cogwork.cloud.fleet.machines import new_robot  # noqa: E402
from cogwork.cloud.fleet.parts import list_parts  # noqa: E402
from cogwork.cloud.identity.actor import Actor, ActorType  # noqa: E402
from cogwork.cloud.identity.public_name import PublicName  # noqa: E402
from cogwork.cloud.storage.records import Transaction  # noqa: E402
from cogwork.cloud.storage.select import query_values  # noqa: E402
from cogwork.core.clock import Clock, SystemClock  # noqa: E402

DOMAIN = "fleet.test"


def new_cloud(path: Path, clock: Clock | None = None) -> tuple[CloudDirectory, NewCloud]:
    directory = CloudDirectory(path)
    return directory, create_cloud(directory, DOMAIN, "Acme", clock or SystemClock())


def open_plane(
    directory: CloudDirectory, clock: Clock | None = None
) -> AbstractAsyncContextManager[ControlPlane]:
    name = PublicName(DOMAIN, f"{DOMAIN}:443", is_encrypted=True)
    return open_cloud(directory, name, clock or SystemClock())


async def add_machine(plane: ControlPlane, owner: str) -> tuple[str, str]:
    """Return the ID and the secret of the part of a new machine."""
    context = plane.context

    def work(tx: Transaction) -> tuple[str, str]:
        call = context.make_call(Actor(ActorType.API_KEY, owner))
        (organization,) = query_values(tx, str, "SELECT id FROM organization")
        request = pb.CreateLocationRequest(organization_id=organization, name="Hall")
        location = create_location(tx, call, request).location.id
        machine = new_robot(tx, call, pb.NewRobotRequest(name="press", location=location)).id
        (part,) = list_parts(tx, machine)
        (sealed,) = query_values(tx, str, "SELECT sealed FROM secret WHERE owner_id = ?", part.id)
        return part.id, context.keyring.unseal(sealed)

    return await context.records.write(work)


async def identify(plane: ControlPlane, token: str) -> Actor:
    """Return who makes a call with this token."""
    call: Any = SimpleNamespace(metadata={"authorization": f"Bearer {token}"})
    return await plane.login.identify(call)


async def call_method(
    plane: ControlPlane, path: str, token: str, request: Message, **metadata: str
) -> Any:
    """Return the first reply to a call with this token, and cancel the call if it goes on."""
    method = plane.table.find(path)
    assert method is not None
    reply: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

    async def receive() -> Message:
        return request

    async def send(message: Message) -> None:
        if not reply.done():
            reply.set_result(message)

    names = {name.replace("_", "-"): value for name, value in metadata.items()}
    stream: Any = SimpleNamespace(
        metadata={"authorization": f"Bearer {token}", **names},
        recv_message=receive,
        send_message=send,
    )
    call = asyncio.ensure_future(method.handle(stream))
    try:
        either: set[asyncio.Future[Any]] = {call, reply}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not reply.done():
            call.result()
        return reply.result()
    finally:
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

"""Login around the handler table, tested without a network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from grpclib import GRPCError
from tests.unit.auth.parts import (
    AUDIENCE,
    SECRETS,
    api_keys,
    external_keys,
    make_authenticator,
    sign_externally,
    stored,
)
from tests.unit.robot.bench import Bench, InProcess, thing

from cogwork.auth.credentials import KnownCredentials
from cogwork.auth.errors import Unauthenticated
from cogwork.auth.roles import Role
from cogwork.front.peer_name import digest_of
from cogwork.net.peer import Peer
from cogwork.robot.handler_table import build_handler_table
from cogwork.robot.middleware.authentication import Authentication

AUTHENTICATE = "/proto.rpc.v1.AuthService/Authenticate"
NAMES = "/viam.robot.v1.RobotService/ResourceNames"
REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"


class LockedBench(Bench):
    def __post_init__(self) -> None:
        super().__post_init__()
        self.authentication = Authentication(self.machine.operations)
        self.table = build_handler_table(
            self.machine,
            self.clock,
            self.shutdown_reasons.append,
            authentication=self.authentication,
        )
        self.lock(api_keys())

    def lock(self, keys: dict[str, Any]) -> None:
        self.use(KnownCredentials(keys))

    def use(self, credentials: KnownCredentials) -> None:
        self.authentication.use(make_authenticator(credentials, self.clock))

    async def log_in(self, name: str = "owner", **options: Any) -> dict[str, str]:
        """Return the metadata of calls of a client that has logged in."""
        from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, Credentials

        credentials = Credentials(type="api-key", payload=SECRETS[name])
        request = AuthenticateRequest(entity=name, credentials=credentials)
        reply = await self.call(AUTHENTICATE, request, **options)
        return {"authorization": f"Bearer {reply.access_token}"}


@pytest.fixture
async def bench() -> AsyncIterator[LockedBench]:
    bench = LockedBench()
    yield bench
    await bench.machine.aclose(1.0)


async def test_call_without_a_token_is_refused(bench: LockedBench) -> None:
    with pytest.raises(GRPCError, match="authentication required") as refusal:
        await bench.call_robot("ResourceNames")
    assert refusal.value.status.name == "UNAUTHENTICATED"


async def test_call_with_two_tokens_is_refused(bench: LockedBench) -> None:
    from multidict import MultiDict

    metadata = await bench.log_in()
    twice = MultiDict([*metadata.items(), *metadata.items()])
    with pytest.raises(GRPCError, match="authentication required"):
        await bench.call_robot("ResourceNames", metadata=twice)


async def test_client_that_has_logged_in_is_served(bench: LockedBench) -> None:
    await bench.apply(thing("a"))
    metadata = await bench.log_in()
    assert (await bench.call_robot("ResourceNames", metadata=metadata)).resources


async def test_client_that_is_logged_in_cannot_log_in_again(bench: LockedBench) -> None:
    with pytest.raises(GRPCError, match="already authenticated; cannot re-authenticate"):
        await bench.log_in(metadata=await bench.log_in())


async def test_role_decides_what_a_client_may_call(bench: LockedBench) -> None:
    await bench.apply(thing("a"))
    await bench.do_command("a", metadata=await bench.log_in("operator"))
    with pytest.raises(GRPCError, match=r"requires the role operator.*has the role viewer") as no:
        await bench.do_command("a", metadata=await bench.log_in("viewer"))
    assert no.value.status.name == "PERMISSION_DENIED"
    with pytest.raises(GRPCError, match=r"requires the role owner.*has the role operator"):
        await bench.call_robot("Shutdown", metadata=await bench.log_in("operator"))
    assert bench.shutdown_reasons == []
    await bench.call_robot("Shutdown", metadata=await bench.log_in("owner"))
    assert bench.shutdown_reasons != []


async def test_custom_methods_and_reflection_need_a_login(bench: LockedBench) -> None:
    for path in ("/acme.v1.Gizmo/Wave", REFLECTION, "/grpc.health.v1.Health/Check"):
        with pytest.raises(GRPCError, match="authentication required"):
            await bench.call(path, None)


async def test_modules_and_jobs_need_no_login(bench: LockedBench) -> None:
    await bench.apply(thing("a"))
    for peer in ("module:acme", "job:nightly"):
        await bench.do_command("a", peer=peer)


@pytest.mark.parametrize("change", ["removed", "replaced", "demoted"])
async def test_calls_in_flight_end_with_their_key(bench: LockedBench, change: str) -> None:
    started = asyncio.Event()

    async def hang(*_: Any, **__: Any) -> dict[str, Any]:
        started.set()
        await asyncio.Event().wait()
        return {}

    bench.behaviors["a"] = hang
    await bench.apply(thing("a"))
    mine, other = await bench.log_in("owner"), await bench.log_in("operator")
    call = await bench.start_call(bench.do_command("a", metadata=mine))
    untouched = await bench.start_call(bench.do_command("a", metadata=other))
    await started.wait()
    keys = api_keys()
    del keys["owner"]
    changed = {
        "removed": {},
        "replaced": {"owner": stored("another")},
        "demoted": {"owner": stored(SECRETS["owner"], Role.VIEWER)},
    }
    bench.lock({**keys, **changed[change]})
    with pytest.raises(GRPCError, match="the credentials of this call were removed") as refusal:
        await call
    assert refusal.value.status.name == "UNAUTHENTICATED"
    assert not untouched.done()
    untouched.cancel()
    await asyncio.gather(untouched, return_exceptions=True)


async def test_streams_of_reflection_end_with_their_key(bench: LockedBench) -> None:
    class Silent(InProcess):
        async def recv_message(self) -> Any:
            await asyncio.Event().wait()

    method = bench.table.find(REFLECTION)
    assert method is not None
    call = await bench.start_call(method.handle(Silent(None, metadata=await bench.log_in())))
    bench.lock({})
    with pytest.raises(Exception, match="the credentials of this call were removed"):
        await call


async def test_calls_without_login_end_when_it_becomes_required(bench: LockedBench) -> None:
    async def hang(*_: Any, **__: Any) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    bench.authentication.use(None)
    bench.behaviors["a"] = hang
    await bench.apply(thing("a"))
    call = await bench.start_call(bench.do_command("a"))
    job = await bench.start_call(bench.do_command("a", peer="job:nightly"))
    bench.lock(api_keys())
    with pytest.raises(GRPCError, match="login is required now"):
        await call
    assert not job.done()
    job.cancel()
    await asyncio.gather(job, return_exceptions=True)


async def test_credentials_over_plaintext_are_refused_from_other_computers(
    bench: LockedBench,
) -> None:
    metadata = await bench.log_in()
    method = bench.table.find(NAMES)
    assert method is not None
    from viam.gen.robot.v1.robot_pb2 import ResourceNamesRequest

    stream = InProcess(ResourceNamesRequest(), metadata=metadata)
    stream.client = Peer(stream.peer)
    with pytest.raises(Exception, match="start the server with -allow-insecure-creds"):
        await method.handle(stream)
    bench.authentication._allow_plaintext = True
    await method.handle(stream)


async def test_certificate_of_the_connection_is_a_login_until_its_name_is_removed(
    bench: LockedBench,
) -> None:
    from viam.gen.robot.v1.robot_pb2 import ResourceNamesRequest

    method = bench.table.find(NAMES)
    assert method is not None
    certificate = digest_of("laptop.example")

    def stream(**metadata: str) -> InProcess:
        made = InProcess(ResourceNamesRequest(), metadata=metadata)
        made.client = Peer(made.peer, is_encrypted=True, certificate=certificate)
        return made

    names = {certificate: "laptop.example"}
    bench.use(KnownCredentials(certificate_names=names))
    await method.handle(stream())
    with pytest.raises(Exception, match="expected authorization header"):
        await method.handle(stream(authorization="garbage"))
    with pytest.raises(GRPCError, match="authentication required"):
        await bench.call_robot("ResourceNames")
    bench.use(KnownCredentials())
    with pytest.raises(Exception, match="authentication required"):
        await method.handle(stream())


async def test_calls_end_when_their_token_expires(bench: LockedBench) -> None:
    async def hang(*_: Any, **__: Any) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    bench.behaviors["a"] = hang
    await bench.apply(thing("a"))
    bench.use(KnownCredentials(external=external_keys()))
    claims = {"sub": "guest", "aud": [AUDIENCE], "exp": bench.clock.time() + 0.1}
    token = sign_externally(claims)
    with pytest.raises(GRPCError, match="the token has expired"):
        await bench.do_command("a", metadata={"authorization": f"Bearer {token}"})


async def test_machine_without_login_serves_its_own_computer_only(bench: LockedBench) -> None:
    from viam.gen.robot.v1.robot_pb2 import ResourceNamesRequest

    bench.authentication.use(None, is_open=False)
    await bench.call_robot("ResourceNames")
    method = bench.table.find(NAMES)
    assert method is not None
    stream = InProcess(ResourceNamesRequest(), peer="ipv4:192.0.2.7:1")
    stream.client = Peer(stream.peer)
    with pytest.raises(Unauthenticated, match="insecure_without_auth"):
        await method.handle(stream)


async def test_public_services_of_modules_have_their_own_roles(bench: LockedBench) -> None:
    """They are not registered here, but the table of roles knows their methods."""
    path = "/viam.service.datamanager.v1.DataManagerService/Sync"
    with pytest.raises(GRPCError, match="requires the role owner"):
        await bench.call(path, None, metadata=await bench.log_in("operator"))


async def test_machine_without_login_has_nothing_to_log_in_to(bench: LockedBench) -> None:
    bench.authentication.use(None)
    with pytest.raises(GRPCError, match="requires no login") as refusal:
        await bench.log_in()
    assert refusal.value.status.name == "UNIMPLEMENTED"


async def test_session_belongs_to_who_logged_in_not_to_an_address(bench: LockedBench) -> None:
    """The SDK sends heartbeats over a second connection, and others may share an address."""
    from viam.gen.robot.v1.robot_pb2 import SendSessionHeartbeatRequest

    mine, other = await bench.log_in("owner"), await bench.log_in("operator")
    session = await bench.call_robot("StartSession", metadata=mine, peer="ipv4:192.0.2.7:1")
    beat = SendSessionHeartbeatRequest(id=session.id)
    send = "SendSessionHeartbeat"
    await bench.call_robot(send, beat, metadata=mine, peer="ipv4:192.0.2.8:9")
    with pytest.raises(GRPCError, match="SESSION_EXPIRED"):
        await bench.call_robot(send, beat, metadata=other, peer="ipv4:192.0.2.7:1")

"""Connecting and logging in to another machine, over real connections to this computer."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import grpc
import grpc.aio
import pytest
import trustme
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, AuthenticateResponse

from cogwork.config.schema.machine import RemoteConfig
from cogwork.core.clock import ManualClock, SystemClock
from cogwork.remotes import dialing
from cogwork.remotes.dialing import DialTarget, RemoteLogin, dial, find_login, resolve_address
from cogwork.remotes.errors import NotReached, RemoteUnavailable

LOGIN = RemoteLogin("cell", "api-key", "s")
AUTHORITY = trustme.CA()


class Machine(grpc.GenericRpcHandler):
    def __init__(self) -> None:
        self.logins: list[tuple[str, str, str]] = []
        self.refusal = ""
        self.requires_login = True
        self.offers: list[str] = []
        """The calls that offered a login."""

    def service(self, handler_call_details: Any) -> Any:
        if handler_call_details.method.endswith("/ResourceNames"):
            return grpc.unary_unary_rpc_method_handler(self._list_names)
        if not handler_call_details.method.endswith("/Authenticate"):
            return None
        self.offers.append(handler_call_details.method)
        if not self.requires_login:
            return None
        return grpc.unary_unary_rpc_method_handler(
            self._log_in, AuthenticateRequest.FromString, AuthenticateResponse.SerializeToString
        )

    async def _list_names(self, _: bytes, context: Any) -> bytes:
        if self.requires_login:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "log in first")
        return b""

    async def _log_in(self, request: AuthenticateRequest, context: Any) -> AuthenticateResponse:
        if self.refusal:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, self.refusal)
        credentials = request.credentials
        self.logins.append((request.entity, credentials.type, credentials.payload))
        return AuthenticateResponse(access_token="token")


class Served(NamedTuple):
    machine: Machine
    port: int

    def at(self, **changes: Any) -> DialTarget:
        to = DialTarget(f"127.0.0.1:{self.port}", LOGIN, insecure=True, allow_plaintext=False)
        return to._replace(**changes)


@contextlib.asynccontextmanager
async def serve(certificate: trustme.LeafCert | None = None) -> AsyncIterator[Served]:
    machine = Machine()
    server = grpc.aio.server(handlers=[machine])
    if certificate is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        pair = certificate.private_key_pem.bytes(), certificate.cert_chain_pems[0].bytes()
        port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
    await server.start()
    try:
        yield Served(machine, port)
    finally:
        await server.stop(None)


async def connect(to: DialTarget) -> tuple[tuple[str, str], ...]:
    """Return the metadata of the login."""
    connection = await dial(to, SystemClock())
    try:
        return connection.login
    finally:
        await connection.aclose()


async def test_login_becomes_the_metadata_of_calls() -> None:
    async with serve() as served:
        assert await connect(served.at()) == (("authorization", "Bearer token"),)
        assert served.machine.logins == [tuple(LOGIN)]
        assert await connect(served.at(login=None)) == ()
        assert len(served.machine.logins) == 1


async def test_refused_login_closes_the_connection() -> None:
    async with serve() as served:
        served.machine.refusal = "wrong key"
        with pytest.raises(grpc.aio.AioRpcError, match="wrong key"):
            await connect(served.at())


async def test_machine_that_does_not_run_is_not_waited_for() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        to = DialTarget(f"127.0.0.1:{unused.getsockname()[1]}", None, True, False)
        with pytest.raises(RemoteUnavailable, match=r"it cannot be reached: .*refused"):
            await connect(to)


async def test_certificate_must_be_trusted_and_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted = tmp_path / "ca.pem"
    AUTHORITY.cert_pem.write_to_path(str(trusted))
    async with serve(AUTHORITY.issue_cert("line.hall.test")) as served:
        named = served.at(insecure=False, certificate_name="line.hall.test")
        with pytest.raises(RemoteUnavailable, match="certificate is not trusted here"):
            await connect(named)
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        assert await connect(named)
        # An address that asks for TLS gets it, whatever the remote allows.
        assert await connect(named._replace(address=f"https://{named.address}", insecure=True))
        with pytest.raises(RemoteUnavailable):
            await connect(served.at(insecure=False))
        assert len(served.machine.logins) == 2


async def test_login_does_not_travel_unencrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialing, "is_loopback_address", lambda _: False)
    async with serve() as served:
        with pytest.raises(RemoteUnavailable, match="would be sent unencrypted to 127"):
            await connect(served.at())
        assert served.machine.logins == []
        assert await connect(served.at(allow_plaintext=True)) != ()


@pytest.mark.parametrize("is_loopback", [True, False])
async def test_machine_without_login_is_used_without_it(
    is_loopback: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialing, "is_loopback_address", lambda _: is_loopback)
    async with serve() as served:
        served.machine.requires_login = False
        connection = await dial(served.at(), SystemClock())
        assert (connection.login, connection.is_open) == ((), True)
        await connection.aclose()
        # Only a login that nobody can read is offered.
        assert len(served.machine.offers) == is_loopback


class Attempt:
    """A channel that is connected when a test says it."""

    def __init__(self) -> None:
        self.state = grpc.ChannelConnectivity.CONNECTING
        self.is_closed = False
        self._changed = asyncio.Event()

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        assert try_to_connect
        return self.state

    async def wait_for_state_change(self, state: grpc.ChannelConnectivity) -> None:
        while self.state is state:
            await self._changed.wait()

    def connect(self) -> None:
        self.state = grpc.ChannelConnectivity.READY
        self._changed.set()

    async def close(self, grace: float | None) -> None:
        del grace
        self.is_closed = True


grpc.aio.Channel.register(Attempt)


class Race:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.attempts: list[Attempt] = []
        self.running = asyncio.ensure_future(dialing._race(self._open, self.clock))

    def _open(self) -> grpc.aio.Channel:
        self.attempts.append(Attempt())
        return cast("grpc.aio.Channel", self.attempts[-1])

    @property
    def open(self) -> list[bool]:
        return [not each.is_closed for each in self.attempts]


async def test_another_attempt_begins_every_second_and_the_first_that_connects_wins() -> None:
    race = Race()
    await race.clock.advance(2.5)
    assert race.open == [True, True, True]
    race.attempts[1].connect()
    await race.clock.advance(0)
    assert await race.running is cast("grpc.aio.Channel", race.attempts[1])
    assert race.open == [False, True, False]


async def test_attempts_are_given_up_after_five_seconds() -> None:
    race = Race()
    await race.clock.advance(4.9)
    assert not race.running.done()
    await race.clock.advance(0.1)
    with pytest.raises(NotReached, match="did not answer within 5 s"):
        await race.running
    assert race.open == [False] * 5


async def test_two_that_connect_together_leave_one() -> None:
    race = Race()
    await race.clock.advance(1.5)
    for attempt in race.attempts:
        attempt.connect()
    await race.clock.advance(0)
    await race.running
    assert sorted(race.open) == [False, True]


def config(**given: Any) -> RemoteConfig:
    return RemoteConfig.model_validate({"name": "line", "address": "line:8080", **given})


@pytest.mark.parametrize(
    ("given", "login"),
    [
        ({}, None),
        ({"secret": "s"}, RemoteLogin("line:8080", "robot-location-secret", "s")),
        (
            {"auth": {"entity": "k", "credentials": {"type": "api-key", "payload": "v"}}},
            RemoteLogin("k", "api-key", "v"),
        ),
        (
            {"secret": "s", "auth": {"credentials": {"type": "robot", "payload": "v"}}},
            RemoteLogin("line:8080", "robot", "v"),
        ),
    ],
)
def test_login_of_a_configuration(given: dict[str, Any], login: RemoteLogin | None) -> None:
    assert find_login(config(**given)) == login


def test_address_that_is_none_is_a_fault_of_the_remote() -> None:
    assert resolve_address("https://line", 8080) == "https://line:8080"
    with pytest.raises(RemoteUnavailable):
        resolve_address("line:port", 8080)

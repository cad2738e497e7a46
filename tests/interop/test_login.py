"""Login with real clients: every method with every kind of token, and the SDK."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from grpclib.const import Status
from tests.contract.test_grpcweb import frame
from tests.contract.test_grpcweb import post as post_call
from tests.support.machine.login import (
    CANARY,
    KEYS,
    ROLES,
    Forger,
    config,
    key_of,
    log_in,
    post,
)
from tests.support.machine.running import Server, http_get, run_server, with_free_port
from tests.support.sizes import FULL, size
from tests.unit.robot.bench import Bench

from cogwork.auth.exempt_paths import EXEMPT_METHODS
from cogwork.auth.roles import Role, required_role
from cogwork.cli.main import main

on_shared_loop = pytest.mark.asyncio(loop_scope="module")

ENDLESS = 0.3
"""Seconds after which a call that was let in and does not end is given up."""
SHUTDOWN = "/viam.robot.v1.RobotService/Shutdown"
WORDS = ("UNAUTHENTICATED", "PERMISSION_DENIED")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """The server of the tests that guess little."""
    async with run_server(config(*ROLES), tmp_path_factory.mktemp("server")) as server:
        await server.out.wait_for("applied in")
        yield server


@pytest.fixture
async def flooded(tmp_path: Path) -> AsyncIterator[Server]:
    """A server with a limit on guesses and a log of its own."""
    async with run_server(config(*ROLES), tmp_path) as server:
        await server.out.wait_for("applied in")
        yield server


async def call(
    channel: grpc.aio.Channel, path: str, token: str | None, timeout: float = 20.0
) -> str:
    """Call any method with an empty request, and return the status."""
    metadata = [("authorization", f"Bearer {token}")] if token is not None else []
    start: Any = channel.stream_stream(path)
    while True:
        try:
            async for _ in start(iter([b""]), timeout=timeout, metadata=metadata):
                pass  # a unary call that fails has an empty reply, too
        except grpc.aio.AioRpcError as error:
            # grpc.aio itself fails if the server ends the call while the client still writes.
            if "Internal error from Core" not in (error.details() or ""):
                return error.code().name
        else:
            return "OK"


async def call_web(port: int, path: str, token: str | None, timeout: float = 20.0) -> str:
    """Do the same over gRPC-web."""
    headers = {"authorization": f"Bearer {token}"} if token is not None else {}
    milliseconds = f"{round(timeout * 1000)}m"
    reply = await asyncio.to_thread(
        post_call, port, path, frame(b""), grpc_timeout=milliseconds, **headers
    )
    return Status(reply.status).name


Transport = Callable[[str, str | None, float], Awaitable[str]]


def served_paths() -> list[str]:
    table = Bench().table
    return sorted(
        method.path
        for service in table.services()
        for method in table.methods(service)
        if method.path not in EXEMPT_METHODS
    )


@pytest.mark.timeout(300)
async def test_every_method_with_every_kind_of_token(tmp_path: Path) -> None:
    """Exactly the table of roles, on every method of every service.

    Over gRPC-web, every method and every token is tried, but not every pair of them.
    """
    paths = [*served_paths(), "/acme.v1.Gizmo/Wave"]
    surprises: list[str] = []
    count = Counter[str]()
    async with run_server(config(*ROLES, "revoked"), tmp_path) as server:
        await server.out.wait_for("applied in")
        tokens = {role: log_in(server.port, role) for role in (*ROLES, "revoked")}
        forged = Forger.of_machine(tmp_path / "home", tokens["owner"]).tokens()
        server.save(with_free_port(config(*ROLES)))
        await server.out.wait_for("applied in", since=len(server.out.lines))
        bad: dict[str, str | None] = {"none": None, "revoked": tokens["revoked"], **forged}
        async with grpc.aio.insecure_channel(f"localhost:{server.port}") as channel:
            transports: dict[str, Transport] = {
                "gRPC": lambda *call_of: call(channel, *call_of),
                "gRPC-web": lambda *call_of: call_web(server.port, *call_of),
            }

            async def check(path: str, transport: str) -> None:
                send = transports[transport]
                is_public = not path.startswith("/acme.")
                for kind, token in choose_tokens(bad, paths.index(path), transport).items():
                    if (status := await send(path, token, 20.0)) != "UNAUTHENTICATED":
                        surprises.append(f"{path} over {transport} with {kind}: {status}")
                    count[kind] += 1
                for name in ROLES:
                    if path == SHUTDOWN and name == "owner":
                        continue
                    allowed = Role[name.upper()] >= required_role(path, is_public=is_public)
                    patience = ENDLESS if allowed else 20.0
                    status = await send(path, tokens[name], patience)
                    if allowed is (status in WORDS):
                        surprises.append(f"{path} over {transport} as {name}: {status}")
                    count[name] += 1

            work = [(path, transport) for path in paths for transport in transports]
            await asyncio.gather(*(check_all(work[n::16], check) for n in range(16)))
            assert await call(channel, SHUTDOWN, tokens["owner"]) == "OK"
        assert await server.exit_code() == 0
    print(f"{count.total()} combinations over {len(paths)} methods, {len(surprises)} surprises")
    assert surprises == []
    assert count.total() > size(ci=4000, full=6000)
    assert CANARY not in server.output


def choose_tokens(
    tokens: Mapping[str, str | None], number: int, transport: str
) -> Mapping[str, str | None]:
    """Return all of them. Over gRPC-web, return two, in turn, unless the size is full."""
    if FULL or transport == "gRPC":
        return tokens
    kinds = [*tokens]
    return {kind: tokens[kind] for kind in ("none", kinds[number % len(kinds)])}


async def check_all(work: list[tuple[str, str]], check: Any) -> None:
    for path, transport in work:
        await check(path, transport)


async def dial(address: str, authority: Path | None = None, **options: Any) -> Any:
    """Dial with the SDK in a process of its own, which trusts the authority."""
    environment = {**os.environ, "SSL_CERT_FILE": str(authority)} if authority else None
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(__file__).with_name("login_client.py")),
        address,
        json.dumps(options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment,
    )
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    return json.loads(out.splitlines()[-1])


def api_key(role: str, key: str | None = None) -> dict[str, Any]:
    payload = key if key is not None else key_of(role)
    return {"type": "api-key", "payload": payload, "auth_entity": KEYS[role]}


@on_shared_loop
async def test_sdk_client_through_the_rust_dialer(server: Server) -> None:
    """The dial matrix without TLS: `localhost` selects direct gRPC through Rust."""
    address = f"localhost:{server.port}"
    location: dict[str, Any] = {
        "type": "robot-location-secret",
        "payload": f"{CANARY}-location",
        "auth_entity": address,
    }
    owner, viewer, secret, wrong, none, direct = await asyncio.gather(
        dial(address, insecure=True, **api_key("owner")),
        dial(address, insecure=True, **api_key("viewer")),
        dial(address, insecure=True, **location),
        dial(address, insecure=True, **api_key("operator", "wrong")),
        dial(address, insecure=True),
        dial(address, insecure=True, disable_webrtc=True, **api_key("owner")),
    )
    assert owner == secret == OK
    assert viewer == {"dial": "OK", "reads": "OK", "moves": "PERMISSION_DENIED"}
    assert wrong["dial"] != "OK"
    assert none["dial"] != "OK"
    # A bug of the SDK, which never reaches the server: see the guide.
    assert direct["dial"] == "ValueError"
    assert "server_hostname is only meaningful with ssl" in direct["error"]


@on_shared_loop
async def test_sdk_client_over_webrtc(server: Server) -> None:
    """The rows of the dial matrix with WebRTC: a login counts for the calls of the channel."""
    address = f"127.0.0.1:{server.port}"
    location: dict[str, Any] = {
        "type": "robot-location-secret",
        "payload": f"{CANARY}-location",
        "auth_entity": address,
    }
    owner, viewer, secret, wrong, none = await asyncio.gather(
        dial(address, insecure=True, **api_key("owner")),
        dial(address, insecure=True, **api_key("viewer")),
        dial(address, insecure=True, **location),
        dial(address, insecure=True, **api_key("operator", "wrong")),
        dial(address, insecure=True),
    )
    assert owner == secret == OK
    assert viewer == {"dial": "OK", "reads": "OK", "moves": "PERMISSION_DENIED"}
    assert wrong["dial"] != "OK"
    assert none["dial"] != "OK"
    token = log_in(server.port, "owner")
    history = await get_with_token(server, "/history.json", token)
    assert len(set(re.findall(r"webrtc:127\.0\.0\.1:\d+", history))) == 3
    assert CANARY not in server.output


OK = {"dial": "OK", "reads": "OK", "moves": "OK"}


async def test_sdk_client_with_tls(tmp_path: Path) -> None:
    """The dial matrix with TLS, with a certificate of `cogwork certs local`."""
    certs = tmp_path / "certs"
    assert main(["certs", "local", "machine.local", "--directory", str(certs)]) == 0
    with_tls = config(*ROLES)
    with_tls["network"] |= {
        "tls_cert_file": str(certs / "cert.pem"),
        "tls_key_file": str(certs / "key.pem"),
    }
    async with run_server(with_tls, tmp_path) as server:
        assert server.url.startswith("https://")
        await server.out.wait_for("applied in")
        address, numeric = f"localhost:{server.port}", f"127.0.0.1:{server.port}"
        owner, authority = api_key("owner"), certs / "ca.pem"
        location: dict[str, Any] = {
            "type": "robot-location-secret",
            "payload": f"{CANARY}-location",
            "auth_entity": address,
        }
        rust, by_number, secret, direct, plain, untrusted = await asyncio.gather(
            dial(address, authority, **owner),
            dial(numeric, authority, **owner),
            dial(address, authority, **location),
            dial(address, disable_webrtc=True, **owner),
            dial(address, authority, insecure=True, disable_webrtc=True, **owner),
            dial(address, **owner),
        )
    assert rust == by_number == secret == OK
    # Without Rust, the SDK does not verify the certificates of hosts that begin with "localhost".
    assert direct == OK
    assert plain["dial"] != "OK"
    assert untrusted["dial"] != "OK"


@on_shared_loop
async def test_removed_key_ends_streams_and_tokens_at_once(server: Server) -> None:
    token = log_in(server.port, "viewer")
    async with grpc.aio.insecure_channel(f"localhost:{server.port}") as channel:
        start: Any = channel.stream_stream("/grpc.health.v1.Health/Watch")
        stream = start(iter([b""]), metadata=[("authorization", f"Bearer {token}")], timeout=30)
        assert await stream.read() is not grpc.aio.EOF
        server.save(with_free_port(config("owner", "operator")))
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await stream.read()
        assert ended.value.code() is grpc.StatusCode.UNAUTHENTICATED
        names = "/viam.robot.v1.RobotService/ResourceNames"
        assert await call(channel, names, token) == "UNAUTHENTICATED"
        assert await call(channel, names, log_in(server.port, "owner")) == "OK"
    since = len(server.out.lines)
    server.save(with_free_port(config(*ROLES)))
    await server.out.wait_for("applied in", since)


async def test_tokens_survive_a_restart(tmp_path: Path) -> None:
    names = "/viam.robot.v1.RobotService/ResourceNames"
    async with run_server(config(*ROLES), tmp_path) as server:
        token = log_in(server.port, "owner")
    async with (
        run_server(config(*ROLES), tmp_path) as server,
        grpc.aio.insecure_channel(f"localhost:{server.port}") as channel,
    ):
        assert await call(channel, names, token) == "OK"


@on_shared_loop
async def test_http_needs_a_login_and_tells_nothing_before(server: Server) -> None:
    for path in ("/status.json", "/logs.jsonl", "/history.json", "/camera/x"):
        assert await http_get("localhost", server.port, path) == (401, "authentication required\n")
    status, body = await http_get("localhost", server.port, "/")
    assert status == 200
    assert "rdk:" not in body
    assert (await http_get("localhost", server.port, "/restart_status"))[0] == 200


async def test_guesses_do_not_slow_down_or_lock_out_a_known_client(flooded: Server) -> None:
    def time_login() -> float:
        start = time.perf_counter()
        log_in(flooded.port, "owner")
        return time.perf_counter() - start

    time_login()
    alone = sorted([time_login() for _ in range(20)])[10]
    wrong = {"entity": KEYS["owner"], "credentials": {"type": "api-key", "payload": "wrong"}}
    with ThreadPoolExecutor(150) as threads:
        guesses = [
            threads.submit(post, flooded.port, wrong, f"127.0.0.{2 + number % 20}")
            for number in range(400)
        ]
        during = [time_login() for _ in range(20)]
        statuses = Counter(each.result()[0] for each in guesses)
    print(
        f"login {alone * 1000:.1f} ms alone, {sorted(during)[10] * 1000:.1f} ms during {statuses}"
    )
    assert set(statuses) == {401, 429}
    assert sorted(during)[10] < 5 * alone + 0.05


async def get_with_token(server: Server, path: str, token: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *("curl", "-s", "-H", f"Authorization: Bearer {token}", f"{server.url}{path}"),
        stdout=asyncio.subprocess.PIPE,
    )
    return (await process.communicate())[0].decode()


@on_shared_loop
async def test_secrets_appear_nowhere(server: Server) -> None:
    post(server.port, {"entity": KEYS["owner"], "credentials": {"type": CANARY, "payload": CANARY}})
    wrong = {"type": "api-key", "payload": f"{CANARY}-guess"}
    post(server.port, {"entity": KEYS["owner"], "credentials": wrong})
    token = log_in(server.port, "owner")
    pages = ""
    for path in ("/status", "/status.json", "/logs.jsonl", "/history.json"):
        pages += await get_with_token(server, path, token)
    assert "invalid credentials" in pages
    assert KEYS["owner"] in pages
    command_line = Path(f"/proc/{server.pid}/cmdline").read_text()
    for place in (pages, server.output, command_line):
        assert f"{CANARY}-" not in place
        assert token not in place


async def test_traceback_of_a_killed_server_has_no_secrets(tmp_path: Path) -> None:
    """The same signal that ends a server whose interpreter is stuck."""
    async with run_server(config(*ROLES), tmp_path, exits=None) as server:
        token = log_in(server.port, "owner")
        server.signal(signal.SIGPROF)
        assert await server.exit_code() == -signal.SIGPROF
    assert "most recent call first" in server.err.text
    assert f"{CANARY}-" not in server.output
    assert token not in server.output

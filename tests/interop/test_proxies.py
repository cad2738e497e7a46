"""Behind a proxy, the server knows the addresses of clients; elsewhere, nobody can make them up."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.interop.proxies import Proxy, needs_proxies, run_proxy
from tests.support.cloud.cloud_process import CloudProcess
from tests.support.machine.running import Server, run_server
from tests.support.machine.watched import FAKES
from tests.support.network.proxy_header import encode_v2
from tests.support.sizes import size
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, AuthenticateResponse, Credentials

BAD_LOGINS = size(ci=200, full=10_000)
GOOD_LOGINS = size(ci=40, full=500)
AT_ONCE = 150
"""More than the answers that a server delays at once, so not every bad login waits."""
KEY = "generated-by-cogwork-auth-add-key"
PROXY_NETWORK = ("--trusted-proxy", "127.0.0.1")


def login_body(entity: str, key: str) -> str:
    return json.dumps({"entity": entity, "credentials": {"type": "api-key", "payload": key}})


def post_login(
    port: int,
    entity: str,
    key: str,
    *,
    proxy: Proxy | None = None,
    source: str = "127.0.0.1",
    headers: Mapping[str, str] | None = None,
) -> int:
    """Return the status of a login, directly or through a proxy."""
    place: dict[str, Any] = {"timeout": 60, "source_address": (source, 0)}
    connection = (
        http.client.HTTPSConnection("127.0.0.1", proxy.port, context=proxy.tls_context(), **place)
        if proxy is not None
        else http.client.HTTPConnection("127.0.0.1", port, **place)
    )
    try:
        connection.request(
            "POST", "/rpc/v1/authenticate", login_body(entity, key), dict(headers or {})
        )
        return connection.getresponse().status
    finally:
        connection.close()


def call_login(proxy: Proxy, entity: str, key: str) -> str:
    """Log in over gRPC, and return the name of the status."""
    credentials = grpc.ssl_channel_credentials(proxy.authority)
    with grpc.secure_channel(f"localhost:{proxy.port}", credentials) as channel:
        call = channel.unary_unary(
            "/proto.rpc.v1.AuthService/Authenticate",
            AuthenticateRequest.SerializeToString,
            AuthenticateResponse.FromString,
        )
        request = AuthenticateRequest(
            entity=entity, credentials=Credentials(type="api-key", payload=key)
        )
        try:
            call(request, timeout=30)
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"


@contextlib.asynccontextmanager
async def run_machine(directory: Path, proxies: list[str]) -> AsyncIterator[Server]:
    handler = {"type": "api-key", "config": {"keys": ["good"], "good": KEY}}
    network = {"bind_address": "127.0.0.1:0", "trusted_proxies": proxies}
    config = {**FAKES, "auth": {"handlers": [handler]}, "network": network}
    async with run_server(config, directory) as server:
        await server.out.wait_for("applied in")
        yield server


@pytest.fixture
async def cloud(tmp_path: Path) -> CloudProcess:
    cloud = CloudProcess(tmp_path / "cloud")
    await cloud.initialize()
    return cloud


def port_of(cloud: CloudProcess) -> int:
    return int(cloud.address.rpartition(":")[2])


@needs_proxies
async def test_cloud_knows_clients_behind_proxies_only(cloud: CloudProcess, tmp_path: Path) -> None:
    async with cloud.serve(*PROXY_NETWORK) as server:
        port = port_of(cloud)

        async def fail(
            entity: str, source: str, proxy: Proxy | None, seen: str, headers: Mapping[str, str]
        ) -> None:
            """Fail to log in, and check which address the server has seen."""
            status = await asyncio.to_thread(
                post_login, port, entity, "wrong", proxy=proxy, source=source, headers=headers
            )
            assert status == 401
            await server.out.wait_for(f'login of .* "{entity}" from ipv4:{seen} failed')

        made_up = {"X-Forwarded-For": "203.0.113.9"}, {"Forwarded": "for=203.0.113.9"}
        for number, kind in enumerate(("haproxy", "nginx")):
            async with run_proxy(kind, port, tmp_path / kind) as proxy:
                client = f"127.0.3.{number}"
                await fail(f"{kind} plain", client, proxy, client, {})
                await fail(f"{kind} x-forwarded-for", client, proxy, client, made_up[0])
                # nginx passes this on, so it contradicts what nginx says.
                seen = client if kind == "haproxy" else "127.0.0.1"
                await fail(f"{kind} forwarded", client, proxy, seen, made_up[1])
                status = await asyncio.to_thread(call_login, proxy, f"{kind} grpc", "wrong")
                assert status == "UNAUTHENTICATED"
                await server.out.wait_for(f'login of .* "{kind} grpc" from ipv[46]:')
                status = await asyncio.to_thread(call_login, proxy, cloud.key_id, cloud.key)
                assert status == "OK"
        await fail("direct", "127.0.3.4", None, "127.0.3.4", made_up[0] | made_up[1])
        answers = [
            await asyncio.to_thread(send_after_header, port, source)
            for source in ("127.0.0.1", "127.0.3.5")
        ]
        assert answers[0].startswith(b"HTTP/1.1 401")
        assert answers[1].startswith(b"HTTP/1.1 400")
        await server.out.wait_for('login of .* "f" from ipv4:203.0.113.7 failed')
        assert "203.0.113.9" not in server.output


def send_after_header(port: int, source: str) -> bytes:
    """Return the answer to a login that a header of the PROXY protocol precedes."""
    with socket.create_connection(("127.0.0.1", port), 30, (source, 0)) as connection:
        body = login_body("f", "wrong").encode()
        connection.sendall(
            encode_v2("203.0.113.7", 5000)
            + b"POST /rpc/v1/authenticate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            + f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        return connection.recv(1000)


@needs_proxies
async def test_good_logins_pass_beside_bad_ones_through_one_proxy(
    cloud: CloudProcess, tmp_path: Path
) -> None:
    async with (
        cloud.serve(*PROXY_NETWORK),
        run_proxy("haproxy", port_of(cloud), tmp_path / "haproxy") as proxy,
    ):
        await check_good_logins_pass(port_of(cloud), cloud.key_id, cloud.key, proxy)


async def test_good_logins_of_a_machine_pass_beside_bad_ones(tmp_path: Path) -> None:
    async with run_machine(tmp_path, []) as server:
        await check_good_logins_pass(server.port, "good", KEY)


async def check_good_logins_pass(
    port: int, entity: str, key: str, proxy: Proxy | None = None
) -> None:
    """Send bad logins, of the same key and of others, and good ones, all from one address."""

    def time_good() -> float:
        start = time.perf_counter()
        assert post_login(port, entity, key, proxy=proxy) == 200
        return time.perf_counter() - start

    def fail(number: int) -> int:
        return post_login(port, (entity, f"other {number}")[number % 2], "wrong", proxy=proxy)

    alone = [await asyncio.to_thread(time_good) for _ in range(20)]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        bad = [threads.submit(fail, number) for number in range(BAD_LOGINS)]
        good = [await asyncio.to_thread(time_good) for _ in range(GOOD_LOGINS)]
        while not all(each.done() for each in bad):
            good.append(await asyncio.to_thread(time_good))
        statuses = Counter(each.result() for each in bad)
    print(
        f"{dict(statuses)} beside {len(good)} good logins, which take "
        f"{sorted(good)[len(good) // 2] * 1e3:.1f} ms, alone {sorted(alone)[10] * 1e3:.1f} ms"
    )
    assert set(statuses) == {401, 429}
    assert statuses[401] <= 100 + BAD_LOGINS // 20, "the budget of the network"


@needs_proxies
async def test_machine_accepts_credentials_over_tls_of_its_proxy(tmp_path: Path) -> None:
    async with (
        run_machine(tmp_path, ["127.0.0.1"]) as server,
        run_proxy("haproxy", server.port, tmp_path / "haproxy") as proxy,
    ):
        assert await asyncio.to_thread(call_login, proxy, "good", KEY) == "OK"
        status = await asyncio.to_thread(post_login, server.port, "good", KEY, proxy=proxy)
        assert status == 200
        # Behind the proxy, but without TLS.
        headers = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "http"}
        status = await asyncio.to_thread(post_login, server.port, "good", KEY, headers=headers)
        assert status in (401, 403)

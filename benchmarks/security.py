"""Cost of login and TLS, relative to a bare server with the TLS of grpc core.

A client in a separate process calls five servers alternately: a bare grpc.aio server with and
without TLS, and three Cogwork servers on the public port: with neither, with a login, and with TLS.
In the case "header", the client sends a token to the server without login, which shows the cost of
transporting the token. Absolute figures of a shared computer mean little; ratios of adjacent
measurements do.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.rpc import (
    CASES,
    SERVICE,
    make_bare_server,
    make_methods,
    run_on_loop,
    start_process,
    wait_for_stop,
)

SERVERS = ("bare", "bare TLS", "ours", "header", "login", "TLS")
MOST_LOGIN = 1.05
"""Maximum time of a call with login, relative to a call without login."""
LEAST_TLS = 0.9
"""Minimum share of the call rate that remains with TLS, relative to the share on a bare server."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each case in each round")
    parser.add_argument("--role", choices=("bare", "ours", "client"), help=argparse.SUPPRESS)
    parser.add_argument("--given", default="{}", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    given = json.loads(arguments.given)
    match arguments.role:
        case "bare":
            return run_on_loop(run_bare_server(given))
        case "ours":
            return run_on_loop(run_our_servers(given))
        case "client":
            return run_on_loop(run_client(given, arguments.rounds, arguments.seconds))
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        certificate = issue_certificate(Path(directory))
        words = ["--given", json.dumps(certificate)]
        servers: dict[str, Any] = {
            **stack.enter_context(start_process(__file__, "bare", words)),
            **stack.enter_context(start_process(__file__, "ours", words)),
        }
        command = [sys.executable, "-m", "benchmarks.security", "--role", "client"]
        options = ["--rounds", str(arguments.rounds), "--seconds", str(arguments.seconds)]
        report = subprocess.run(
            [*command, *options, "--given", json.dumps({**certificate, **servers})],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    return print_report(json.loads(report.stdout))


def issue_certificate(directory: Path) -> dict[str, str]:
    """Return the authority, the certificate and the key as PEM, and a file with the latter two."""
    from cogwork.cli.main import main as run_cogwork

    with contextlib.redirect_stdout(io.StringIO()):
        run_cogwork(["certs", "local", "localhost", "--directory", str(directory)])
    pems = {name: (directory / f"{name}.pem").read_text() for name in ("ca", "cert", "key")}
    pair = directory / "pair.pem"
    pair.write_text(pems["cert"] + pems["key"])
    return {**pems, "pair": str(pair)}


def print_report(measured: dict[str, Any]) -> int:
    rates: dict[str, dict[str, list[float]]] = measured["rates"]
    is_good = True
    print(
        f"{'case':12} {'login':>9} {'aim':>5} {'header':>7} {'TLS':>6} {'bare TLS':>9}",
        f"{'quotient':>9} {'aim':>5}",
    )
    for kind, at_once in CASES:
        case = rates[f"{kind} {at_once}"]
        login = 1 / _median_ratio(case["login"], case["ours"])
        header = 1 / _median_ratio(case["header"], case["ours"])
        tls = _median_ratio(case["TLS"], case["ours"])
        bare = _median_ratio(case["bare TLS"], case["bare"])
        is_good &= login <= MOST_LOGIN and tls / bare >= LEAST_TLS
        print(
            f"{kind:>6} {at_once:>5} {login:9.2f} {MOST_LOGIN:5.2f} {header:7.2f} "
            f"{tls:6.2f} {bare:9.2f} {tls / bare:9.2f} {LEAST_TLS:5.2f}"
        )
    ours, theirs = (statistics.median(measured["handshakes"][name]) for name in ("TLS", "bare TLS"))
    print(f"handshakes: {ours:.0f}/s, grpc core {theirs:.0f}/s")
    return 0 if is_good else 1


def _median_ratio(ours: list[float], bare: list[float]) -> float:
    return statistics.median(mine / theirs for mine, theirs in zip(ours, bare, strict=True))


async def run_client(given: dict[str, Any], rounds: int, seconds: float) -> int:
    import grpc
    import grpc.aio

    options = (("grpc.max_receive_message_length", -1),)
    given["header"] = given["ours"]
    trusted = grpc.ssl_channel_credentials(given["ca"].encode())
    channels = {
        name: grpc.aio.secure_channel(given[name], trusted, options)
        if name.endswith("TLS")
        else grpc.aio.insecure_channel(given[name], options)
        for name in SERVERS
    }
    token = (("authorization", f"Bearer {given['token']}"),)
    tokens = {"login": token, "header": token}
    rates: dict[str, dict[str, list[float]]] = {
        f"{kind} {at_once}": {name: [] for name in SERVERS} for kind, at_once in CASES
    }
    handshakes: dict[str, list[float]] = {"TLS": [], "bare TLS": []}
    for number in range(rounds + 1):
        names = sorted(SERVERS, reverse=bool(number % 2))
        for kind, at_once in CASES:
            for name in names:
                work = _measure_rate(channels[name], kind, at_once, seconds, tokens.get(name, ()))
                rate = await work
                if number:  # the first round is warm-up
                    rates[f"{kind} {at_once}"][name].append(rate)
        for name in handshakes:
            handshakes[name].append(
                await asyncio.to_thread(measure_handshakes, given[name], given["ca"], seconds)
            )
    for channel in channels.values():
        await channel.close()
    print(json.dumps({"rates": rates, "handshakes": handshakes}))
    return 0


async def _measure_rate(
    channel: Any, kind: str, at_once: int, seconds: float, metadata: tuple[tuple[str, str], ...]
) -> float:
    call = channel.unary_unary(f"/{SERVICE}/{kind.capitalize()}")
    count = 0
    end = time.perf_counter() + seconds

    async def ask() -> None:
        nonlocal count
        while time.perf_counter() < end:
            await call(b"\n\x04belt", metadata=metadata)
            count += 1

    started = time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(at_once)))
    return count / (time.perf_counter() - started)


def measure_handshakes(address: str, authority: str, seconds: float) -> float:
    context = ssl.create_default_context(cadata=authority)
    context.set_alpn_protocols(["h2"])
    host, _, port = address.partition(":")
    count, start = 0, time.perf_counter()
    while time.perf_counter() < start + seconds:
        with (
            socket.create_connection((host, int(port)), 10) as plain,
            context.wrap_socket(plain, server_hostname="localhost"),
        ):
            count += 1
    return count / (time.perf_counter() - start)


async def run_bare_server(given: dict[str, str]) -> int:
    import grpc

    server = make_bare_server()
    pair = (given["key"].encode(), given["cert"].encode())
    plain = server.add_insecure_port("127.0.0.1:0")
    secure = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
    await server.start()
    await wait_for_stop({"bare": f"127.0.0.1:{plain}", "bare TLS": f"127.0.0.1:{secure}"})
    await server.stop(None)
    return 0


async def run_our_servers(given: dict[str, str]) -> int:
    from cogwork.front.tls_socket import TlsSettings
    from cogwork.serving.front import FrontProcess, ServerSockets
    from cogwork.serving.public_port import PublicPort

    authenticator, token = make_login()
    with tempfile.TemporaryDirectory() as directory:
        servers, ports, addresses = [], [], {"token": token}
        for name in ("ours", "login", "TLS"):
            sockets = ServerSockets(
                Path(directory) / f"{name}-grpc",
                Path(directory) / f"{name}-http",
                TlsSettings(Path(given["pair"])) if name == "TLS" else None,
            )
            servers.append(start_server(sockets.grpc, authenticator if name == "login" else None))
            await servers[-1].start()
            front = FrontProcess(lambda *_: None)
            front.use_sockets(sockets)
            ports.append(PublicPort(front))
            await ports[-1].listen("127.0.0.1", 0)
            addresses[name] = "{}:{}".format(*ports[-1].addresses[0])
        await asyncio.sleep(2.0)  # wait for the front processes to start
        await wait_for_stop(addresses)
        for server in servers:
            await server.stop(None)
        for port in ports:
            await port.aclose()
    return 0


def make_login() -> tuple[Any, str]:
    """Return an authenticator with one key, and a token for it."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from cogwork.auth.attempt_limiter import AttemptLimiter
    from cogwork.auth.authenticator import Authenticator
    from cogwork.auth.credentials import KnownCredentials, StoredSecret
    from cogwork.auth.signing_key import SigningKey
    from cogwork.core.clock import SystemClock

    key, clock = SigningKey(Ed25519PrivateKey.generate()), SystemClock()
    credentials = KnownCredentials({"id": StoredSecret(key.digest("secret"))})
    limiter = AttemptLimiter(clock.monotonic)
    authenticator = Authenticator(credentials, key, "machine", limiter, clock)
    return authenticator, authenticator.log_in("id", "api-key", "secret", "ipv4:127.0.0.1")


def start_server(path: Path, authenticator: Any) -> Any:
    from cogwork.core.clock import SystemClock
    from cogwork.front.peer_name import parse_socket_name
    from cogwork.graph.provider import Providers
    from cogwork.robot.handler_table import build_handler_table
    from cogwork.robot.machine import Machine
    from cogwork.robot.middleware.authentication import Authentication
    from cogwork.wire.transports.grpc import grpc_server

    clock = SystemClock()
    machine = Machine(Providers(), clock)
    authentication = Authentication(machine.operations)
    authentication.use(authenticator)
    table = build_handler_table(machine, clock, print, authentication=authentication)

    table.add(SERVICE, make_methods)
    server = grpc_server(table, parse_socket_name)
    server.add_insecure_port(f"unix:{path}")
    return server


if __name__ == "__main__":
    sys.exit(main())

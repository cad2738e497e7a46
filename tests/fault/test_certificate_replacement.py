"""Certificates are replaced many times under load: no call fails."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import trustme
from tests.support.machine.running import run_server
from tests.support.machine.watched import FAKES
from tests.support.sizes import size
from tests.support.waiting import block_until, pass_time

REPLACEMENTS = size(ci=8, full=1000)
CLIENTS = 32
NAMES = "/viam.robot.v1.RobotService/ResourceNames"


class Load:
    """Clients that connect, make some calls and disconnect, until they are stopped."""

    def __init__(self, port: int, authority: bytes) -> None:
        self._address = f"localhost:{port}"
        self._credentials = grpc.ssl_channel_credentials(authority)
        self.calls = 0
        self.connections = 0
        self.failures: list[str] = []
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        self._stopped.set()

    async def run(self) -> None:
        await asyncio.gather(*(self._run_client(n) for n in range(CLIENTS)))

    async def _run_client(self, number: int) -> None:
        while not self._stopped.is_set():
            options = [("grpc.use_local_subchannel_pool", 1)]
            async with grpc.aio.secure_channel(
                self._address, self._credentials, options
            ) as channel:
                self.connections += 1
                call: Any = channel.unary_unary(NAMES)
                # Some connections live through many replacements, others through none.
                for _ in range(5 if number % 2 else 200):
                    try:
                        await call(b"", timeout=60)
                        self.calls += 1
                    except grpc.aio.AioRpcError as error:
                        self.failures.append(f"{error.code().name}: {error.details()}")
                    if self._stopped.is_set():
                        return
                    await pass_time(0.02)


def replace_pair(authority: trustme.CA, directory: Path) -> bytes:
    """Return the new certificate in DER."""
    issued = authority.issue_cert("localhost")
    for name, pem in (("key.pem", issued.private_key_pem), ("cert.pem", issued.cert_chain_pems[0])):
        pem.write_to_path(str(directory / f"new-{name}"))
        (directory / f"new-{name}").replace(directory / name)
    return ssl.PEM_cert_to_DER_cert(issued.cert_chain_pems[0].bytes().decode())


def wait_until_served(port: int, certificate: bytes) -> None:
    def is_served() -> bool:
        pem = ssl.get_server_certificate(("localhost", port), timeout=60)
        return ssl.PEM_cert_to_DER_cert(pem) == certificate

    block_until(is_served, every=0.02)


@pytest.mark.timeout(size(ci=120, full=1700))
async def test_replaced_certificates_fail_no_call(tmp_path: Path) -> None:
    authority = trustme.CA()
    replace_pair(authority, tmp_path)
    files = {"tls_cert_file": str(tmp_path / "cert.pem"), "tls_key_file": str(tmp_path / "key.pem")}
    config = {**FAKES, "network": {"bind_address": "localhost:0", **files}}
    async with run_server(config, tmp_path) as server:
        await server.out.wait_for("applied in")
        load = Load(server.port, authority.cert_pem.bytes())
        running = asyncio.ensure_future(load.run())
        start = time.monotonic()
        for number in range(REPLACEMENTS):
            new = replace_pair(authority, tmp_path)
            await asyncio.to_thread(wait_until_served, server.port, new)
            if number == REPLACEMENTS // 2:
                (tmp_path / "cert.pem").write_text("broken")
                await server.out.wait_for("keeping the current certificate")
        took = time.monotonic() - start
        load.stop()
        await running
    print(
        f"{REPLACEMENTS} replacements in {took:.0f} s: {load.calls} calls over "
        f"{load.connections} connections, {len(load.failures)} failed"
    )
    assert load.failures == []
    assert load.calls > 10 * REPLACEMENTS

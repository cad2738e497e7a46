"""TLS on the public port, with real clients."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import trustme
from tests.contract.conftest import grpc_core
from tests.contract.test_listener import DEADLINE, MIB, SERVICE, Site, call_echo, serve_site
from tests.support.waiting import block, pass_time, wait_until

from cogwork.front.listener_limits import ListenerLimits
from cogwork.front.peer_name import digest_of
from cogwork.front.tls_socket import TlsSettings

__all__ = ["grpc_core"]


class Authority:
    def __init__(self, directory: Path) -> None:
        self._authority = trustme.CA()
        self._directory = directory
        directory.mkdir(exist_ok=True)
        self._count = 0

    def issue(self) -> Path:
        """Return a new file with a certificate and its key."""
        self._count += 1
        file = self._directory / f"{self._count}.pem"
        certificate = self._authority.issue_cert("localhost", "127.0.0.1")
        certificate.private_key_and_cert_chain_pem.write_to_path(str(file))
        return file

    def issue_client(self, name: str) -> tuple[bytes, bytes]:
        """Return the key and the certificate of a client."""
        issued = self._authority.issue_cert(name)
        chain = b"".join(each.bytes() for each in issued.cert_chain_pems)
        return issued.private_key_pem.bytes(), chain

    def write(self, file: Path) -> None:
        """Write the certificate of the authority."""
        self._authority.cert_pem.write_to_path(str(file))

    def client_context(self, *protocols: str) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self._authority.configure_trust(context)
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context

    def connect_grpc(self, port: int, own: tuple[bytes, bytes] | None = None) -> grpc.aio.Channel:
        """`own`: the key and the certificate of the client."""
        options = [
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_send_message_length", -1),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        credentials = grpc.ssl_channel_credentials(
            self._authority.cert_pem.bytes(), *(own or (None, None))
        )
        return grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials, options=options)

    def get(self, port: int, path: str = "/") -> tuple[int, bytes]:
        connection = HTTPSConnection(
            "127.0.0.1", port, timeout=DEADLINE, context=self.client_context()
        )
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    @contextlib.contextmanager
    def open(self, port: int, *protocols: str) -> Iterator[ssl.SSLSocket]:
        plain = socket.create_connection(("127.0.0.1", port), DEADLINE)
        with self.client_context(*protocols).wrap_socket(plain, server_hostname="127.0.0.1") as tls:
            yield tls


def request_plain(port: int, data: bytes) -> bytes:
    """Send bytes without TLS, and return what comes back."""
    with socket.create_connection(("127.0.0.1", port), DEADLINE) as plain:
        plain.sendall(data)
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while chunk := plain.recv(4096):
                received += chunk
        return received


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@contextlib.asynccontextmanager
async def serve_tls(
    authority: Authority, limits: ListenerLimits | None = None
) -> AsyncIterator[Site]:
    async with serve_site(limits) as site:
        site.front.use_tls(TlsSettings(authority.issue()))
        yield site


async def test_grpc_and_http_share_the_port(authority: Authority) -> None:
    async with serve_tls(authority) as site, authority.connect_grpc(site.port) as channel:
        for size in (0, 1, 16_384, 16_385, MIB, 20 * MIB):
            body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
            assert await call_echo(channel, body) == body
        status, body = await asyncio.to_thread(authority.get, site.port, "/a")
        assert (status, body.split()[:2]) == (200, [b"GET", b"/a"])


async def test_many_large_calls_at_once_arrive_intact(authority: Authority) -> None:
    async with serve_tls(authority) as site, authority.connect_grpc(site.port) as channel:
        bodies = [bytes([number]) * (MIB + number) for number in range(32)]
        assert await asyncio.gather(*(call_echo(channel, each) for each in bodies)) == bodies


async def test_slow_reader_gets_everything(authority: Authority) -> None:
    async with serve_tls(authority) as site, authority.connect_grpc(site.port) as channel:
        start: Any = channel.unary_stream(f"/{SERVICE}/Flood")
        received = 0
        async for message in start(b"\n\x0240", timeout=DEADLINE):
            received += len(message)
            await pass_time(0.005)
        assert received == 40 * MIB


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [(["h2"], "h2"), (["h2", "http/1.1"], "http/1.1"), (["http/1.1"], "http/1.1"), ([], None)],
)
async def test_browsers_get_http1_and_grpc_clients_http2(
    authority: Authority, offered: list[str], chosen: str | None
) -> None:
    def negotiate(port: int) -> str | None:
        with authority.open(port, *offered) as tls:
            return tls.selected_alpn_protocol()

    async with serve_tls(authority) as site:
        assert await asyncio.to_thread(negotiate, site.port) == chosen


async def test_old_tls_is_refused(authority: Authority) -> None:
    def connect(port: int) -> None:
        context = authority.client_context()
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers("ALL:@SECLEVEL=0")
        with socket.create_connection(("127.0.0.1", port), DEADLINE) as plain:
            context.wrap_socket(plain, server_hostname="127.0.0.1").close()

    async with serve_tls(authority) as site:
        with pytest.warns(DeprecationWarning, match="TLS"), pytest.raises(ssl.SSLError):
            await asyncio.to_thread(connect, site.port)
        assert (await asyncio.to_thread(authority.get, site.port))[0] == 200


async def test_plaintext_is_refused_with_a_hint(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve_tls(authority) as site:
        reply = await asyncio.to_thread(
            request_plain, site.port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
        )
        assert reply.startswith(b"HTTP/1.1 400 ")
        assert b"use https://" in reply
        assert await asyncio.to_thread(request_plain, site.port, b"PRI * HTTP/2.0\r\n\r\nSM") == b""
        assert "tried to connect without TLS" in caplog.text


async def test_client_that_does_not_trust_the_certificate_is_explained(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    def connect(port: int) -> None:
        with socket.create_connection(("127.0.0.1", port), DEADLINE) as plain:
            ssl.create_default_context().wrap_socket(plain, server_hostname="127.0.0.1")

    async with serve_tls(authority) as site:
        with caplog.at_level(logging.WARNING), pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.to_thread(connect, site.port)
        await wait_until(lambda: "check that the client trusts the authority" in caplog.text)


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"])
async def test_silent_handshakes_end(authority: Authority, sent: bytes) -> None:
    def wait_for_end(port: int) -> float:
        start = time.monotonic()
        with socket.create_connection(("127.0.0.1", port), DEADLINE) as plain:
            plain.sendall(sent)
            with contextlib.suppress(ConnectionResetError):
                assert plain.recv(100) == b""
        return time.monotonic() - start

    limits = ListenerLimits(peek_timeout=0.2, head_timeout=0.3)
    async with serve_tls(authority, limits) as site:
        assert await asyncio.to_thread(wait_for_end, site.port) < DEADLINE / 2
        await wait_until(lambda: site.front.connection_count == 0)


async def test_client_that_sends_nothing_after_the_handshake_is_closed(
    authority: Authority,
) -> None:
    def wait_for_end(port: int) -> bytes:
        with authority.open(port) as tls:
            return tls.recv(100)

    async with serve_tls(authority, ListenerLimits(head_timeout=0.3)) as site:
        assert await asyncio.to_thread(wait_for_end, site.port) == b""


async def test_requests_in_pieces_are_served(authority: Authority) -> None:
    def request(port: int) -> bytes:
        with authority.open(port) as tls:
            for piece in (
                b"G",
                b"ET /a HT",
                b"TP/1.1\r\nHost: x\r\n",
                b"Connection: close\r\n\r\n",
            ):
                tls.sendall(piece)
                block(0.02)
            received = b""
            while chunk := tls.recv(4096):
                received += chunk
            return received

    async with serve_tls(authority) as site:
        assert b"GET /a" in await asyncio.to_thread(request, site.port)


async def test_replaced_certificate_serves_new_connections_and_keeps_others(
    authority: Authority,
) -> None:
    def serial(port: int) -> str:
        with authority.open(port) as tls:
            found = tls.getpeercert()
            assert found is not None
            return str(found["serialNumber"])

    async with serve_tls(authority) as site, authority.connect_grpc(site.port) as channel:
        assert await call_echo(channel, b"1") == b"1"
        before = await asyncio.to_thread(serial, site.port)
        peer = await call_echo(channel, b"", method="Peer")
        site.front.use_tls(TlsSettings(authority.issue()))
        assert await asyncio.to_thread(serial, site.port) != before
        assert await call_echo(channel, b"", method="Peer") == peer


async def test_unusable_certificate_keeps_the_current_one(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve_tls(authority) as site:
        broken = tmp_path / "broken.pem"
        broken.write_text("no certificate")
        site.front.use_tls(TlsSettings(broken))
        assert "keeping the current one" in caplog.text
        assert (await asyncio.to_thread(authority.get, site.port))[0] == 200
        site.front.use_tls(None)
        with pytest.raises(ssl.SSLError):
            await asyncio.to_thread(authority.get, site.port)
        # Never plaintext instead of TLS.
        site.front.use_tls(TlsSettings(broken))
        assert "refusing all connections" in caplog.text
        reply = await asyncio.to_thread(request_plain, site.port, b"GET / HTTP/1.1\r\n\r\n")
        assert reply == b""


async def test_client_certificate_is_passed_on_to_the_servers(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Only a name that is accepted, in a certificate that the authority has signed."""
    ca = tmp_path / "ca.pem"
    authority.write(ca)
    stranger = Authority(tmp_path / "other")
    async with serve_site() as site:
        names = ("laptop.example", "desk.example")
        site.front.use_tls(TlsSettings(authority.issue(), ca, names))
        for name, expected in (
            ("laptop.example", digest_of("laptop.example")),
            ("DESK.example", digest_of("desk.example")),
            ("unknown.example", ""),
            (None, ""),
        ):
            own = authority.issue_client(name) if name is not None else None
            async with authority.connect_grpc(site.port, own) as channel:
                found = await call_echo(channel, b"", method="Certificate")
                assert found.decode() == expected
        own = stranger.issue_client("laptop.example")
        async with authority.connect_grpc(site.port, own) as channel:
            call: Any = channel.unary_unary(f"/{SERVICE}/Echo")
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call(b"", timeout=DEADLINE)
            assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
    assert "presented a certificate that is not accepted" in caplog.text

"""Commands recognize a port that expects TLS."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator

import pytest
from tests.unit.cli.client.test_http_client import serve_reply

from cogwork.cli.client.grpc_client import list_resources, with_channel
from cogwork.cli.client.http_client import Unreachable, fetch_status
from cogwork.cli.client.tls_probe import expects_tls


@pytest.fixture
def tls_port() -> Iterator[int]:
    """The port of a TLS server. It needs no certificate, because its ciphers are anonymous."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ADH-AES128-SHA256:@SECLEVEL=0")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_accept, args=(listener, context))
        thread.start()
        yield listener.getsockname()[1]
        # On Linux, this ends a blocking accept.
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def _accept(listener: socket.socket, context: ssl.SSLContext) -> None:
    with contextlib.suppress(OSError):
        while True:
            accepted, _ = listener.accept()
            with accepted, contextlib.suppress(OSError):
                context.wrap_socket(accepted, server_side=True).close()


def test_tls_port_is_recognized(tls_port: int) -> None:
    assert expects_tls("127.0.0.1", tls_port)


def test_plaintext_and_closed_ports_are_not_tls() -> None:
    with serve_reply(200, "hello") as address:
        port = int(address.rpartition(":")[2])
        assert not expects_tls("127.0.0.1", port)
    assert not expects_tls("127.0.0.1", port)


def test_http_command_reports_a_tls_port(tls_port: int) -> None:
    with pytest.raises(Unreachable, match="the port uses TLS; write https:// before the address"):
        fetch_status(f"127.0.0.1:{tls_port}")


def test_grpc_command_reports_a_tls_port(tls_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    address = f"127.0.0.1:{tls_port}"
    assert with_channel(address, lambda channel: len(list_resources(channel))) == 2
    assert "the port uses TLS" in capsys.readouterr().err

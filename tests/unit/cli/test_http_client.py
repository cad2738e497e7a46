"""Errors of commands when a machine answers unexpectedly."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from cogwork.cli.http_client import Declined, Unreachable, fetch_status


@contextmanager
def serve_reply(status: int, text: str) -> Iterator[str]:
    """Yield the address of a server that always gives the same reply."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        thread.join(10)


@pytest.mark.parametrize("status", [400, 403, 421, 503])
def test_refusal_of_a_machine_is_passed_on(status: int) -> None:
    with serve_reply(status, "add the name to network.allowed_hosts\n") as address:
        with pytest.raises(Declined) as caught:
            fetch_status(address)
        assert str(caught.value) == "add the name to network.allowed_hosts"


def test_server_that_is_not_a_machine_is_reported() -> None:
    with serve_reply(404, "nothing") as address, pytest.raises(Unreachable, match="404"):
        fetch_status(address)

"""Errors of commands when a machine answers unexpectedly."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from cogwork.cli.client.http_client import Declined, NotCogwork, fetch_status, stream_log_lines


@contextmanager
def serve_reply(status: int, text: str, kind: str = "text/plain; charset=utf-8") -> Iterator[str]:
    """Yield the address of a server that always gives the same reply."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(10)


@pytest.mark.parametrize("status", [400, 403, 421, 503])
def test_refusal_of_a_machine_is_passed_on(status: int) -> None:
    with serve_reply(status, "add the name to network.allowed_hosts\n") as address:
        with pytest.raises(Declined) as caught:
            fetch_status(address)
        assert str(caught.value) == "add the name to network.allowed_hosts"


def test_login_that_is_missing_is_asked_for() -> None:
    with (
        serve_reply(401, "authentication required\n") as address,
        pytest.raises(Declined, match="authentication required; set COGWORK_API_KEY_ID and"),
    ):
        fetch_status(address)


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (404, "nothing", "text/plain"),
        (400, "", "text/plain"),
        (400, '{"code": 3}', "application/json"),
        (403, "<h1>Forbidden</h1>", "text/html"),
        (200, "<h1>Welcome</h1>", "text/html"),
        (200, "[]", "application/json"),
        (200, "{", "application/json"),
        (500, "sorry", "text/plain"),
    ],
)
def test_answer_of_another_server_is_told_from_a_refusal(status: int, text: str, kind: str) -> None:
    with serve_reply(status, text, kind) as address, pytest.raises(NotCogwork) as caught:
        fetch_status(address)
    assert "not a Cogwork server" in str(caught.value)


def test_page_is_no_log() -> None:
    with serve_reply(200, "hello", "text/html") as address, pytest.raises(NotCogwork):
        list(stream_log_lines(address, {}))

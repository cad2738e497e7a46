"""Joining a cloud with a claim code, over real connections to this computer."""

from __future__ import annotations

import http.server
import json
import os
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from cogwork.agent.errors import CannotJoin
from cogwork.agent.joining import redeem, write_credentials
from cogwork.wire.messages.claim_method import CLAIM_PATH

CREDENTIALS = {"cloud": {"id": "part", "secret": "s", "app_address": "https://fleet.test"}}


class Handler(http.server.BaseHTTPRequestHandler):
    status, body = 200, json.dumps(CREDENTIALS).encode()
    requests: list[tuple[str, Any]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append((self.path, body))
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None: ...


class Cloud:
    def __init__(self) -> None:
        self.handler: type[Handler] = type("Served", (Handler,), {"requests": []})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler)
        self.address = f"127.0.0.1:{self.server.server_port}"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self._thread.start()

    def reply(self, body: Any, status: int = 200) -> None:
        text = body if isinstance(body, str) else json.dumps(body)
        self.handler.body, self.handler.status = text.encode(), status

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    made = Cloud()
    yield made
    made.close()


def test_code_is_exchanged_for_credentials(cloud: Cloud) -> None:
    assert redeem(f"http://{cloud.address}/", "ABC-123") == CREDENTIALS
    assert cloud.handler.requests == [(CLAIM_PATH, {"code": "ABC-123"})]


def test_certificate_of_the_cloud_is_verified(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    cloud.server.socket = context.wrap_socket(cloud.server.socket, server_side=True)
    with pytest.raises(CannotJoin, match=r"not trusted: .*set SSL_CERT_FILE to its ca\.pem"):
        redeem(cloud.address, "code")
    assert cloud.handler.requests == []
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    assert redeem(cloud.address, "code") == CREDENTIALS


@pytest.mark.parametrize("url", ["http://fleet.test", "http://192.0.2.7:8080"])
def test_credentials_do_not_travel_unencrypted(url: str) -> None:
    with pytest.raises(CannotJoin, match="would be sent unencrypted; use https://"):
        redeem(url, "code")


@pytest.mark.parametrize("url", ["", "https://", "ftp://fleet.test"])
def test_address_that_is_none(url: str) -> None:
    with pytest.raises(CannotJoin, match="is not the address of a cloud"):
        redeem(url, "code")


def test_cloud_says_why_it_refuses(cloud: Cloud) -> None:
    cloud.reply({"message": "the code has expired"}, 403)
    with pytest.raises(CannotJoin, match=r"^the code has expired$"):
        redeem(f"http://{cloud.address}", "code")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("<html>", 404),
        ({}, 500),
        ([], 200),
        ({"cloud": {"id": "part"}}, 200),
        ({"cloud": {"id": "part", "secret": ""}}, 200),
    ],
)
def test_other_servers_are_no_cloud(cloud: Cloud, body: Any, status: int) -> None:
    cloud.reply(body, status)
    with pytest.raises(CannotJoin, match=rf"is not a Cogwork cloud \(HTTP status {status}\)"):
        redeem(f"http://{cloud.address}", "code")


def test_cloud_that_does_not_answer(cloud: Cloud) -> None:
    closed = Cloud()
    closed.close()
    with pytest.raises(CannotJoin, match="does not answer"):
        redeem(f"http://{closed.address}", "code")


def test_credentials_are_private_and_belong_to_the_server(tmp_path: Path) -> None:
    file = tmp_path / "cogwork" / "machine.json"
    write_credentials(file, CREDENTIALS)
    assert json.loads(file.read_bytes()) == CREDENTIALS
    assert file.stat().st_mode & 0o077 == 0
    if os.geteuid() == 0:
        os.chown(file, 4711, 4712)
        write_credentials(file, CREDENTIALS)
        assert (file.stat().st_uid, file.stat().st_gid) == (4711, 4712)
        file.unlink()
        os.chown(file.parent, 4713, 4714)
        write_credentials(file, CREDENTIALS)
        assert (file.stat().st_uid, file.stat().st_gid) == (4713, 4714)

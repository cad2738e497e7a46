"""Questions to a server on this computer, over real sockets."""

from __future__ import annotations

import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from cogwork.agent.errors import ServerSilent
from cogwork.agent.supervision.probe import ServerAnswer, ServerProbe

PROCESS = 4711
ANSWER: dict[str, Any] = {"version": "1.0.0", "restart_allowed": True, "reason": "nothing moves"}


class Handler(http.server.BaseHTTPRequestHandler):
    status = 200
    body = json.dumps(ANSWER).encode()

    def do_GET(self) -> None:
        assert self.path == "/restart_status"
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None: ...


class Machine:
    def __init__(self, directory: Path, *, is_encrypted: bool) -> None:
        self.file = directory / "serving.json"
        self.probe = ServerProbe(self.file)
        self.handler: type[Handler] = type("Served", (Handler,), {})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler)
        if is_encrypted:
            # The certificate is for another name, as that of a machine is.
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            trustme.CA().issue_cert("press.hall.test").configure_cert(context)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        scheme = "https" if is_encrypted else "http"
        self.url = f"{scheme}://127.0.0.1:{self.server.server_port}"
        self.write(pid=PROCESS, url=self.url)
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self._thread.start()

    def write(self, **serving: Any) -> None:
        self.file.write_text(json.dumps(serving))

    def reply(self, body: object, status: int = 200) -> None:
        self.handler.body, self.handler.status = json.dumps(body).encode(), status

    def close(self) -> None:
        if self._thread.is_alive():
            self.server.shutdown()
            self.server.server_close()
            self._thread.join()


@pytest.fixture(params=[False, True], ids=["http", "https"])
def machine(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Machine]:
    made = Machine(tmp_path, is_encrypted=request.param)
    yield made
    made.close()


async def test_server_says_its_version_and_whether_it_may_restart(machine: Machine) -> None:
    assert await machine.probe.ask(PROCESS) == ServerAnswer("1.0.0", True, "nothing moves")


@pytest.mark.parametrize("allowed", [False, None, 1, "true"])
async def test_only_true_allows_a_restart(machine: Machine, allowed: object) -> None:
    machine.reply({**ANSWER, "restart_allowed": allowed})
    assert not (await machine.probe.ask(PROCESS)).restart_allowed


@pytest.mark.parametrize("process_id", [None, PROCESS + 1])
async def test_address_of_another_process_is_not_asked(
    machine: Machine, process_id: int | None
) -> None:
    with pytest.raises(ServerSilent, match="is not ready yet"):
        await machine.probe.ask(process_id)


async def test_address_is_forgotten(machine: Machine) -> None:
    machine.probe.forget()
    machine.probe.forget()
    with pytest.raises(ServerSilent, match="is not ready yet"):
        await machine.probe.ask(PROCESS)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"url": "http://x", "pid": "x"}', '{"pid": 1}'])
async def test_address_that_cannot_be_read(machine: Machine, text: str) -> None:
    machine.file.write_text(text)
    with pytest.raises(ServerSilent, match="address of the server cannot be read"):
        await machine.probe.ask(PROCESS)


@pytest.mark.parametrize(
    ("body", "status"),
    [(ANSWER, 503), ([], 200), ({}, 200), ("x", 200), ({"version": "1"}, 200)],
)
async def test_answer_that_is_none(machine: Machine, body: object, status: int) -> None:
    machine.reply(body, status)
    with pytest.raises(ServerSilent, match="does not answer"):
        await machine.probe.ask(PROCESS)


async def test_server_that_is_gone(machine: Machine) -> None:
    machine.close()
    with pytest.raises(ServerSilent, match="does not answer"):
        await machine.probe.ask(PROCESS)


async def test_server_that_hangs(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cogwork.agent.supervision.probe.TIMEOUT", 0.05)
    release = threading.Event()
    monkeypatch.setattr(machine.handler, "do_GET", lambda _: release.wait(10))
    try:
        with pytest.raises(ServerSilent, match=r"within 0\.05 s|timed out"):
            await machine.probe.ask(PROCESS)
    finally:
        release.set()

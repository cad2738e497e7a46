"""A page of another site in a real browser learns nothing about the machine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from tests.support.machine.running import run_server
from viam.gen.component.motor.v1.motor_pb2 import IsPoweredResponse

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DEADLINE = 60.0
CAMERA = {"name": "cam", "api": "rdk:component:camera", "model": "fake"}
MOTOR = {"name": "m", "api": "rdk:component:motor", "model": "fake"}
ATTEMPTS = (
    *("picture", "cors", "opaque", "post", "script", "call omit", "call include", "simple call"),
    *("login", "events", "web socket"),
)
PAGE = """<!doctype html><title>elsewhere</title><pre id=seen></pre><script>
const seen = {}, machine = "http://localhost:PORT";
const tell = (what, came) => {
  seen[what] = came;
  document.getElementById("seen").textContent = "SEEN " + JSON.stringify(seen);
};
const picture = new Image();
picture.onload = () => tell("picture", "shown");
picture.onerror = () => tell("picture", "refused");
picture.src = machine + "/camera/cam";
for (const [what, mode] of [["cors", "cors"], ["opaque", "no-cors"]])
  fetch(machine + "/status.json", {mode})
    .then(() => tell(what, "read"), () => tell(what, "refused"));
fetch(machine + "/status.json", {method: "POST", mode: "no-cors", body: "x"})
  .then(() => tell("post", "sent"), () => tell("post", "refused"));
const call = machine + "/viam.component.motor.v1.MotorService/SetPower";
const type = "application/grpc-web+proto";
// The motor "m" with power 1.
const body = new Uint8Array([0, 0, 0, 0, 12, 10, 1, 109, 17, 0, 0, 0, 0, 0, 0, 240, 63]);
for (const credentials of ["omit", "include"])
  fetch(call, {method: "POST", headers: {"content-type": type}, body, credentials})
    .then(() => tell("call " + credentials, "sent"), () => tell("call " + credentials, "refused"));
fetch(call, {method: "POST", mode: "no-cors", body: new Blob([body], {type})})
  .then(() => tell("simple call", "sent"), () => tell("simple call", "refused"));
fetch(machine + "/rpc/v1/authenticate", {method: "POST", body: "{}"})
  .then(() => tell("login", "sent"), () => tell("login", "refused"));
const events = new EventSource(machine + "/logs.jsonl?follow");
events.onopen = () => tell("events", "open");
events.onerror = () => { tell("events", "refused"); events.close(); };
const web_socket = new WebSocket(machine.replace("http", "ws") + "/");
web_socket.onopen = () => tell("web socket", "open");
web_socket.onerror = () => tell("web socket", "refused");
const frame = document.createElement("iframe");
frame.name = "target";
document.body.append(frame);
const form = document.createElement("form");
Object.assign(form, {action: call, method: "post", enctype: "text/plain", target: "target"});
document.body.append(form);
form.submit();
const script = document.createElement("script");
script.src = machine + "/history.json";
script.onload = () => tell("script", "run");
script.onerror = () => tell("script", "refused");
document.body.append(script);
</script>"""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed")


@contextlib.asynccontextmanager
async def serve_site(page: str) -> AsyncIterator[int]:
    """Yield the port of a web site with one page."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\n"
            writer.write(f"{head}Connection: close\r\n\r\n{page}".encode())
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


async def visit(url: str, profile: Path) -> str:
    """Return the document that a browser has a few seconds after it opened the address."""
    assert CHROMIUM is not None
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
    process = await asyncio.create_subprocess_exec(
        CHROMIUM,
        *options,
        f"--user-data-dir={profile}",
        "--virtual-time-budget=4000",
        "--dump-dom",
        url,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(DEADLINE):
            document, _ = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    return document.decode()


async def test_page_of_another_site_is_refused(tmp_path: Path) -> None:
    async with run_server({"components": [CAMERA, MOTOR]}, tmp_path) as server:
        await server.wait_for_status(state="running")
        async with serve_site(PAGE.replace("PORT", str(server.port))) as port:
            document = await visit(f"http://127.0.0.1:{port}/", tmp_path / "profile")
        found = re.search(r"SEEN (.*?)</pre>", document, re.DOTALL)
        assert found is not None, document
        seen = json.loads(found[1])
        assert seen == dict.fromkeys(ATTEMPTS, "refused")
        assert not await is_powered(server.port)


async def is_powered(port: int) -> bool:
    async with grpc.aio.insecure_channel(f"localhost:{port}") as channel:
        call: Any = channel.unary_unary(
            "/viam.component.motor.v1.MotorService/IsPowered",
            response_deserializer=IsPoweredResponse.FromString,
        )
        return bool((await call(b"\n\x01m", timeout=60)).is_on)


async def test_page_of_an_allowed_origin_may_call(tmp_path: Path) -> None:
    """The same page, whose calls are allowed, while everything else stays refused."""
    async with run_server({"components": [CAMERA, MOTOR]}, tmp_path) as server:
        await server.wait_for_status(state="running")
        async with serve_site(PAGE.replace("PORT", str(server.port))) as port:
            network = {
                "bind_address": "localhost:0",
                "allowed_origins": [f"http://127.0.0.1:{port}"],
            }
            since = len(server.out.lines)
            server.save({"components": [CAMERA, MOTOR], "network": network})
            await server.out.wait_for("applied in", since=since)
            document = await visit(f"http://127.0.0.1:{port}/", tmp_path / "profile")
        found = re.search(r"SEEN (.*?)</pre>", document, re.DOTALL)
        assert found is not None, document
        seen = json.loads(found[1])
        allowed = {name for name, outcome in seen.items() if outcome != "refused"}
        assert allowed == {"call omit", "login"}
        assert await is_powered(server.port)


async def test_plain_page_shows_the_camera(tmp_path: Path) -> None:
    """Its content security policy allows its style, script and images."""
    async with run_server({"components": [CAMERA]}, tmp_path) as server:
        await server.wait_for_status(state="running")
        document = await visit(f"http://localhost:{server.port}/status", tmp_path / "profile")
    # The script requests the next image when one has loaded.
    assert re.search(r'<img src="[^"]*/camera/cam\?\d+', document) is not None, document

"""Canaries in every place for a secret appear in no output, unless an option reveals them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from tests.support.machine.running import DEADLINE, Server, save, start_server
from tests.support.waiting import pass_time

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.common.v1.common_pb2 import LogEntry  # noqa: E402
from viam.gen.robot.v1.robot_pb2 import LogRequest  # noqa: E402

CANARY = "canary-7f3a"
KEY_ID = "id1"
ENVIRONMENT = {"SUBSTITUTED": f"{CANARY}-substituted", "FILLED": f"{CANARY}-filled"}


def secret(place: str) -> str:
    return f"{CANARY}-{place}"


def config(bind_address: str = "localhost:0") -> dict[str, Any]:
    return {
        "network": {"bind_address": bind_address},
        "cloud": {
            "id": "part",
            "secret": secret("cloud"),
            "api_key": {"id": "key", "key": secret("api-key")},
            "location_secret": secret("location"),
            "location_secrets": [{"id": "one", "secret": secret("locations")}],
            "tls_certificate": secret("certificate"),
            "tls_private_key": secret("private-key"),
        },
        "remotes": [
            {
                "name": "far",
                "address": "far.local:8080",
                "secret": secret("remote"),
                "auth": {"credentials": {"type": "api-key", "payload": secret("payload")}},
            }
        ],
        "modules": [
            {
                "name": "acme",
                "type": "registry",
                "module_id": "acme:acme",
                "env": {"ACME_TOKEN": secret("module")},
            }
        ],
        "processes": [{"id": "p", "name": "true", "env": {"PASSWORD": secret("process")}}],
        "components": [
            {
                "name": "s",
                "api": "rdk:component:sensor",
                "model": "fake",
                "attributes": {
                    "readings": {
                        "password": secret("attribute"),
                        "api_key": "$SUBSTITUTED",
                        "access_token": "${environment.FILLED}",
                    }
                },
            }
        ],
    }


def changes() -> list[Any]:
    """Return changes and mistakes that somebody may make in such a file."""
    replaced = json.loads(json.dumps(config()).replace(CANARY, f"{CANARY}-new"))
    misspelled = config()
    misspelled["cloud"]["secrt"] = misspelled["cloud"].pop("secret")
    locked = config()
    locked["auth"] = {
        "handlers": [{"type": "api-key", "config": {KEY_ID: secret("handler"), "keys": [KEY_ID]}}]
    }
    mistyped = json.loads(json.dumps(locked))
    mistyped["auth"]["handlers"][0]["config"]["keys"] = secret("listed")
    broken = json.dumps(config(), indent=1)[:-40]
    return [replaced, misspelled, locked, mistyped, broken, config()]


def log_in(server: Server) -> dict[str, str]:
    """Return the header of a client that has logged in; none if no login is required."""
    credentials = {"type": "api-key", "payload": secret("handler")}
    body = json.dumps({"entity": KEY_ID, "credentials": credentials})
    status, text = request(server, "POST", "/rpc/v1/authenticate", body)
    if status == 404:
        return {}
    assert status == 200, text
    return {"authorization": f"Bearer {json.loads(text)['accessToken']}"}


def request(
    server: Server, method: str, path: str, body: str = "", headers: Mapping[str, str] | None = None
) -> tuple[int, str]:
    connection = HTTPConnection("localhost", server.port, timeout=DEADLINE)
    try:
        connection.request(method, path, body, dict(headers or {}))
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


async def get(server: Server, path: str) -> str:
    for _ in range(5):
        header = await asyncio.to_thread(log_in, server)
        status, text = await asyncio.to_thread(request, server, "GET", path, headers=header)
        if status == 200:
            return text
        # The login became required, or its key changed, between the two requests.
        await pass_time(0.1)
    raise AssertionError(f"{status}: {text}")


async def log_secrets(server: Server) -> None:
    """Log the secrets, as a client that knows them may do."""
    metadata = tuple((await asyncio.to_thread(log_in, server)).items())
    entries = [
        LogEntry(level="info", logger_name="talker", message=f"I know {secret('cloud')}"),
        LogEntry(level="error", logger_name="talker", message=ENVIRONMENT["FILLED"]),
    ]
    async with grpc.aio.insecure_channel(f"localhost:{server.port}") as channel:
        call: Any = channel.unary_unary("/viam.robot.v1.RobotService/Log")
        message = LogRequest(logs=entries).SerializeToString()
        await call(message, timeout=DEADLINE, metadata=metadata)


@pytest.mark.parametrize("log", ["machine.log", "machine.jsonl", None])
async def test_no_output_shows_a_secret(tmp_path: Path, log: str | None) -> None:
    seen = await _collect_outputs(tmp_path, log, "-debug")
    assert "I know ***" in seen["/logs.jsonl"]
    assert "(secret changed)" in seen["/logs.jsonl"]
    assert _lines_with_canaries(seen) == {}


@pytest.mark.parametrize("log", ["machine.log", None])
async def test_revealed_diffs_are_only_in_the_local_log(tmp_path: Path, log: str | None) -> None:
    seen = await _collect_outputs(tmp_path, log, "-debug", "-reveal-sensitive-config-diffs")
    local = log or "standard output"
    shown = _lines_with_canaries(seen)
    assert set(shown) == {local}
    assert all(line.startswith("    ") for line in shown[local]), "outside of a diff"
    for change in ("-", "+"):
        assert any(line.startswith(f"    {change}") for line in shown[local])
    where = "the log file" if log else "standard output"
    assert f"secrets are written to {where}" in seen["/logs.jsonl"]


async def _collect_outputs(tmp_path: Path, log: str | None, *more: str) -> dict[str, str]:
    """Run a server through the changes, and return the text of every output."""
    file = tmp_path / "machine.json"
    home = tmp_path / "home"
    save(file, config())
    options = ["-config", str(file), *more]
    options += ["-log-file", str(tmp_path / log)] if log is not None else []
    seen: dict[str, str] = {}
    async with start_server(options, {"COGWORK_HOME": str(home), **ENVIRONMENT}) as server:
        await server.wait_until_serving()
        await server.wait_for_status(state="running")
        await log_secrets(server)
        for number, change in enumerate(changes()):
            save(file, change)
            await _wait_for_changes(server, number + 1)
            await log_secrets(server)
        for path in ("/status", "/status.json", "/logs.jsonl", "/history.json"):
            seen[path] = await get(server, path)
        server.process.terminate()
        assert await server.exit_code() == 0
        seen |= {"standard output": server.out.text, "standard error": server.err.text}
    for output in (*tmp_path.glob("machine*.log"), *tmp_path.glob("machine*.jsonl")):
        seen[output.name] = output.read_text()
    for journal in (home / "journal").iterdir():
        seen[journal.name] = journal.read_text()
    return seen


def _lines_with_canaries(seen: dict[str, str]) -> dict[str, list[str]]:
    return {
        name: [line for line in text.splitlines() if CANARY in line]
        for name, text in seen.items()
        if CANARY in text
    }


async def _wait_for_changes(server: Server, changes: int) -> None:
    """Each change is either applied or refused, and the log says so."""
    said = 0
    for _ in range(int(DEADLINE / 0.05)):
        text = await get(server, "/logs.jsonl")
        said = text.count(" applied in ") + text.count("configuration is refused")
        if said > changes:
            return
        await pass_time(0.05)
    raise AssertionError(f"{said} of {changes + 1} configurations were noticed")

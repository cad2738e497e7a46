"""A file that requires a login is never served without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.machine.running import http_get, run_server, with_free_port
from tests.support.machine.watched import FAKES

KEYS = {"handlers": [{"type": "api-key", "config": {"keys": ["id1"], "id1": "planted-key"}}]}
UNCHECKED = {"tls_auth_entities": ["robot.example"]}


async def is_locked(port: int) -> bool:
    return (await http_get("localhost", port, "/status.json"))[0] == 401


async def test_server_that_cannot_protect_the_machine_refuses_to_start(tmp_path: Path) -> None:
    config = {**FAKES, "auth": UNCHECKED}
    async with run_server(config, tmp_path, exits=1, serves=False) as server:
        assert await server.exit_code() == 1
    assert (
        "refusing to start: /auth/tls_auth_entities enables client certificates" in server.out.text
    )
    assert "serving" not in server.out.text


async def test_last_good_config_without_login_is_not_served_instead(tmp_path: Path) -> None:
    async with run_server(FAKES, tmp_path) as server:
        await server.out.wait_for("applied in")
    config = {**FAKES, "auth": UNCHECKED}
    async with run_server(config, tmp_path, exits=1, serves=False) as server:
        assert await server.exit_code() == 1
    assert "serving" not in server.out.text


async def test_mistyped_login_prevents_the_start_without_one(tmp_path: Path) -> None:
    async with run_server(FAKES, tmp_path) as server:
        await server.out.wait_for("applied in")
    config = {**FAKES, "auth": {"handlrs": KEYS["handlers"]}}
    async with run_server(config, tmp_path, exits=1, serves=False) as server:
        assert await server.exit_code() == 1
    assert (
        "refusing to start without the login that the file requires: unknown key" in server.out.text
    )
    assert "serving" not in server.out.text
    assert "planted-key" not in server.output


async def test_login_is_required_from_the_first_connection_on(tmp_path: Path) -> None:
    async with run_server({**FAKES, "auth": KEYS}, tmp_path) as server:
        assert await is_locked(server.port)
    assert "planted-key" not in server.output


async def test_running_machine_requires_the_login_of_a_change(tmp_path: Path) -> None:
    async with run_server(FAKES, tmp_path) as server:
        await server.wait_for_status(state="running")
        since = len(server.out.lines)
        server.save({**with_free_port(FAKES), "auth": KEYS})
        await server.out.wait_for("applied in", since=since)
        assert await is_locked(server.port)


BROKEN: list[dict[str, Any]] = [
    {"handlers": "api-key"},
    {"handlrs": []},
    {"handlers": [{**KEYS["handlers"][0], "role": {"id1": "viewer"}}]},
]


@pytest.mark.parametrize("broken", BROKEN)
async def test_broken_login_keeps_the_machine_locked(
    tmp_path: Path, broken: dict[str, Any]
) -> None:
    async with run_server({**FAKES, "auth": KEYS}, tmp_path) as server:
        await server.out.wait_for("applied in")
        server.save({**with_free_port(FAKES), "auth": broken})
        await server.out.wait_for("the changed configuration is refused")
        assert await is_locked(server.port)
    # It stays so after a restart, with the last good configuration.
    async with run_server({**FAKES, "auth": broken}, tmp_path) as server:
        assert await is_locked(server.port)
    assert "planted-key" not in server.output

"""A file that requires login or TLS is never served without them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.fault.watched import FAKES
from tests.running import run_server, save, with_free_port

KEYS = {"handlers": [{"type": "api-key", "config": {"keys": ["id1"], "id1": "planted-key"}}]}
CERTIFICATE = {"tls_cert_file": "/etc/hostname", "tls_key_file": "/etc/hostname"}
REASONS = [
    ({"auth": KEYS}, "login is configured at /auth"),
    ({"auth": {"handlers": "api-key"}}, "login is configured at /auth"),
    ({"network": CERTIFICATE}, "TLS is configured at /network/tls_cert_file"),
]


@pytest.mark.parametrize(("asks", "reason"), REASONS, ids=["keys", "broken", "certificate"])
async def test_server_with_login_or_tls_refuses_to_start(
    tmp_path: Path, asks: dict[str, Any], reason: str
) -> None:
    async with run_server({**FAKES, **asks}, tmp_path, exits=1, serves=False) as server:
        assert await server.exit_code() == 1
    assert f"refusing to start: {reason}" in server.out.text
    assert "but this release does not support it; remove" in server.out.text
    assert "serving" not in server.out.text
    assert "planted-key" not in server.output


async def test_last_good_config_is_not_served_instead(tmp_path: Path) -> None:
    async with run_server(FAKES, tmp_path) as server:
        await server.out.wait_for("applied in")
    async with run_server({**FAKES, "auth": KEYS}, tmp_path, exits=1, serves=False) as server:
        assert await server.exit_code() == 1
    assert "serving" not in server.out.text


async def test_running_machine_refuses_a_change_that_requires_login(tmp_path: Path) -> None:
    async with run_server(FAKES, tmp_path) as server:
        before = await server.wait_for_status(state="running")
        locked = {**with_free_port(FAKES), "components": [], "auth": KEYS}
        save(server.file, json.dumps(locked))
        await server.out.wait_for("login is configured at /auth.*E405")
        await server.out.wait_for("the changed configuration is refused")
        after = await server.status()
        assert len(after["resources"]) == len(before["resources"])
        assert after["state"] == "running"

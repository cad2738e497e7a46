"""Copies of configurations are purged of logins of the cloud when a machine starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from cogwork.config.source.config_history import config_history_for
from cogwork.config.source.last_good import last_good_for
from cogwork.core.clock import ManualClock
from cogwork.server.cloud_membership import CloudMembership
from cogwork.serving.log import ServerLog
from cogwork.serving.shutdown import Shutdown

CLOUD = {"id": "part-1", "secret": "own", "app_address": "https://fleet.test:443"}
JOINED = {
    "cloud": {**CLOUD, "fqdn": "press.fleet.test"},
    "auth": {"handlers": [{"type": "api-key", "config": {"k1": "secret of the cloud"}}]},
}


def ignore(*_: Any) -> None:
    pass


async def purge(home: Path, own: dict[str, Any], copy: str) -> str | None:
    """Start a machine with its own file and a last good copy; return what is left of the copy."""
    config_file = home / "machine.json"
    config_file.write_text(json.dumps(own))
    joining = CloudMembership(
        config_file,
        home,
        {},
        cast("ServerLog", None),
        cast("Shutdown", None),
        ManualClock(),
        allow_plaintext=False,
        on_certificate=ignore,
        on_access=ignore,
    )
    last_good = last_good_for(home, config_file)
    last_good.save(copy)
    await joining.purge_logins([last_good], config_history_for(home, config_file))
    return last_good.read()


async def test_last_good_copy_is_purged_without_a_message_of_the_cloud(tmp_path: Path) -> None:
    left = await purge(tmp_path, {"cloud": CLOUD}, json.dumps(JOINED))
    assert left is not None
    assert "secret of the cloud" not in left


async def test_last_good_copy_is_purged_after_the_machine_has_left(tmp_path: Path) -> None:
    (tmp_path / "joined").mkdir()
    left = await purge(tmp_path, {}, json.dumps(JOINED))
    assert left is not None
    assert "secret of the cloud" not in left


async def test_machine_without_a_cloud_keeps_its_copy(tmp_path: Path) -> None:
    assert await purge(tmp_path, {}, json.dumps(JOINED)) == json.dumps(JOINED)
    assert not (tmp_path / "joined").exists()


@pytest.mark.parametrize("own", [{"cloud": [CLOUD]}, {"cloud": {"id": ""}}, ["app_address"]])
async def test_machine_starts_although_copies_cannot_be_purged(
    tmp_path: Path, own: Any, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "joined").mkdir()
    await purge(tmp_path, own, json.dumps(JOINED))
    assert "cannot remove cloud logins" in caplog.text

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.control.asgi import send_body, send_request
from tests.unit.robot.bench import NO_LOGIN, NO_SITE, Bench
from tests.unit.robot.conftest import bench

from cogwork.control.http import MachineApp
from cogwork.logs.ring_buffer import RingBuffer
from cogwork.robot.event_journal import EventJournal
from cogwork.wire.transports.asgi import Application

__all__ = ["bench"]

OWN_PAGE = {"origin": "http://localhost:8080", "content-type": "application/json"}


@pytest.fixture
async def site(bench: Bench, tmp_path: Path) -> AsyncIterator[Application]:
    """A machine whose configuration is not a file of its own."""
    journal = EventJournal(tmp_path / "journal.jsonl", bench.clock)
    yield MachineApp(
        bench.machine,
        bench.report,
        bench.clock,
        RingBuffer(),
        journal,
        NO_LOGIN,
        bench.table,
        NO_SITE,
    )
    journal.close()


async def test_configuration_from_elsewhere_cannot_be_edited(site: Application) -> None:
    answer = await send_request(site, "/configuration.json")
    assert answer.status == 200
    found = json.loads(answer.body)
    assert (found["editable"], found["text"], found["checksum"]) == (False, "", "")
    assert found["reason"].startswith("the configuration of this machine is not a file of its own")
    for path in ("/configuration/check", "/configuration/save"):
        answer = await send_body(site, path, b"{}", headers=OWN_PAGE)
        assert (answer.status, answer.body.count(b"\n")) == (409, 1)
    for path in ("/configuration/history.json", "/configuration/history/1.json"):
        assert (await send_request(site, path)).status == 409

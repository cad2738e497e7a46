"""`cogwork status` of a machine that does not allow maintenance, or whose updates wait."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Sequence
from typing import Any

import pytest

from cogwork.cli.machine import status


def print_status(
    denied: dict[str, Any] | None,
    monkeypatch: pytest.MonkeyPatch,
    updates: Sequence[dict[str, Any]] = (),
) -> int:
    view: dict[str, Any] = {
        "state": "running",
        "revision": "1",
        "applied_at": None,
        "resources": [],
        "maintenance_denied": denied,
        "updates": updates,
    }
    monkeypatch.setattr(status, "fetch_view", lambda _: view)
    return status.status(argparse.Namespace(history=None, json=False, unhealthy=False, address="x"))


def test_denial_is_shown_below_the_summary(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    denied = {"reason": '"idle" of safe is false', "since": time.time() - 3600}
    assert print_status(denied, monkeypatch) == 0
    _, line = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r'maintenance not allowed for 1h0m\d+s: "idle" of safe is false', line)


def test_nothing_is_shown_without_a_denial(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert print_status(None, monkeypatch) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_updates_are_shown_with_their_reasons(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hour_ago = time.time() - 3600
    updates = [
        {"product": "server", "version": "2.0", "phase": phase, "detail": why, "since": hour_ago}
        for phase, why in (("waiting", "it is busy"), ("failed", "it crashed"), ("switching", ""))
    ]
    assert print_status(None, monkeypatch, updates) == 0
    _, waiting, failed, switching = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"server 2\.0 is waiting for 1h0m\d+s: it is busy", waiting)
    assert re.fullmatch(r"server 2\.0 failed 1h0m\d+s ago: it crashed", failed)
    assert re.fullmatch(r"server 2\.0 is switching for 1h0m\d+s", switching)

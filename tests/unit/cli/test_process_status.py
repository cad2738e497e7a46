"""`cogwork status` of a machine with processes."""

from __future__ import annotations

import argparse
import time
from typing import Any

import pytest

from cogwork.cli.machine import status
from cogwork.cli.terminal import EXIT_FAILURE, EXIT_OK


def process(name: str, state: str, **members: Any) -> dict[str, Any]:
    common = {"reason": None, "since": time.time() - 5, "restarts": 0, "pid": None}
    return {"id": name, "state": state, **common, **members}


def print_status(monkeypatch: pytest.MonkeyPatch, *processes: dict[str, Any]) -> int:
    view: dict[str, Any] = {
        "state": "running",
        "revision": "1",
        "applied_at": None,
        "resources": [],
        "processes": list(processes),
    }
    monkeypatch.setattr(status, "fetch_view", lambda _: view)
    return status.status(argparse.Namespace(history=None, json=False, unhealthy=False, address="x"))


def test_failed_processes_come_last(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = process("bad", "unhealthy", restarts=3, reason="exited with code 1\none\ntwo")
    running = process("web", "running", pid=12, restarts=1)
    finished = process("once", "finished")
    assert print_status(monkeypatch, failed, running, finished) == EXIT_FAILURE
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert " ".join(lines[0]) == "running process web process 12, restarted once 5s"
    assert " ".join(lines[1]) == "finished process once 5s"
    assert " ".join(lines[2][:8]) == "unhealthy process bad restarted 3 times 5s exited"


def test_healthy_processes_are_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert print_status(monkeypatch, process("p", "running", pid=1)) == EXIT_OK
    assert print_status(monkeypatch, process("p", "finished")) == EXIT_OK

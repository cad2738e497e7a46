"""`cogwork status --unhealthy` shows only what needs attention, with the same exit code."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from cogwork.cli.machine import status
from cogwork.cli.main import main

NOW = time.time()


def state(name: str, value: str, reason: str | None = None, **members: Any) -> dict[str, Any]:
    return {"name": name, "state": value, "reason": reason, "since": NOW, **members}


def job(name: str, successes: list[float], failures: list[float]) -> dict[str, Any]:
    failed = [{"time": NOW + each, "reason": "no such method"} for each in failures]
    done = [NOW + each for each in successes]
    return {"name": name, "configured": True, "successes": done, "failures": failed}


def process(name: str, value: str) -> dict[str, Any]:
    return {"id": name, "state": value, "reason": value, "since": NOW, "restarts": 0, "pid": 1}


SICK: dict[str, Any] = {
    "state": "running",
    "revision": "1",
    "applied_at": None,
    "resources": [
        state("rdk:component:camera/belt", "unhealthy", "no such device"),
        state("rdk:component:motor/wheel", "ready"),
    ],
    "modules": [state("good", "ready", pid=1), state("bad", "unhealthy", "exited with code 1")],
    "processes": [process("web", "running"), process("broker", "unhealthy")],
    "packages": [
        state("labels", "ready", version="1"),
        state("net", "failed", "HTTP 404", version="2"),
    ],
    "jobs": [job("hourly", [0], [-5]), job("nightly", [-5], [0]), job("never", [], [])],
    "updates": [],
    "tls": {"expires_at": NOW + 1e7, "names": ["a"], "warning": None, "fault": None},
    "configuration": None,
}
HEALTHY = {
    **SICK,
    "resources": SICK["resources"][1:],
    "modules": [],
    "processes": SICK["processes"][:1],
    "packages": [],
    "jobs": [],
}


@pytest.mark.parametrize(("view", "code"), [(SICK, 1), (HEALTHY, 0)])
def test_exit_code_is_the_same_as_without(
    view: dict[str, Any], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "fetch_view", lambda _: view)
    assert main(["status"]) == main(["status", "--unhealthy"]) == code


def test_only_what_needs_attention_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(status, "fetch_view", lambda _: SICK)
    main(["status", "--unhealthy"])
    summary, *lines = capsys.readouterr().out.splitlines()
    assert summary == "running, 1 of 2 resources ready"
    words = [" ".join(re.sub(r"\b(\d+[hms])+\b", " ", line).split()) for line in lines]
    assert words == [
        "unhealthy rdk:component:camera/belt no such device",
        "unhealthy module bad exited with code 1",
        "unhealthy process broker process 1 unhealthy",
        "unhealthy package net 2 HTTP 404",
        "job nightly failed ago: no such method",
    ]
    main(["status", "--unhealthy", "--json"])
    view = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in view["resources"]] == ["rdk:component:camera/belt"]
    assert (view["tls"], view["state"]) == (None, "running")


def test_healthy_machine_has_only_a_summary(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(status, "fetch_view", lambda _: HEALTHY)
    main(["status", "--unhealthy"])
    assert capsys.readouterr().out == "running, 1 of 1 resources ready\n"

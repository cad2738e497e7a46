"""The history of a machine as sentences."""

from __future__ import annotations

from typing import Any

import pytest

from cogwork.cli.machine.history import format_event

EVENTS: list[tuple[dict[str, Any], str]] = [
    (
        {"event": "started", "version": "1.0", "file": "/etc/machine.json"},
        "cogwork-server 1.0 started with /etc/machine.json",
    ),
    (
        {"event": "stopping", "reason": "received SIGTERM"},
        "the server is stopping: received SIGTERM",
    ),
    ({"event": "stopped", "unfinished": []}, "the server stopped"),
    (
        {"event": "stopped", "unfinished": ["a", "b"]},
        "the server stopped; a, b did not close in time",
    ),
    (
        {
            "event": "configuration",
            "revision": "c0ffee",
            "seconds": 0.25,
            "ready": 2,
            "unhealthy": 1,
            "added": ["rdk:component:camera/belt", "rdk:service:vision/find"],
            "removed": ["rdk:component:sensor/x"],
        },
        "configuration c0ffee applied in 0.25s: 2 ready, 1 not; added rdk:component:camera/belt, "
        "rdk:service:vision/find; removed rdk:component:sensor/x",
    ),
    (
        {
            "event": "configuration",
            "revision": "c0ffee",
            "seconds": 1,
            "ready": 0,
            "unhealthy": 0,
            "changed": [*"123456789A"],
        },
        "configuration c0ffee applied in 1s: 0 ready, 0 not; "
        "changed 1, 2, 3, 4, 5, 6, 7, 8 and 2 more",
    ),
    (
        {"event": "module", "module": "acme", "state": "started", "pid": 7},
        "module acme started as process 7",
    ),
    (
        {
            "event": "module",
            "module": "acme",
            "state": "failed",
            "reason": "exited with code 1",
            "failures": 1,
            "retry_after": 1.25,
        },
        "module acme failed: exited with code 1; restarting in 1.2s",
    ),
    (
        {"event": "module", "module": "m", "state": "failed", "reason": "no", "retry_after": None},
        "module m failed: no",
    ),
    (
        {"event": "process", "process": "web", "state": "started", "pid": 7},
        "process web started as process 7",
    ),
    ({"event": "process", "process": "web", "state": "finished"}, "process web finished"),
    (
        {
            "event": "process",
            "process": "web",
            "state": "failed",
            "reason": "exited with code 1",
            "failures": 1,
            "retry_after": 1.25,
        },
        "process web failed: exited with code 1; restarting in 1.2s",
    ),
    (
        {"event": "client", "peer": "127.0.0.1:1", "state": "connected", "untold": 3},
        "client 127.0.0.1:1 connected (3 earlier events were not recorded)",
    ),
    (
        {"event": "resource", "resource": "r/a", "state": "unhealthy", "reason": "gone"},
        "r/a is unhealthy: gone",
    ),
    (
        {"event": "resource", "resource": "r/a", "state": "still building", "seconds": 10.0},
        "r/a is still building after 10s",
    ),
    (
        {"event": "resource", "resource": "r/a", "state": "closing failed", "reason": "no"},
        "closing r/a failed: no",
    ),
    (
        {"event": "resource", "resource": "r/a", "state": "gave up building"},
        "gave up building r/a",
    ),
    ({"event": "stopped", "unfinished": 7}, "stopped unfinished 7"),
    ({"event": "of another release", "names": ["a", "b"]}, "of another release names a, b"),
    ({}, ""),
]


@pytest.mark.parametrize(("event", "sentence"), EVENTS)
def test_event_is_a_sentence(event: dict[str, Any], sentence: str) -> None:
    moment = "2026-11-16T08:00:00.000Z"
    assert format_event({"time": moment, **event}) == f"{moment}  {sentence}"

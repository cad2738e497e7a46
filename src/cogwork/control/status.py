"""The encoded status of a machine: JSON for programs, HTML for people."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from cogwork.control.page import render_page
from cogwork.core.clock import Clock
from cogwork.core.workers import run_in_thread
from cogwork.robot.machine import Machine
from cogwork.robot.status.maintenance import refresh_denial
from cogwork.robot.status.server_report import ServerReport
from cogwork.robot.status.status_view import build_status_view

_THREAD_THRESHOLD = 200
"""Number of resources above which the status is encoded in a thread."""
_TIMEOUT = 10.0
"""Timeout in seconds for encoding the status in a thread."""


async def encode_status(machine: Machine, report: ServerReport, clock: Clock) -> bytes:
    await refresh_denial(machine, report, clock)
    return await _encode(await build_status_view(machine, report), _as_json)


async def encode_page(
    machine: Machine, report: ServerReport, clock: Clock, notice: str | None
) -> bytes:
    now = clock.time()
    await refresh_denial(machine, report, clock)
    view = await build_status_view(machine, report)
    return await _encode(view, lambda view: render_page(view, now, notice))


async def _encode(view: dict[str, Any], render: Callable[[dict[str, Any]], str]) -> bytes:
    def encode() -> bytes:
        return render(view).encode(errors="backslashreplace")

    if len(view["resources"]) < _THREAD_THRESHOLD:
        return encode()
    return await run_in_thread("status", _TIMEOUT, encode)


def _as_json(view: dict[str, Any]) -> str:
    members = ",".join(f"{_dump(key)}:{_dump_each(value)}" for key, value in view.items())
    return f"{{{members}}}"


def _dump_each(value: Any) -> str:
    """Encode a list element by element, because the encoder holds the GIL until a call returns."""
    if isinstance(value, list):
        return f"[{','.join(map(_dump, value))}]"
    return _dump(value)


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))

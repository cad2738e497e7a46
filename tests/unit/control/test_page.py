"""The plain status page: rows of processes and packages."""

from __future__ import annotations

import re
from typing import Any

from cogwork.control.page import render_page


def render_rows(**sections: list[dict[str, Any]]) -> list[str]:
    """Return the texts of the table's rows, in their order."""
    view = {"state": "running", "revision": "", "resources": [], **sections}
    page = render_page(view, 100.0)
    rows = page.split("<tr>")[2:]
    return [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in rows]


def process(**settings: Any) -> dict[str, Any]:
    return {"id": "web", "state": "running", "reason": None, "since": 40.0, "pid": 12, **settings}


def package(**settings: Any) -> dict[str, Any]:
    return {
        "name": "detector",
        "type": "ml_model",
        "version": "1.2",
        "state": "ready",
        "since": 40.0,
        "reason": "",
        "done": 0,
        "total": None,
        **settings,
    }


def test_processes_that_need_attention_come_first() -> None:
    rows = render_rows(
        processes=[
            process(),
            process(id="setup", state="finished", pid=None),
            process(id="bad", state="unhealthy", pid=None, reason="exited with <code> 1"),
        ]
    )
    assert rows == [
        "unhealthy bad process exited with &lt;code&gt; 1 1m0s",
        "running web process process 12 1m0s",
        "finished setup process 1m0s",
    ]


def test_packages_have_their_version_and_progress() -> None:
    rows = render_rows(
        packages=[
            package(),
            package(name="map", state="downloading", done=43, total=100),
            package(name="lost", state="failed", reason="check the address", done=43, total=100),
        ]
    )
    assert rows == [
        "downloading map package 1.2 43 % 1m0s",
        "failed lost package 1.2 check the address 1m0s",
        "ready detector package 1.2 1m0s",
    ]

"""What programs and browsers get over HTTP, without a network between."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from tests.unit.robot.bench import Bench, failing, probe, thing
from tests.unit.robot.conftest import bench

from cogwork.control.http import application
from cogwork.logs.ring import Ring
from cogwork.robot.story import Story

__all__ = ["bench"]

HERE = "127.0.0.1"


async def get(
    bench: Bench, path: str, client: str = HERE, server: str = HERE
) -> tuple[int, str, str]:
    """The status, the kind of content and the content."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"machine")],
        "scheme": "http",
        "http_version": "1.1",
        "client": (client, 50112),
        "server": (server, 8080),
    }
    with tempfile.TemporaryDirectory() as directory:
        story = Story(Path(directory) / "story.jsonl", bench.clock)
        try:
            face = application(bench.machine, bench.clock, Ring(), story)
            await face(scope, receive, send)
        finally:
            story.close()
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in sent[1:]).decode()
    return sent[0]["status"], headers["content-type"], body


@pytest.mark.parametrize(
    ("client", "server", "status"),
    [
        ("127.0.0.1", "127.0.0.1", 200),
        ("127.8.8.8", "127.0.0.1", 200),
        ("::1", "::1", 200),
        ("192.0.2.1", "192.0.2.1", 200),
        ("fe80::1%eth0", "fe80::1%eth0", 200),
        ("192.0.2.7", "192.0.2.1", 403),
        ("192.0.2.7", "127.0.0.1", 403),
        ("fe80::2%eth0", "fe80::1%eth0", 403),
        ("::ffff:192.0.2.7", "::ffff:192.0.2.1", 403),
    ],
)
async def test_only_the_machine_itself_may_ask_for_a_restart(
    bench: Bench, client: str, server: str, status: int
) -> None:
    await bench.apply(thing("a"))
    answer, kind, body = await get(bench, "/restart_status", client, server)
    assert answer == status
    if status == 200:
        assert kind == "application/json"
        assert json.loads(body)["restart_allowed"] is True
    else:
        assert body == "forbidden: only from the machine itself\n"


async def test_everybody_may_see_the_page(bench: Bench) -> None:
    bench.scripts["build", "b"] = failing("<i>no</i> file '/data/\udcff'")
    await bench.apply(thing("a"), thing("b"), probe("p"), revision="r<1>")
    status, kind, page = await get(bench, "/", "192.0.2.7", "192.0.2.1")
    assert (status, kind) == (200, "text/html; charset=utf-8")
    assert "running · 2 of 3 resources ready · configuration r&lt;1&gt;" in page
    assert r"&lt;i&gt;no&lt;/i&gt; file &#x27;/data/\udcff&#x27;" in page
    # Those that need somebody come first.
    assert page.index("<b>b</b>") < page.index("<b>a</b>") < page.index("<b>p</b>")


async def test_before_there_is_a_configuration_the_page_says_what_to_do(bench: Bench) -> None:
    _, _, page = await get(bench, "/")
    assert "initializing · 0 of 0 resources ready" in page
    assert "add one to the configuration file and save it" in page


async def test_the_same_for_programs(bench: Bench) -> None:
    bench.scripts["build", "b"] = failing("no file '/data/\udcff'")
    await bench.apply(thing("a"), thing("b", needs="a"), revision="7")
    status, kind, body = await get(bench, "/status.json")
    assert (status, kind) == (200, "application/json")
    view = json.loads(body)
    assert (view["state"], view["revision"]) == ("running", "7")
    assert view["applied_at"] == bench.clock.time()
    assert view["resources"][1] == {
        "name": "rdk:component:generic/b",
        "model": "thing",
        "state": "unhealthy",
        "reason": r"no file '/data/\udcff'",
        "since": bench.clock.time(),
        "revision": "",
        "depends_on": ["rdk:component:generic/a"],
    }


async def test_what_is_not_there(bench: Bench) -> None:
    status, _, body = await get(bench, "/viam")
    assert (status, body) == (404, "there is no /viam here; / shows the machine\n")

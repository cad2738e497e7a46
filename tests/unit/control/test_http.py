"""The HTTP pages of the server, tested without a network."""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.support.waiting import run_others
from tests.unit.control.asgi import AsgiResponse, send_request
from tests.unit.robot.bench import NO_LOGIN, NO_SITE, Bench, fail_with, full_name, probe, thing
from tests.unit.robot.conftest import bench

from cogwork.config.source.config_report import ConfigReport, ConfigState, RunningConfig
from cogwork.control import status
from cogwork.control.history import MAX_LAST
from cogwork.control.http import MachineApp
from cogwork.logs.ring_buffer import RingBuffer
from cogwork.robot.event_journal import EventJournal
from cogwork.robot.machine import Machine
from cogwork.robot.status.server_report import ServerReport
from cogwork.robot.status.status_view import build_status_view

__all__ = ["bench"]

LOOPBACK = "127.0.0.1"


async def get_path(
    bench: Bench, path: str, client: str = LOOPBACK, server: str = LOOPBACK
) -> tuple[int, str, str]:
    """Return the status, the content type and the content."""
    with tempfile.TemporaryDirectory() as directory:
        journal = EventJournal(Path(directory) / "journal.jsonl", bench.clock)
        try:
            app = MachineApp(
                bench.machine,
                bench.report,
                bench.clock,
                RingBuffer(),
                journal,
                NO_LOGIN,
                bench.table,
                NO_SITE,
            )
            answer = await send_request(app, path, client=client, server=server)
        finally:
            journal.close()
    return answer.status, answer.headers["content-type"], answer.body.decode()


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
async def test_restart_status_is_only_for_the_machine_itself(
    bench: Bench, client: str, server: str, status: int
) -> None:
    await bench.apply(thing("a"))
    answer, kind, body = await get_path(bench, "/restart_status", client, server)
    assert answer == status
    if status == 200:
        assert kind == "application/json"
        assert json.loads(body)["restart_allowed"] is True
    else:
        assert body == "forbidden: only available from the machine itself\n"


async def test_status_page_is_served_to_all_clients(bench: Bench) -> None:
    bench.scripts["build", "b"] = fail_with("<i>no</i> file '/data/\udcff'")
    await bench.apply(thing("a"), thing("b"), probe("p"), revision="r<1>")
    status, kind, page = await get_path(bench, "/", "192.0.2.7", "192.0.2.1")
    assert (status, kind) == (200, "text/html; charset=utf-8")
    assert "running · 2 of 3 resources ready · configuration r&lt;1&gt;" in page
    assert r"&lt;i&gt;no&lt;/i&gt; file &#x27;/data/\udcff&#x27;" in page
    # Unhealthy resources come first.
    assert page.index("<b>b</b>") < page.index("<b>a</b>") < page.index("<b>p</b>")


async def test_status_page_without_configuration_has_advice(bench: Bench) -> None:
    _, _, page = await get_path(bench, "/")
    assert "initializing · 0 of 0 resources ready" in page
    assert "add one to the configuration file and save it" in page


async def test_page_at_the_root_says_that_the_control_page_is_missing(bench: Bench) -> None:
    _, _, page = await get_path(bench, "/")
    assert "<p class=notice>no such directory has no readable index.html</p>" in page


async def test_status_page_after_a_start_on_a_broken_file_says_so(bench: Bench) -> None:
    found = {
        "code": "E001",
        "severity": "error",
        "message": "expected <a> comma",
        "hint": None,
        "pointer": "",
        "file": "machine.json",
        "line": 3,
        "column": 9,
    }
    since = bench.clock.time() - 75
    bench.report.config = ConfigReport(
        "machine.json", ConfigState.REFUSED, RunningConfig.NONE, since, 1, 0, (found,)
    )
    _, _, page = await get_path(bench, "/")
    assert (
        "machine.json has been refused for 1m15s (1 error), and there is no earlier configuration "
        "to run<small>machine.json:3:9  error  expected &lt;a&gt; comma  [E001]</small>"
    ) in page
    assert "fix the configuration file and save it" in page
    assert "add one" not in page


async def test_optional_dependency_that_was_left_out_is_shown(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only its module knows that a resource wants another."""
    await bench.apply(thing("a"), thing("b", needs="a"))
    left_out = {full_name("a"): (full_name("b"),)}
    monkeypatch.setattr(
        bench.machine._reconciler, "dropped_dependencies", lambda name: left_out.get(name, ())
    )
    view = json.loads((await get_path(bench, "/status.json"))[2])
    assert [each["ignored_settings"] for each in view["resources"]] == [
        ['"b" depends on "a", so "a" is built without "b"'],
        [],
    ]


async def test_ignored_settings_are_shown_beside_a_ready_resource(bench: Bench) -> None:
    await bench.apply({**thing("a"), "attributes": {"labl": "<x>"}}, thing("b"))
    view = json.loads((await get_path(bench, "/status.json"))[2])
    assert [(each["state"], each["ignored_settings"]) for each in view["resources"]] == [
        ("ready", ['unknown key "labl"; did you mean "label"?']),
        ("ready", []),
    ]
    assert "<small>ignored: unknown key &quot;labl&quot;" in (await get_path(bench, "/"))[2]
    await bench.apply({**thing("a"), "attributes": dict.fromkeys("vwxyz")})
    (resource,) = json.loads((await get_path(bench, "/status.json"))[2])["resources"]
    assert resource["ignored_settings"][2:] == [
        'unknown key "x"; known keys: label',
        "2 more settings",
    ]
    await bench.apply(thing("a"), thing("b"))
    assert "ignored" not in (await get_path(bench, "/"))[2]


async def test_setting_that_a_resource_ignores_is_shown(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resource finds some of them only when it is built, such as labels that a model lacks."""
    await bench.apply(thing("a"))
    (node,) = bench.machine.nodes.values()
    assert node.usable is not None
    monkeypatch.setattr(node.usable.resource, "ignored_settings", ("no gren",), raising=False)
    view = json.loads((await get_path(bench, "/status.json"))[2])
    assert [(each["state"], each["ignored_settings"]) for each in view["resources"]] == [
        ("ready", ["no gren"])
    ]


async def test_status_json_lists_the_resources(bench: Bench) -> None:
    bench.scripts["build", "b"] = fail_with("no file '/data/\udcff'")
    await bench.apply(thing("a"), thing("b", needs="a"), revision="7")
    status, kind, body = await get_path(bench, "/status.json")
    assert (status, kind) == (200, "application/json")
    view = json.loads(body)
    assert (view["state"], view["revision"]) == ("running", "7")
    assert view["applied_at"] == bench.clock.time()
    assert view["resources"][1] == {
        "name": "rdk:component:generic/b",
        "model": "thing",
        "state": "unhealthy",
        "reason": r"no file '/data/\udcff'",
        "ignored_settings": [],
        "since": bench.clock.time(),
        "revision": "",
        "depends_on": ["rdk:component:generic/a"],
        "moved_by": None,
    }


async def test_unknown_path_is_not_found(bench: Bench) -> None:
    status, _, body = await get_path(bench, "/viam")
    assert (status, body) == (404, "/viam not found; the control page is at /\n")


@pytest.fixture
async def journal(bench: Bench, tmp_path: Path) -> AsyncIterator[EventJournal]:
    event_journal = EventJournal(tmp_path / "journal.jsonl", bench.clock)
    yield event_journal
    event_journal.close()


async def test_concurrent_requests_share_the_status_view(
    bench: Bench, journal: EventJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for the first request, and once for all requests during that time."""
    view_count = 0

    async def count_view(machine: Machine, report: ServerReport) -> dict[str, Any]:
        nonlocal view_count
        view_count += 1
        await run_others(20)  # turns of the loop in which all requests arrive
        return await build_status_view(machine, report)

    monkeypatch.setattr(status, "build_status_view", count_view)
    await bench.apply(thing("a"))
    site = MachineApp(
        bench.machine,
        bench.report,
        bench.clock,
        RingBuffer(),
        journal,
        NO_LOGIN,
        bench.table,
        NO_SITE,
    )
    for path in ("/", "/status.json"):
        view_count = 0
        answers = await asyncio.gather(*(send_request(site, path) for _ in range(16)))
        assert {answer.status for answer in answers} == {200}
        assert len({answer.body for answer in answers}) == 1
        assert view_count <= 2


async def test_large_machine_is_served_completely(bench: Bench, journal: EventJournal) -> None:
    await bench.apply(*(thing(f"t{number}") for number in range(300)))
    site = MachineApp(
        bench.machine,
        bench.report,
        bench.clock,
        RingBuffer(),
        journal,
        NO_LOGIN,
        bench.table,
        NO_SITE,
    )
    answer = await send_request(site, "/status.json")
    assert len(json.loads(answer.body)["resources"]) == 300
    assert answer.headers["content-length"] == str(len(answer.body))
    assert (await send_request(site, "/")).body.count(b"<tr>") == 301


async def test_concurrent_requests_share_the_history(
    bench: Bench, journal: EventJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0
    records = journal.iter_records
    all_wait = threading.Event()

    def read() -> Iterator[tuple[str, dict[str, Any]]]:
        nonlocal reads
        reads += 1
        assert all_wait.wait(10)
        return records()

    monkeypatch.setattr(journal, "iter_records", read)
    site = MachineApp(
        bench.machine,
        bench.report,
        bench.clock,
        RingBuffer(),
        journal,
        NO_LOGIN,
        bench.table,
        NO_SITE,
    )
    queries = ("", "resource=a", "resource=b")
    requests = [
        asyncio.ensure_future(send_request(site, "/history.json", query=queries[number % 3]))
        for number in range(30)
    ]
    await bench.clock.settle()
    all_wait.set()
    answers = await asyncio.gather(*requests)
    assert {answer.status for answer in answers} == {200}
    assert reads == 2, "once for the first, and once for those that came while it was read"


async def test_number_of_log_followers_is_limited(bench: Bench, journal: EventJournal) -> None:
    site = MachineApp(
        bench.machine,
        bench.report,
        bench.clock,
        RingBuffer(),
        journal,
        NO_LOGIN,
        bench.table,
        NO_SITE,
    )

    def follow(client: str) -> asyncio.Task[AsgiResponse]:
        return asyncio.ensure_future(
            send_request(site, "/logs.jsonl", query="follow=1", client=client)
        )

    followers = [follow("127.0.0.1") for _ in range(9)]
    followers += [follow(f"192.0.2.{number // 8}") for number in range(60)]
    await bench.clock.settle()
    declined = [each.result() for each in followers if each.done()]
    assert [answer.status for answer in declined] == [503] * 5
    assert b"too many followers of the log at once" in declined[0].body
    for each in followers:
        each.cancel()
    await asyncio.gather(*followers, return_exceptions=True)
    last = follow("127.0.0.1")
    await bench.clock.settle()
    assert not last.done()
    last.cancel()
    await asyncio.gather(last, return_exceptions=True)


async def test_head_request_does_not_follow_the_log(bench: Bench, journal: EventJournal) -> None:
    site = MachineApp(
        bench.machine,
        bench.report,
        bench.clock,
        RingBuffer(),
        journal,
        NO_LOGIN,
        bench.table,
        NO_SITE,
    )
    assert (await send_request(site, "/logs.jsonl", method="HEAD", query="follow=1")).status == 200


async def test_history_can_be_filtered_by_resource(bench: Bench, tmp_path: Path) -> None:
    journal_of_two = EventJournal(tmp_path / "told.jsonl", bench.clock)
    for name in ("rdk:component:motor/a", "rdk:component:arm/b"):
        journal_of_two.record(
            "resource", {"resource": name, "reason": 'line\u2028 "quoted" \udcff'}
        )
    journal_of_two.close()
    site = MachineApp(
        bench.machine,
        bench.report,
        bench.clock,
        RingBuffer(),
        journal_of_two,
        NO_LOGIN,
        bench.table,
        NO_SITE,
    )
    names = {
        query: [
            line["resource"]
            for line in json.loads((await send_request(site, "/history.json", query=query)).body)
        ]
        for query in ("", "resource=a", "resource=rdk:component:arm/b", "resource=c")
    }
    assert names == {
        "": ["rdk:component:motor/a", "rdk:component:arm/b"],
        "resource=a": ["rdk:component:motor/a"],
        "resource=rdk:component:arm/b": ["rdk:component:arm/b"],
        "resource=c": [],
    }


async def test_history_is_limited_to_its_last_events(bench: Bench, tmp_path: Path) -> None:
    journal = EventJournal(tmp_path / "journal.jsonl", bench.clock)
    for number in range(MAX_LAST + 1):
        name = "rdk:component:motor/a" if number < 3 else "rdk:component:arm/b"
        journal.record("resource", {"resource": name, "n": number})
    journal.close()
    site = MachineApp(
        bench.machine,
        bench.report,
        bench.clock,
        RingBuffer(),
        journal,
        NO_LOGIN,
        bench.table,
        NO_SITE,
    )

    async def read(query: str) -> list[int]:
        answer = await send_request(site, "/history.json", query=query)
        assert answer.status == 200, answer.body
        return [line["n"] for line in json.loads(answer.body)]

    everything = list(range(MAX_LAST + 1))
    assert await read("") == everything
    assert await read("last=1") == everything[-1:]
    assert await read(f"last={MAX_LAST}") == everything[1:]
    # These are older than the last events of the machine.
    assert await read("last=2&resource=a") == [1, 2]


@pytest.mark.parametrize("last", ["", "0", "-1", "501", "1e2", "ten", "٣", "9" * 5000])
async def test_invalid_number_of_last_events_is_refused(
    bench: Bench, journal: EventJournal, last: str
) -> None:
    site = MachineApp(
        bench.machine,
        bench.report,
        bench.clock,
        RingBuffer(),
        journal,
        NO_LOGIN,
        bench.table,
        NO_SITE,
    )
    query = urlencode({"last": last})
    answer = await send_request(site, "/history.json", query=query)
    assert answer.status == 400
    assert answer.body.startswith(b'"last" must be a number from 1 to 500, not ')
    assert len(answer.body) < 200

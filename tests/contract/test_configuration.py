"""The endpoints with which the control page edits the configuration, on a real server."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import AsyncIterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.support.machine import login
from tests.support.machine.commands import run_command
from tests.support.machine.running import DEADLINE, Server, run_server
from tests.support.waiting import poll

SENSOR = {"name": "a", "api": "rdk:component:sensor", "model": "fake"}
CANARY = "canary-7e21"
MACHINE = {"components": [SENSOR]}
CHECK, SAVE = "/configuration/check", "/configuration/save"
READ, HISTORY = "/configuration.json", "/configuration/history.json"
DEVICES = "/configuration/devices.json"
MAX_SIZE = 2 * 1024 * 1024


class Answer(NamedTuple):
    status: int
    body: str

    @property
    def value(self) -> Any:
        assert self.status in (200, 400), self
        return json.loads(self.body)


class Page:
    """What the control page of a machine sends, with or without a token."""

    def __init__(self, server: Server, token: str | None = None) -> None:
        self.server = server
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    @property
    def origin(self) -> str:
        return f"http://localhost:{self.server.port}"

    async def get(self, path: str) -> Answer:
        return await asyncio.to_thread(self._send, "GET", path, None, {})

    async def post(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> Answer:
        """Send a text as it is, and anything else as JSON."""
        data = body if isinstance(body, str | bytes) else json.dumps(body)
        own = {"Origin": self.origin, "Content-Type": "application/json"}
        sent = own if headers is None else {"Content-Type": "application/json", **headers}
        return await asyncio.to_thread(self._send, "POST", path, data, sent)

    async def read(self) -> Any:
        return (await self.get(READ)).value

    async def save(self, text: str, **others: Any) -> Answer:
        checksum = (await self.read())["checksum"]
        return await self.post(SAVE, {"text": text, "checksum": checksum, **others})

    async def wait_for_history(self, count: int) -> list[Any]:
        async def read_history() -> list[Any]:
            entries: list[Any] = (await self.get(HISTORY)).value
            return entries

        return await poll(read_history, lambda entries: len(entries) >= count)

    def _send(
        self, method: str, path: str, body: str | bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        connection = HTTPConnection("localhost", self.server.port, timeout=DEADLINE)
        try:
            data = body.encode() if isinstance(body, str) else body
            connection.request(method, path, data, {**self._headers, **headers})
            response = connection.getresponse()
            return Answer(response.status, response.read().decode())
        finally:
            connection.close()


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    """The page of a machine without login."""
    async with run_server(MACHINE, tmp_path) as server:
        await server.wait_for_status(state="running")
        yield Page(server)


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Server]:
    """A machine that requires a login."""
    async with run_server(login.config(*login.ROLES), tmp_path) as server:
        await server.out.wait_for("applied in")
        yield server


def with_another(text: str, **others: Any) -> str:
    """Return the configuration with one more sensor."""
    config = json.loads(text)
    config["components"].append({**SENSOR, "name": "b"})
    return json.dumps({**config, **others}, indent=2)


async def test_owner_reads_checks_and_saves_the_file(page: Page) -> None:
    page.server.file.chmod(0o640)
    found = await page.read()
    assert found["text"] == page.server.file.read_text()
    assert (found["editable"], found["reason"]) == (True, "")
    assert found["revision"] == (await page.server.status())["revision"]

    text = with_another(found["text"], componets=[])
    preview = (await page.post(CHECK, text, {"Origin": page.origin})).value
    assert preview["refused"] is False
    assert preview["plan"] == [
        {
            "resource": "rdk:component:sensor/b",
            "action": "build",
            "reason": "it is not running yet",
        }
    ]
    assert page.server.file.read_text() == found["text"]

    saved = await page.post(SAVE, {"text": text, "checksum": found["checksum"]})
    assert saved.value == {"checksum": (await page.read())["checksum"]}
    assert page.server.file.read_text() == text
    assert stat.S_IMODE(page.server.file.stat().st_mode) == 0o640
    newest, _ = await page.wait_for_history(2)
    status = await page.server.status()
    assert newest["revision"] == status["revision"]
    assert {each["name"] for each in status["resources"]} >= {"rdk:component:sensor/b"}
    (reported,) = status["configuration"]["diagnostics"]
    assert preview["diagnostics"] == [reported]


async def test_preview_names_changed_and_removed_resources_and_settings(page: Page) -> None:
    text = json.dumps({"components": [{**SENSOR, "name": "b"}], "debug": True})
    preview = (await page.post(CHECK, text)).value
    steps = {step["resource"]: step["action"] for step in preview["plan"]}
    assert steps == {"rdk:component:sensor/a": "remove", "rdk:component:sensor/b": "build"}
    assert {"section": "debug", "change": "on", "effect": "takes effect immediately"} in preview[
        "settings"
    ]


async def test_history_tells_edits_saves_and_restores_apart(page: Page) -> None:
    first = (await page.read())["text"]
    assert (await page.save(with_another(first))).status == 200
    await page.wait_for_history(2)
    assert (await page.save(first, restore=1)).status == 200
    await page.wait_for_history(3)
    page.server.save(with_another(first))
    entries = await page.wait_for_history(4)
    assert [entry["author"]["kind"] for entry in entries] == ["file", "restore", "page", "file"]
    assert entries[1]["author"]["restored"] == 1
    assert all("text" not in entry for entry in entries)
    entry = (await page.get("/configuration/history/1.json")).value
    assert entry == {**entries[-1], "text": first}


async def test_restore_on_the_command_line_is_applied_and_attributed(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COGWORK_HOME", str(tmp_path / "home"))
    first = (await page.read())["text"]
    assert (await page.save(with_another(first))).status == 200
    await page.wait_for_history(2)
    restored = await run_command(
        "config", "restore", "1", "--yes", "--config", str(page.server.file)
    )
    assert restored.code == 0, restored
    newest, *_ = await page.wait_for_history(3)
    assert (newest["author"]["kind"], newest["author"]["restored"]) == ("restore", 1)
    assert (await page.read())["text"] == first


async def test_devices_of_this_computer_are_listed_as_components(page: Page) -> None:
    found = (await page.get(DEVICES)).value
    assert all(set(each) == {"name", "api", "model", "attributes"} for each in found)


async def test_entry_that_does_not_exist_is_not_found(page: Page) -> None:
    for entry in ("2", "0", "-1", "x", "%2e%2e", "9" * 5000):
        answer = await page.get(f"/configuration/history/{entry}.json")
        assert answer.status == 404, entry


async def test_edit_of_a_file_that_changed_meanwhile_is_refused(page: Page) -> None:
    found = await page.read()
    theirs = with_another(found["text"])
    page.server.file.write_text(theirs)
    mine = {"text": json.dumps({"debug": True}), "checksum": found["checksum"]}
    answer = await page.post(SAVE, mine)
    assert answer.status == 409
    assert answer.body == (
        f"{page.server.file} was changed since you opened it; reload it and edit it again\n"
    )
    assert page.server.file.read_text() == theirs


async def test_only_one_of_concurrent_edits_of_the_same_text_is_saved(page: Page) -> None:
    found = await page.read()
    edits = [
        {"text": json.dumps({"revision": str(n)}), "checksum": found["checksum"]} for n in (1, 2)
    ]
    answers = await asyncio.gather(*(page.post(SAVE, edit) for edit in edits))
    assert sorted(answer.status for answer in answers) == [200, 409]


async def test_text_that_would_be_refused_is_not_saved(page: Page) -> None:
    before = page.server.file.read_text()
    answer = await page.save(json.dumps({"network": {"bind_address": 5}}))
    assert answer.status == 400
    refusal = answer.value
    assert refusal["refused"] is True
    assert refusal["diagnostics"][0]["message"] == "expected a string, got the number 5"
    assert refusal["diagnostics"][0]["pointer"] == "/network/bind_address"
    assert page.server.file.read_text() == before
    assert len((await page.get(HISTORY)).value) == 1


NOT_OURS: list[dict[str, str]] = [
    {},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:1"},
    {"Origin": "OWN", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "OWN", "Sec-Fetch-Site": "same-site"},
    {"Origin": "OWN", "Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "same-origin"},
    {"Origin": "https://listed.example"},
]


async def test_pages_of_other_sites_cannot_edit_the_configuration(tmp_path: Path) -> None:
    config = {**MACHINE, "network": {"allowed_origins": ["https://listed.example"]}}
    async with run_server(config, tmp_path) as server:
        page = Page(server)
        found = await page.read()
        edit = {"text": json.dumps({"debug": True}), "checksum": found["checksum"]}
        for headers in NOT_OURS:
            sent = {
                name: page.origin if value == "OWN" else value for name, value in headers.items()
            }
            for path, body in ((SAVE, edit), (CHECK, "{}")):
                for kind in ("application/json", "text/plain"):
                    answer = await page.post(path, body, {**sent, "Content-Type": kind})
                    assert answer.status == 403, (path, headers)
        assert server.file.read_text() == found["text"]
        own = {"Origin": page.origin, "Sec-Fetch-Site": "same-origin"}
        assert (await page.post(SAVE, edit, own)).status == 200


async def test_no_other_path_takes_posts(page: Page) -> None:
    for path in (
        READ,
        HISTORY,
        f"{SAVE}/",
        f"{CHECK}.json",
        "/status.json",
        "//configuration/save",
    ):
        assert (await page.post(path, "{}")).status == 405, path


@pytest.mark.parametrize("role", ["viewer", "operator", None])
async def test_only_owners_use_the_endpoints(guarded: Server, role: str | None) -> None:
    token = login.log_in(guarded.port, role) if role else None
    page = Page(guarded, token)
    before = guarded.file.read_text()
    edit = {"text": "{}", "checksum": ""}
    answers = [
        *[
            await page.get(path)
            for path in (READ, HISTORY, DEVICES, "/configuration/history/1.json")
        ],
        await page.post(CHECK, "{}"),
        await page.post(SAVE, edit),
        await page.post(SAVE, "x" * 1_000_000),
    ]
    assert {answer.status for answer in answers} == {403 if role else 401}
    for answer in answers:
        assert answer.body.count("\n") == 1
        assert login.CANARY not in answer.body
    assert guarded.file.read_text() == before


async def test_save_of_an_owner_has_its_login_and_leaks_no_secret(guarded: Server) -> None:
    page = Page(guarded, login.log_in(guarded.port, "owner"))
    text = (await page.read())["text"]
    assert login.key_of("owner") in text
    changed = json.dumps({**json.loads(text), "revision": "2", "password": CANARY})
    assert (await page.save(changed)).status == 200
    newest, *_ = await page.wait_for_history(2)
    assert newest["author"] == {"kind": "page", "name": login.KEYS["owner"], "restored": None}
    assert newest["revision"] == "2"
    stale = await page.post(SAVE, {"text": changed, "checksum": "0"})
    preview = await page.post(CHECK, changed)
    for output in (guarded.output, stale.body, preview.body):
        assert CANARY not in output
        assert login.CANARY not in output


DEEP = "[" * 200_000
GARBAGE = "\x00{\"':,]\\u12" * 100_000


UNUSABLE: list[str | bytes] = [
    GARBAGE,
    b"\xff\xfe" * 500_000,
    DEEP,
    '{"components":' * 100_000,
    "",
    '"text"',
    "1e999999",
]


async def test_unusable_texts_are_refused(page: Page) -> None:
    before = page.server.file.read_text()
    for body in UNUSABLE:
        preview = (await page.post(CHECK, body)).value
        assert (preview["refused"], preview["plan"]) == (True, []), body[:20]
        assert preview["diagnostics"][0]["severity"] == "error"
        answer = await page.post(SAVE, body)
        assert (answer.status, answer.body.count("\n")) == (400, 1), body[:20]
        if isinstance(body, str):
            assert (await page.save(body)).status == 400, body[:20]
    assert page.server.file.read_text() == before
    assert (await page.get(READ)).status == 200
    assert "Traceback" not in page.server.output


MALFORMED: list[Any] = [
    {"text": {}, "checksum": ""},
    {"text": "{}", "checksum": "", "other": []},
    {},
    {"text": 5, "checksum": ""},
    {"text": "{}"},
    {"text": "{}", "checksum": None},
    {"text": "{}", "checksum": "", "restore": "1"},
    {"text": "\ud800", "checksum": ""},
    [],
    None,
]


async def test_malformed_save_is_refused_with_a_sentence(page: Page) -> None:
    for fields in MALFORMED:
        answer = await page.post(SAVE, fields)
        assert (answer.status, answer.body.count("\n")) == (400, 1), fields


async def test_other_content_types_are_refused(page: Page) -> None:
    for path, kind in ((CHECK, "text/html"), (SAVE, "text/plain"), (SAVE, "")):
        answer = await page.post(path, "{}", {"Origin": page.origin, "Content-Type": kind})
        assert answer.status == 415, (path, kind)


async def test_too_large_request_is_refused_before_it_is_sent(page: Page) -> None:
    for path, limit in ((CHECK, MAX_SIZE), (SAVE, 2 * MAX_SIZE)):
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost:{page.server.port}\r\n"
            f"Origin: {page.origin}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {limit + 1}\r\n\r\n"
        )
        async with asyncio.timeout(DEADLINE):
            reader, writer = await asyncio.open_connection("localhost", page.server.port)
            writer.write(head.encode())
            answer = await reader.read()
            writer.close()
            await writer.wait_closed()
        assert answer.startswith(b"HTTP/1.1 413 ")


async def test_too_large_request_of_unknown_size_is_not_read_whole(page: Page) -> None:
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    head = (
        f"POST {CHECK} HTTP/1.1\r\nHost: localhost:{page.server.port}\r\nOrigin: {page.origin}\r\n"
        "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    async with asyncio.timeout(DEADLINE):
        reader, writer = await asyncio.open_connection("localhost", page.server.port)
        writer.write(head.encode())
        answer = asyncio.ensure_future(reader.read(12))
        for _ in range(MAX_SIZE // 0x100000 + 1):
            writer.write(chunk)
        assert await answer == b"HTTP/1.1 413"
        writer.transport.abort()


async def test_file_that_disappeared_cannot_be_edited(page: Page) -> None:
    found = await page.read()
    page.server.file.unlink()
    gone = await page.read()
    assert (gone["text"], gone["editable"]) == ("", False)
    assert "the file does not exist" in gone["reason"]
    answer = await page.post(SAVE, {"text": "{}", "checksum": found["checksum"]})
    assert (answer.status, answer.body.count("\n")) == (409, 1)


async def test_file_that_is_too_large_for_the_page_is_shown_but_not_edited(page: Page) -> None:
    page.server.file.write_text(f"{(await page.read())['text']}{' ' * MAX_SIZE}")
    found = await page.read()
    assert (len(found["text"]) > MAX_SIZE, found["editable"]) == (True, False)
    assert found["reason"] == f"{page.server.file} is larger than 2 MiB; edit the file itself"
    answer = await page.save(" " * (MAX_SIZE + 1))
    assert (answer.status, answer.body.count("\n")) == (400, 1)


async def test_damaged_history_neither_stops_the_machine_nor_the_page(
    page: Page, tmp_path: Path
) -> None:
    (directory,) = (tmp_path / "home" / "config-history").iterdir()
    (directory / "1.config").write_text("damaged")
    (directory / "foreign").write_text("mine")
    assert (await page.get(HISTORY)).value == []
    assert (await page.save(with_another((await page.read())["text"]))).status == 200
    (entry,) = await page.wait_for_history(1)
    assert (entry["id"], entry["author"]["kind"]) == (2, "page")
    skipped = [line for line in page.server.out.lines if "skipping" in line]
    assert len(skipped) == 2

"""Pages of other sites are refused, and every answer has the security headers."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from tests.unit.control.asgi import AsgiResponse, send_request
from tests.unit.robot.bench import NO_LOGIN, NO_SITE, Bench, thing
from tests.unit.robot.conftest import bench

from cogwork.config.schema.cloud import CloudConfig
from cogwork.config.schema.host_names import allowed_host_names
from cogwork.config.schema.machine import MachineConfig
from cogwork.config.schema.network import NetworkConfig
from cogwork.control.browser_guard import BrowserGuard
from cogwork.control.http import MachineApp
from cogwork.control.page import render_page
from cogwork.logs.ring_buffer import RingBuffer
from cogwork.robot.event_journal import EventJournal
from cogwork.wire.transports.asgi import SECURITY_HEADERS, Application

__all__ = ["bench"]

NAMES = frozenset({"localhost", "robot", "robot.local"})
PATHS = ("/", "/status.json", "/restart_status", "/logs.jsonl", "/history.json", "/camera/c")
FOREIGN_PAGE = {"origin": "https://evil.example", "sec_fetch_site": "cross-site"}


@pytest.fixture
async def site(bench: Bench, tmp_path: Path) -> AsyncIterator[Application]:
    await bench.apply(thing("a"))
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


def test_configured_host_names_are_allowed() -> None:
    network = NetworkConfig.model_construct(
        bind_address="desk:8080", fqdn="Robot.Example", allowed_hosts=["a.example", "b.example"]
    )
    cloud = CloudConfig.model_construct(fqdn="r.cloud.example", local_fqdn="r.local.example")
    config = MachineConfig.model_construct(network=network, cloud=cloud)
    assert allowed_host_names(config, "pi.lab") == {
        *("localhost", "pi.lab", "pi", "pi.local", "desk", "robot.example"),
        *("a.example", "b.example", "r.cloud.example", "r.local.example"),
    }
    assert allowed_host_names(MachineConfig.model_construct(), "") >= {"localhost"}


@pytest.mark.parametrize("path", PATHS)
async def test_dns_rebinding_is_refused(site: Application, path: str) -> None:
    answer = await send_request(site, path, host="evil.example:8080")
    assert answer.status == 421
    assert b"'evil.example:8080'" in answer.body
    assert b"network.allowed_hosts" in answer.body


@pytest.mark.parametrize("path", PATHS)
async def test_requests_of_other_sites_are_refused(site: Application, path: str) -> None:
    assert (await send_request(site, path, **FOREIGN_PAGE)).status == 403
    for headers in (
        {"origin": "null"},
        {"origin": "http://localhost:3000"},
        {"origin": "http://localhost:8080.evil.example"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"},
    ):
        assert (await send_request(site, path, **headers)).status == 403, headers


async def test_requests_of_own_page_and_programs_are_served(site: Application) -> None:
    for headers in (
        {},
        {"origin": "http://localhost:8080"},
        {"origin": "https://LOCALHOST:8080"},
        {"sec_fetch_site": "same-origin"},
        {"sec_fetch_site": "none"},
    ):
        assert (await send_request(site, "/status.json", **headers)).status == 200, headers


async def test_link_to_the_page_is_served_and_to_data_is_refused(site: Application) -> None:
    link = {
        "sec_fetch_site": "cross-site",
        "sec_fetch_mode": "navigate",
        "sec_fetch_dest": "document",
    }
    assert (await send_request(site, "/", **link)).status == 200
    assert (await send_request(site, "/status.json", **link)).status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"])
async def test_methods_other_than_get_and_head_are_refused(site: Application, method: str) -> None:
    for path in (*PATHS, "/viam.robot.v1.RobotService/Shutdown"):
        answer = await send_request(site, path, method=method)
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


async def test_ambiguous_body_length_is_refused(site: Application) -> None:
    answer = await send_request(site, "/", content_length="4", transfer_encoding="chunked")
    assert (answer.status, answer.headers["connection"]) == (400, "close")


async def test_every_answer_has_the_security_headers(site: Application) -> None:
    answers = [await send_request(site, path) for path in (*PATHS, "/nothing")]
    answers += [
        await send_request(site, "/logs.jsonl", query="level=nonsense"),
        await send_request(site, host="evil.example"),
        await send_request(site, method="POST"),
        await send_request(site, **FOREIGN_PAGE),
        await send_request(site, method="HEAD"),
    ]
    assert {answer.status for answer in answers} == {200, 400, 403, 404, 405, 421}
    for answer in answers:
        for name, value in SECURITY_HEADERS.items():
            if name != "Content-Security-Policy":
                assert answer.headers[name.lower()] == value
        assert "default-src 'none'" in policy(answer)
        assert "frame-ancestors 'none'" in policy(answer)
        assert "unsafe" not in policy(answer)
        assert not any(name.startswith("access-control-") for name in answer.headers)


async def test_failed_answer_has_the_security_headers() -> None:
    async def fail(_: Request) -> Response:
        raise ValueError("ouch")

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    guard = BrowserGuard(Starlette(routes=[Route("/", fail)]), lambda: NAMES, lambda: ())
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}
    with pytest.raises(ValueError, match="ouch"):
        await guard(scope, None, send)
    assert sent[0]["status"] == 500
    assert (b"x-content-type-options", b"nosniff") in sent[0]["headers"]


async def test_policy_allows_only_the_own_style_and_script(site: Application) -> None:
    allowed = policy(await send_request(site))
    camera = {"name": "rdk:component:camera/c", "model": "m", "state": "ready", "since": 0.0}
    view = {"state": "running", "revision": "", "resources": [{**camera, "reason": None}]}
    text = render_page(view, 1.0)
    inline = re.findall(r"<(style|script)>(.*?)</\1>", text, re.DOTALL)
    assert [kind for kind, _ in inline] == ["style", "script"]
    for kind, content in inline:
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in allowed
    assert "style=" not in text
    assert not re.search(r"\son\w+=", re.sub(r"<script>.*</script>", "", text, flags=re.DOTALL))


def test_state_is_escaped() -> None:
    module = {"name": "m", "state": "'><script>", "reason": None, "since": 0.0, "pid": None}
    view = {"state": "running", "revision": "", "resources": [], "modules": [module]}
    assert "<script>" not in render_page(view, 1.0)


def policy(answer: AsgiResponse) -> str:
    return answer.headers["content-security-policy"]


CALL = {"method": "POST", "content_type": "application/grpc-web+proto"}
ALLOWED = "https://app.example"


def cross_site(origin: str) -> dict[str, str]:
    return {"origin": origin, "sec_fetch_site": "cross-site", "sec_fetch_mode": "cors"}


@pytest.fixture
def cors_site() -> BrowserGuard:
    return BrowserGuard(PlainTextResponse("called"), lambda: NAMES, lambda: [ALLOWED])


async def test_allowed_origin_may_call_but_not_read_pages(cors_site: BrowserGuard) -> None:
    answer = await send_request(cors_site, "/a.B/C", **CALL, **cross_site(ALLOWED))
    assert (answer.status, answer.body) == (200, b"called")
    assert answer.headers["access-control-allow-origin"] == ALLOWED
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in answer.headers
    assert (await send_request(cors_site, "/status.json", **cross_site(ALLOWED))).status == 403


async def test_preflight_of_an_allowed_origin_is_answered(cors_site: BrowserGuard) -> None:
    asked = {"access_control_request_method": "POST"}
    answer = await send_request(
        cors_site, "/a.B/C", method="OPTIONS", **asked, **cross_site(ALLOWED)
    )
    assert (answer.status, answer.body) == (204, b"")
    assert "authorization" in answer.headers["access-control-allow-headers"]


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://app.example", f"{ALLOWED}.evil.example", "null", ""]
)
async def test_other_origins_may_not_call(cors_site: BrowserGuard, origin: str) -> None:
    answer = await send_request(cors_site, "/a.B/C", **CALL, **cross_site(origin))
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers
    asked = {"access_control_request_method": "POST"}
    answer = await send_request(
        cors_site, "/a.B/C", method="OPTIONS", **asked, **cross_site(origin)
    )
    assert answer.status == 405


async def test_own_page_and_programs_may_call(cors_site: BrowserGuard) -> None:
    own = {"origin": "http://localhost:8080", "sec_fetch_site": "same-origin"}
    for headers in (own, {}):
        assert (await send_request(cors_site, "/a.B/C", **CALL, **headers)).body == b"called"
    # DNS rebinding: the page's own origin is our address under another name.
    rebound = {"host": "evil.example", "origin": "http://evil.example"}
    assert (await send_request(cors_site, "/a.B/C", **CALL, **rebound)).status == 421


async def test_posts_that_are_no_calls_are_refused(cors_site: BrowserGuard) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/grpc", ""):
        answer = await send_request(cors_site, "/a.B/C", method="POST", content_type=kind)
        assert answer.status == 405

"""The login of the HTTP interface, tested without a network."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.responses import PlainTextResponse, StreamingResponse
from tests.unit.auth.parts import ADDRESS, SECRETS, api_keys, make_authenticator
from tests.unit.auth.test_granted_access import (
    ACCESS,
    KEY_1,
    PART,
    authenticator,
    token_of_cloud,
)
from tests.unit.control.asgi import AsgiResponse, send_body, send_request

from cogwork.auth.access_list import AccessList
from cogwork.auth.credentials import KnownCredentials
from cogwork.auth.exempt_paths import LOGIN_PATH
from cogwork.auth.refusal_delay import DELAY
from cogwork.control.http_login import HttpLogin
from cogwork.core.clock import ManualClock
from cogwork.robot.middleware.authentication import Authentication
from cogwork.robot.middleware.operations import Operations

LOGIN = {"entity": "viewer", "credentials": {"type": "api-key", "payload": SECRETS["viewer"]}}


class Site:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.authentication = Authentication(Operations(self.clock))
        self.authentication.use(make_authenticator(clock=self.clock))
        self.app = HttpLogin(PlainTextResponse("secret page"), self.authentication)

    async def get(self, path: str = "/status.json", **options: Any) -> AsgiResponse:
        return await send_request(self.app, path, **options)

    async def post(self, body: Any, **options: Any) -> AsgiResponse:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = (
            {"authorization": options.pop("authorization")} if "authorization" in options else {}
        )
        return await send_body(self.app, LOGIN_PATH, data, headers=headers, **options)

    async def token(self) -> str:
        response = await self.post(LOGIN)
        assert response.status == 200
        return f"Bearer {json.loads(response.body)['accessToken']}"


async def test_request_without_a_token_is_refused() -> None:
    response = await Site().get()
    assert (response.status, response.body) == (401, b"authentication required\n")
    assert response.headers["www-authenticate"] == "Bearer"


async def test_viewer_gets_what_it_asks_for() -> None:
    site = Site()
    response = await site.get(authorization=await site.token())
    assert (response.status, response.body) == (200, b"secret page")


async def test_bad_token_is_refused() -> None:
    assert (await Site().get(authorization="Bearer x.y.z")).status == 401


async def test_cloud_is_asked_about_a_client_that_is_not_listed() -> None:
    site = Site()
    site.authentication.use(authenticator(AccessList(PART, jwks=ACCESS.jwks)))
    token = token_of_cloud(KEY_1)
    assert (await site.get(authorization=token)).status == 401

    async def list_client() -> bool:
        site.authentication.use(authenticator(ACCESS))
        return True

    site.authentication.refresh_access = list_client
    assert (await site.get(authorization=token)).body == b"secret page"


async def test_front_page_answers_supervisors_without_telling_anything() -> None:
    response = await Site().get("/")
    assert response.status == 200
    assert b"requires a login" in response.body
    assert b"secret" not in response.body
    assert (await Site().get("/", authorization="Bearer x")).status == 401


async def test_restart_status_needs_no_login() -> None:
    assert (await Site().get("/restart_status")).body == b"secret page"


async def test_everything_is_open_while_no_login_is_required() -> None:
    site = Site()
    site.authentication.use(None)
    assert (await site.get()).body == b"secret page"
    response = await site.post(LOGIN)
    assert response.status == 404
    assert b"requires no login" in response.body


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (b"", 400, b"as JSON"),
        (b"[" * 60_000, 400, b"as JSON"),
        ([], 400, b"as JSON"),
        ({"entity": 7}, 400, b"as JSON"),
        ({"credentials": "x"}, 400, b"as JSON"),
        ({}, 400, b"credentials required"),
        (b"x" * 70_000, 400, b"more than 65536 bytes"),
        ({**LOGIN, "lifetime": 0}, 400, b'"lifetime" must be a number of seconds'),
        ({**LOGIN, "lifetime": "1h"}, 400, b'"lifetime" must be a number of seconds'),
        ({**LOGIN, "lifetime": True}, 400, b'"lifetime" must be a number of seconds'),
        ({**LOGIN, "entity": "owner"}, 401, b"invalid credentials"),
        ({**LOGIN, "credentials": {"type": "odd", "payload": "x"}}, 400, b"do not know how"),
    ],
)
async def test_bad_login_is_explained(body: Any, status: int, text: bytes) -> None:
    response = await Site().post(body)
    assert response.status == status
    assert text in response.body


async def test_token_with_a_lifetime_expires() -> None:
    site = Site()
    body = json.loads((await site.post({**LOGIN, "lifetime": 60})).body)
    token = f"Bearer {body['accessToken']}"
    assert (await site.get(authorization=token)).status == 200
    await site.clock.advance(61)
    response = await site.get(authorization=token)
    assert response.status == 401
    assert b"the token has expired; log in again" in response.body


async def test_guesses_are_limited() -> None:
    site = Site()
    wrong = {**LOGIN, "credentials": {"type": "api-key", "payload": "wrong"}}
    statuses = [(await site.post(wrong)).status for _ in range(10)]
    assert statuses == [401] * 10
    refused = asyncio.ensure_future(site.post(wrong))
    await site.clock.advance(DELAY - 0.1)
    assert not refused.done(), "refusals are delayed"
    await site.clock.advance(0.2)
    assert (await refused).status == 429


async def test_login_is_a_post() -> None:
    response = await Site().get(LOGIN_PATH)
    assert response.status == 405


async def test_login_with_a_token_is_refused() -> None:
    site = Site()
    assert (await site.post(LOGIN, authorization=await site.token())).status == 400


async def test_plaintext_from_another_computer_is_refused() -> None:
    site = Site()
    token = await site.token()
    remote = {"client": "192.0.2.7", "server": "192.0.2.1"}
    for response in (
        await site.post(LOGIN, **remote),
        await site.get(authorization=token, **remote),
    ):
        assert response.status == 401
        assert b"-allow-insecure-creds" in response.body
    assert ADDRESS.endswith("192.0.2.7")


async def test_machine_without_login_serves_its_own_computer_only() -> None:
    site = Site()
    site.authentication.use(None, is_open=False)
    assert (await site.get()).body == b"secret page"
    refused = await site.get(client="192.0.2.7", server="192.0.2.1")
    assert refused.status == 401
    assert b"insecure_without_auth" in refused.body


async def test_connection_without_login_is_aborted_when_it_becomes_required() -> None:
    site = Site()
    site.authentication.use(None)
    started, aborted = asyncio.Event(), asyncio.Event()

    async def lines() -> Any:
        started.set()
        yield b"first"
        await aborted.wait()

    site.app = HttpLogin(StreamingResponse(lines()), site.authentication)
    following = asyncio.ensure_future(
        send_body(site.app, "/logs.jsonl", method="GET", headers={}, on_abort=aborted.set)
    )
    await started.wait()
    site.authentication.use(make_authenticator())
    assert aborted.is_set()
    await following


async def test_request_that_has_no_response_yet_is_told_that_a_login_is_required() -> None:
    site = Site()
    site.authentication.use(None)
    started, may_end, aborted = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def page(scope: Any, receive: Any, send: Any) -> None:
        started.set()
        await may_end.wait()
        await StreamingResponse(iter([b"secret", b"page"]))(scope, receive, send)

    site.app = HttpLogin(page, site.authentication)
    asking = asyncio.ensure_future(
        send_body(site.app, "/logs.jsonl", method="GET", headers={}, on_abort=aborted.set)
    )
    await started.wait()
    site.authentication.use(make_authenticator())
    may_end.set()
    response = await asking
    assert (response.status, response.headers["www-authenticate"]) == (401, "Bearer")
    assert response.body == b"login is required now; log in and call again\n"
    assert not aborted.is_set()


async def test_connection_is_aborted_when_its_key_is_removed() -> None:
    site = Site()
    token = await site.token()
    started, aborted = asyncio.Event(), asyncio.Event()

    async def lines() -> Any:
        started.set()
        yield b"first"
        await aborted.wait()

    site.app = HttpLogin(StreamingResponse(lines()), site.authentication)
    following = asyncio.ensure_future(
        send_body(
            site.app,
            "/logs.jsonl",
            method="GET",
            headers={"authorization": token},
            on_abort=aborted.set,
        )
    )
    await started.wait()
    site.authentication.use(make_authenticator())
    assert not aborted.is_set()
    keys = api_keys()
    del keys["viewer"]
    site.authentication.use(make_authenticator(KnownCredentials(keys)))
    assert aborted.is_set()
    await following

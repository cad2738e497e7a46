"""HTTP endpoints for machines and their installers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

from google.protobuf.json_format import Parse, ParseError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest

from cogwork.auth.attempt_limiter import SharedAttemptLimiter
from cogwork.auth.errors import InvalidLogin, Unauthenticated
from cogwork.auth.refusal_delay import RefusalDelay
from cogwork.cloud.fleet.parts import find_part
from cogwork.cloud.fleet.secrets import SecretOwner, list_secrets
from cogwork.cloud.identity.access import CloudRole
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.identity.login import ActorLogin
from cogwork.cloud.identity.login_admission import LoginAdmission
from cogwork.cloud.machine.claim_codes import find_claimed_part, redeem_code
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.storage.records import Transaction
from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.core.limits.token_bucket import Rate
from cogwork.net.peer import host_of
from cogwork.wire.messages.claim_method import CLAIM_PATH
from cogwork.wire.table.status import status_of
from cogwork.wire.transports.asgi import CLIENT_KEY
from cogwork.wire.transports.http_body import ClientGone, read_body


class SecretNotKept(CogworkError):
    """The cloud can verify a secret, but can no longer show it."""

    status = "FAILED_PRECONDITION"


_MAX_LOGIN_SIZE: Final = 1 << 16
_WRONG_CODES: Final = Rate.every(2.0, burst=30)
"""Allowed rate of wrong claim codes of all clients together. A wrong code names no machine, so
there cannot be a rate for each machine."""
_HTTP_STATUS: Final = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
"""HTTP status codes by gRPC status. All others become 500."""


def machine_routes(context: CloudContext, login: ActorLogin) -> list[Route]:
    wrong_codes = SharedAttemptLimiter(context.clock.monotonic, _WRONG_CODES)
    admission, refusals = LoginAdmission(context.clock), RefusalDelay(context.clock)

    async def authenticate(request: Request) -> Response:
        """Log in a program without gRPC."""
        if "authorization" in request.headers:
            raise InvalidLogin("already authenticated; cannot re-authenticate")
        found = _parse_login(await read_body(request.receive, _MAX_LOGIN_SIZE))
        credentials = found.credentials
        token = await login.log_in(
            found.entity, credentials.type, credentials.payload, _address_of(request)
        )
        return JSONResponse({"accessToken": token})

    async def config(request: Request) -> Response:
        """Return the file with which a machine joins the cloud, if the caller owns the machine."""
        key = request.headers.get("key_id", ""), request.headers.get("key", "")
        part = request.query_params.get("id", "")
        if not all(key) or not part:
            raise InvalidRequest(
                "send the ID of a part as the parameter id, and an API key in the headers key_id "
                "and key"
            )
        await login.log_in(key[0], ActorType.API_KEY, key[1], _address_of(request))
        actor = Actor(ActorType.API_KEY, key[0])
        return JSONResponse(
            await context.records.read(lambda tx: _make_machine_file(tx, context, actor, part))
        )

    async def claim(request: Request) -> Response:
        """Return the file with which a machine joins the cloud, for a claim code."""
        code = _parse_claim(await read_body(request.receive, _MAX_LOGIN_SIZE))
        async with refusals.apply():
            try:
                async with admission.slot(_address_of(request)):
                    # Check the code in a read first: wrong codes must not occupy the only writer.
                    await context.records.read(lambda tx: _find_claimed_part(tx, context, code))
                file = await context.records.write(lambda tx: _redeem(tx, context, code))
            except Unauthenticated:
                wrong_codes.record_failure()
                raise
        return JSONResponse(file)

    return [
        Route(CLAIM_PATH, _explain_errors(claim), methods=["POST"]),
        Route("/rpc/v1/authenticate", _explain_errors(authenticate), methods=["POST"]),
        Route("/api/json1/config", _explain_errors(config), methods=["GET"]),
    ]


def _make_machine_file(
    tx: Transaction, context: CloudContext, actor: Actor, part: str
) -> dict[str, Any]:
    find_part(tx, context.make_call(actor), part, CloudRole.OWNER)
    return _format_machine_file(tx, context, part)


def _find_claimed_part(tx: Transaction, context: CloudContext, code: str) -> str:
    return find_claimed_part(tx, context.keyring, code, context.now())


def _redeem(tx: Transaction, context: CloudContext, code: str) -> dict[str, Any]:
    part = redeem_code(tx, context.keyring, code, context.now())
    return _format_machine_file(tx, context, part)


def _format_machine_file(tx: Transaction, context: CloudContext, part: str) -> dict[str, Any]:
    secret = list_secrets(tx, context.keyring, SecretOwner.PART, part)[0].secret
    if not secret:
        raise SecretNotKept(
            "the secret of this part cannot be shown; create another: "
            f"cogwork fleet part rotate {part}"
        )
    return {"cloud": {"id": part, "secret": secret, "app_address": context.name.url}}


def _parse_claim(body: bytes) -> str:
    try:
        code = json.loads(body)["code"]
    except (ValueError, KeyError, TypeError, RecursionError):
        code = None
    if not isinstance(code, str):
        raise InvalidRequest('expected {"code": "…"} as JSON')
    return code


def _parse_login(body: bytes) -> AuthenticateRequest:
    try:
        return Parse(body, AuthenticateRequest())
    except (ParseError, UnicodeDecodeError, RecursionError):
        raise InvalidLogin(
            'expected {"entity": "…", "credentials": {"type": "api-key", "payload": "…"}} as JSON'
        ) from None


def _address_of(request: Request) -> str:
    return host_of(request.scope["state"][CLIENT_KEY].address)


def _explain_errors(
    answer: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        try:
            found = await answer(request)
        except ClientGone:
            raise
        except Exception as error:  # as in gRPC, the client gets the reason
            status, message = status_of(error, request.url.path)
            found = JSONResponse(
                {"code": status.value, "message": message, "details": []},
                _HTTP_STATUS.get(status.name, 500),
            )
        found.headers["Cache-Control"] = "no-store"
        return found

    return respond

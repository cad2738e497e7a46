"""ASGI middleware that requires a login for HTTP requests, and serves the login itself.

If no login is required, all requests pass.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from cogwork.auth.errors import InvalidLogin, RoleTooLow, TooManyAttempts, Unauthenticated
from cogwork.auth.exempt_paths import EXEMPT_PAGES, LOGIN_PATH
from cogwork.auth.identity import Identity
from cogwork.auth.roles import Role
from cogwork.core.errors import CogworkError
from cogwork.net.peer import host_of
from cogwork.robot.middleware.authentication import Authentication, access_ended, check_role
from cogwork.wire.transports.asgi import ABORT_KEY, CLIENT_KEY, Application
from cogwork.wire.transports.http_body import ClientGone, Receive, read_body

if TYPE_CHECKING:  # not needed without login
    from cogwork.auth.authenticator import Authenticator

IDENTITY_KEY: Final = "identity"
"""Key of the caller's `Identity` in the state of the ASGI scope; the value is None without
login."""
_REQUIRED_ROLE: Final = Role.VIEWER
"""The role that pages, status, logs and images require."""
_MAX_BODY_SIZE: Final = 1 << 16
_MAX_LIFETIME: Final = 366 * 24 * 3600
"""Maximum lifetime in seconds. A client that wants a token without expiry omits the lifetime."""
_EXPECTED: Final = (
    'expected {"entity": "…", "credentials": {"type": "api-key", "payload": "…"}} as JSON'
)
_NOTICE: Final = (
    "This machine requires a login. Connect with an API key: from Python with the SDK, or from a "
    "terminal with COGWORK_API_KEY_ID and COGWORK_API_KEY set for cogwork status.\n"
)
_STATUS_BY_ERROR: Final[dict[type[CogworkError], int]] = {
    InvalidLogin: 400,
    Unauthenticated: 401,
    RoleTooLow: 403,
    TooManyAttempts: 429,
}


class HttpLogin:
    def __init__(self, application: Application, authentication: Authentication) -> None:
        self._application = application
        self._authentication = authentication

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        authenticator = self._authentication.authenticator
        if scope["path"] in EXEMPT_PAGES and scope["path"] != LOGIN_PATH:
            await self._application(scope, receive, send)
            return
        if authenticator is None:
            await self._respond_without_login(scope, receive, send)
            return
        try:
            if scope["path"] == LOGIN_PATH:
                self._authentication.check_confidential(scope["state"][CLIENT_KEY].is_confidential)
                response = await self._log_in(Request(scope), receive)
                await response(scope, receive, send)
                return
            identity = await self._authentication.ask_cloud_if_unlisted(
                lambda: self._identify(authenticator, scope)
            )
        except ClientGone:
            return
        except CogworkError as error:
            await _refuse(scope, error)(scope, receive, send)
            return
        await self._serve(identity, scope, receive, send)

    async def _respond_without_login(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            self._authentication.check_place(scope["state"][CLIENT_KEY].is_local)
        except CogworkError as error:
            await _refuse(scope, error, notice=f"{error}\n")(scope, receive, send)
            return
        if scope["path"] == LOGIN_PATH:
            text = "this machine requires no login; connect without credentials\n"
            await PlainTextResponse(text, 404)(scope, receive, send)
            return
        await self._serve(None, scope, receive, send)

    async def _serve(self, identity: Identity | None, scope: Any, receive: Any, send: Any) -> None:
        scope["state"][IDENTITY_KEY] = identity
        response = _RevocableResponse(identity, scope, receive, send)
        with self._authentication.hold(identity, response.revoke):
            await self._application(scope, receive, response.send)

    def _identify(self, authenticator: Authenticator, scope: Any) -> Identity:
        authorizations = Headers(scope=scope).getlist("authorization")
        client = scope["state"][CLIENT_KEY]
        newest = self._authentication.authenticator or authenticator
        identity = self._authentication.identify(newest, authorizations, client)
        check_role(identity, _REQUIRED_ROLE, scope["path"])
        return identity

    async def _log_in(self, request: Request, receive: Receive) -> Response:
        if request.method != "POST":
            return PlainTextResponse("method not allowed; use POST\n", 405, {"Allow": "POST"})
        if "authorization" in request.headers:
            raise InvalidLogin("already authenticated; cannot re-authenticate")
        login = _read_login(await read_body(receive, _MAX_BODY_SIZE))
        address = host_of(request.scope["state"][CLIENT_KEY].address)
        token = await self._authentication.log_in(
            login.entity, login.type, login.payload, address, login.lifetime
        )
        return JSONResponse({"accessToken": token})


class _RevocableResponse:
    """A response to a caller who may lose its access before the response is complete."""

    def __init__(self, identity: Identity | None, scope: Any, receive: Receive, send: Any) -> None:
        self._identity = identity
        self._scope = scope
        self._receive = receive
        self._send = send
        self._has_started = False
        self._is_revoked = False

    def revoke(self) -> None:
        """Abort the connection. If the response has not started yet, refuse the request instead,
        so that the client knows the reason."""
        if self._has_started:
            self._scope["state"][ABORT_KEY]()
        self._is_revoked = True

    async def send(self, message: Any) -> None:
        if not self._is_revoked:
            self._has_started = True
            await self._send(message)
        elif not self._has_started:
            self._has_started = True
            await _refuse(self._scope, access_ended(self._identity))(
                self._scope, self._receive, self._send
            )


def _refuse(scope: Any, error: CogworkError, notice: str = _NOTICE) -> Response:
    if scope["path"] == "/" and "authorization" not in Headers(scope=scope):
        # Return a success: supervisors check this path.
        return PlainTextResponse(notice)
    status = next((code for kind, code in _STATUS_BY_ERROR.items() if isinstance(error, kind)), 400)
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return PlainTextResponse(f"{error}\n", status, headers)


class _Login(NamedTuple):
    entity: str
    type: str
    payload: str
    lifetime: float | None
    """Seconds until the token expires; None if it does not expire."""


def _read_login(body: bytes) -> _Login:
    try:
        request = json.loads(body)
        credentials = request.get("credentials", {})
        login = _Login(
            request.get("entity", ""),
            credentials.get("type", ""),
            credentials.get("payload", ""),
            request.get("lifetime"),
        )
    except (ValueError, AttributeError, RecursionError):
        raise InvalidLogin(_EXPECTED) from None
    if not all(isinstance(each, str) for each in login[:3]):
        raise InvalidLogin(_EXPECTED)
    if login.lifetime is not None and not (
        type(login.lifetime) in (int, float) and 0 < login.lifetime <= _MAX_LIFETIME
    ):
        raise InvalidLogin(
            f'"lifetime" must be a number of seconds, more than 0 and at most {_MAX_LIFETIME}'
        )
    return login

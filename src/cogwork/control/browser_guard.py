"""ASGI middleware that rejects requests which other web sites cause a browser to send.

A page of another site must not be able to read or change anything here, with or without login.
Three checks prevent that: the Host header (DNS rebinding points an attacker's name at our address),
the Origin header, and fetch metadata. Response headers restrict every resource to the same origin.
Pages from origins in the configuration may make calls (CORS). Only the machine's own page, or a
program that sends the Origin of that page, may edit the configuration, run jobs or end sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response

from cogwork.auth.exempt_paths import LOGIN_PATH
from cogwork.control import job_run, session_end
from cogwork.control.configuration import EDIT_PATHS
from cogwork.net.host_names import is_allowed_host
from cogwork.wire.transports.asgi import SECURITY_HEADERS, Application
from cogwork.wire.transports.grpcweb import is_grpc_web

_ALLOWED_METHODS = ("GET", "HEAD")
_PAGE_PATHS = EDIT_PATHS | {session_end.PATH, job_run.PATH}
"""Paths that accept POST requests, only from the machine's own page."""
_CORS_HEADERS = {
    "Access-Control-Expose-Headers": "grpc-status, grpc-message, grpc-status-details-bin, opid, "
    "viam-smrn",
    "Vary": "Origin",
}
_PREFLIGHT_HEADERS = {
    "Access-Control-Allow-Methods": "POST",
    "Access-Control-Allow-Headers": "authorization, content-type, grpc-timeout, opid, rpc-host, "
    "traceparent, viam-sid, viam_client, x-grpc-web, x-user-agent",
    "Access-Control-Max-Age": "600",
}
_MAX_NAME_LENGTH = 100
_FOREIGN_SITES = ("cross-site", "same-site")


class HttpRefusal(NamedTuple):
    """The response to a rejected request."""

    status: int
    text: str
    headers: Mapping[str, str] = {}


class BrowserGuard:
    """ASGI middleware that answers rejected requests and adds security headers to all responses."""

    def __init__(
        self,
        application: Application,
        host_names: Callable[[], Collection[str]],
        origins: Callable[[], Collection[str]],
    ) -> None:
        """Wrap an application.

        `host_names` returns the names that a Host header may contain. `origins` returns the other
        sites whose pages may make calls. Both return lower-case texts.
        """
        self._application = application
        self._host_names = host_names
        self._origins = origins

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers, origins = Headers(scope=scope), self._origins()
        request = (scope["method"], scope["path"], headers)
        refusal = find_refusal(*request, self._host_names(), origins)
        responder: Application = self._application
        extra = dict(SECURITY_HEADERS)
        if refusal is not None:
            responder = PlainTextResponse(f"{refusal.text}\n", refusal.status, refusal.headers)
        elif _is_allowed_origin(headers, origins):
            extra |= {"Access-Control-Allow-Origin": headers["origin"], **_CORS_HEADERS}
            if scope["method"] == "OPTIONS":
                responder = Response(status_code=204, headers=_PREFLIGHT_HEADERS)
        await responder(scope, receive, _add_headers(send, extra))


def find_refusal(
    method: str,
    path: str,
    headers: Mapping[str, str],
    host_names: Collection[str],
    origins: Collection[str] = (),
) -> HttpRefusal | None:
    """Return the response if the request is rejected; None if it is allowed."""
    if "content-length" in headers and "transfer-encoding" in headers:
        # Prevent request smuggling: a proxy in front may use the other header to find the end of
        # the request.
        text = "the request has both Content-Length and Transfer-Encoding; send only one of them"
        return HttpRefusal(400, text, {"Connection": "close"})
    host = headers.get("host")
    # Accept a missing header: HTTP/1.0 clients may omit it, but browsers never do.
    if host is not None and not is_allowed_host(host, host_names):
        return HttpRefusal(
            421,
            f"host {_quote(host)} is not a name of this machine; to allow it, add the name to "
            "network.allowed_hosts in the configuration",
        )
    is_call = _is_call(method, path, headers)
    if is_call and _is_allowed_origin(headers, origins):
        return None
    is_from_page = method == "POST" and path in _PAGE_PATHS and not is_call
    if method not in _ALLOWED_METHODS and not is_from_page and not (is_call and method == "POST"):
        text = f"method not allowed over HTTP/1.1; use {' or '.join(_ALLOWED_METHODS)}"
        return HttpRefusal(405, text, {"Allow": ", ".join(_ALLOWED_METHODS)})
    origin = headers.get("origin")
    if origin is not None and not _is_same_origin(origin, host or ""):
        return HttpRefusal(
            403,
            "forbidden: cross-origin requests are not allowed; to allow calls from a web site, add "
            "its origin to network.allowed_origins in the configuration",
        )
    if headers.get("sec-fetch-site") in _FOREIGN_SITES and not _is_navigation(path, headers):
        return HttpRefusal(403, "forbidden: cross-site requests are not allowed")
    if is_from_page and not _is_from_own_page(headers):
        return HttpRefusal(
            403,
            "forbidden: only the page of this machine may do this; send its origin in the Origin "
            "header",
        )
    return None


def _is_call(method: str, path: str, headers: Mapping[str, str]) -> bool:
    """Return whether the request is a call, a login, or a CORS preflight."""
    if method == "OPTIONS":
        return headers.get("access-control-request-method") == "POST"
    return method == "POST" and (path == LOGIN_PATH or is_grpc_web(headers.get("content-type", "")))


def _is_allowed_origin(headers: Mapping[str, str], origins: Collection[str]) -> bool:
    return headers.get("origin", "").lower() in origins


def _is_same_origin(origin: str, host: str) -> bool:
    scheme, _, rest = origin.partition("://")
    # Accept both schemes, because a proxy in front may terminate HTTPS.
    return scheme in ("http", "https") and rest.lower() == host.lower()


def _is_from_own_page(headers: Mapping[str, str]) -> bool:
    """Return whether a page of this machine sent the request with these headers.

    The caller has already compared the Origin header with the host.
    """
    return "origin" in headers and headers.get("sec-fetch-site", "same-origin") == "same-origin"


def _is_navigation(path: str, headers: Mapping[str, str]) -> bool:
    """Return whether the request opens our page in a browser tab, for example from a link."""
    return (
        path == "/"
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )


def _quote(host: str) -> str:
    return ascii(host if len(host) <= _MAX_NAME_LENGTH else f"{host[:_MAX_NAME_LENGTH]}...")


def _add_headers(send: Any, extra: Mapping[str, str]) -> Any:
    async def send_with_headers(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": list(message.get("headers", ()))}
            headers = MutableHeaders(scope=message)
            for name, value in extra.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers

"""ASGI middleware that rejects requests that other web sites make a browser send.

There is no login, so a page of another site must not be able to read anything here. Three checks
prevent that: the Host header (DNS rebinding points an attacker's name at our address), the Origin
header, and fetch metadata. Response headers restrict every resource to the same origin.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

from cogwork.config.host_names import is_allowed_host
from cogwork.control.http_login import LOGIN_PATH
from cogwork.wire.http1 import SECURITY_HEADERS, Application

_ALLOWED_METHODS = ("GET", "HEAD")
_ALLOWED_POSTS = (("POST", LOGIN_PATH),)
_MAX_NAME_LENGTH = 100
_FOREIGN_SITES = ("cross-site", "same-site")


class HttpRefusal(NamedTuple):
    """The response to a rejected request."""

    status: int
    text: str
    headers: Mapping[str, str] = {}


class BrowserGuard:
    """ASGI middleware that answers rejected requests and adds security headers to all responses."""

    def __init__(self, application: Application, host_names: Callable[[], Collection[str]]) -> None:
        """`host_names` returns the names that a Host header may contain, in lower case."""
        self._application = application
        self._host_names = host_names

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = Headers(scope=scope)
        refusal = find_refusal(scope["method"], scope["path"], headers, self._host_names())
        responder: Application = self._application
        if refusal is not None:
            responder = PlainTextResponse(f"{refusal.text}\n", refusal.status, refusal.headers)
        await responder(scope, receive, _add_security_headers(send))


def find_refusal(
    method: str, path: str, headers: Mapping[str, str], host_names: Collection[str]
) -> HttpRefusal | None:
    """Return why the request is rejected, or None if it is allowed."""
    if "content-length" in headers and "transfer-encoding" in headers:
        # Request smuggling: a proxy in front may use the other header to find the end.
        text = "the request has both Content-Length and Transfer-Encoding; send only one of them"
        return HttpRefusal(400, text, {"Connection": "close"})
    host = headers.get("host")
    # HTTP/1.0 clients may omit the header; browsers never do.
    if host is not None and not is_allowed_host(host, host_names):
        return HttpRefusal(
            421,
            f"host {_quote(host)} is not a name of this machine; to allow it, add the name to "
            "network.allowed_hosts in the configuration",
        )
    if method not in _ALLOWED_METHODS and (method, path) not in _ALLOWED_POSTS:
        text = f"method not allowed over HTTP/1.1; use {' or '.join(_ALLOWED_METHODS)}"
        return HttpRefusal(405, text, {"Allow": ", ".join(_ALLOWED_METHODS)})
    origin = headers.get("origin")
    if origin is not None and not _is_same_origin(origin, host or ""):
        return HttpRefusal(403, "forbidden: cross-origin requests are not allowed")
    if headers.get("sec-fetch-site") in _FOREIGN_SITES and not _is_navigation(path, headers):
        return HttpRefusal(403, "forbidden: cross-site requests are not allowed")
    return None


def _is_same_origin(origin: str, host: str) -> bool:
    scheme, _, rest = origin.partition("://")
    # A proxy in front may terminate HTTPS.
    return scheme in ("http", "https") and rest.lower() == host.lower()


def _is_navigation(path: str, headers: Mapping[str, str]) -> bool:
    """Return whether the request opens our page in a browser tab, such as by following a link."""
    return (
        path == "/"
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )


def _quote(host: str) -> str:
    return ascii(host if len(host) <= _MAX_NAME_LENGTH else f"{host[:_MAX_NAME_LENGTH]}...")


def _add_security_headers(send: Any) -> Any:
    async def send_with_headers(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": list(message.get("headers", ()))}
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers

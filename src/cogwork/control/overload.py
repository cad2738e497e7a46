"""The error and the HTTP response for requests beyond a limit."""

from __future__ import annotations

from starlette.responses import PlainTextResponse, Response

from cogwork.core.errors import CogworkError

_RETRY_AFTER = "1"


class Overloaded(CogworkError):
    """A limit is reached; the message names the limit and what to do."""

    status = "RESOURCE_EXHAUSTED"


def overload_response(error: Overloaded) -> Response:
    return PlainTextResponse(f"{error}\n", 503, {"Retry-After": _RETRY_AFTER})

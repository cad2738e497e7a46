"""The HTTP endpoint with which the control page ends its session when it is hidden or closed.

The public API has no such method. Without this endpoint, motion would continue until the session
expires.
"""

from __future__ import annotations

import json
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from cogwork.auth.identity import Identity
from cogwork.control.http_login import IDENTITY_KEY
from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.robot.motion.session_manager import SessionManager, owner_of_caller
from cogwork.wire.transports.asgi import CLIENT_KEY
from cogwork.wire.transports.http_body import ClientGone, read_body

PATH: Final = "/session/end"
_MAX_BODY_SIZE: Final = 256


def session_end_route(sessions: SessionManager) -> Route:
    async def end_session(request: Request) -> Response:
        try:
            session_id = _read_id(await read_body(request.receive, _MAX_BODY_SIZE))
        except ClientGone:
            return Response(status_code=400)
        except CogworkError as error:
            return PlainTextResponse(f"{error}\n", 400)
        state = request.scope["state"]
        identity: Identity | None = state[IDENTITY_KEY]
        # Ignore a session that has expired or belongs to another client.
        sessions.end(session_id, owner_of_caller(state[CLIENT_KEY].address, identity))
        return Response(status_code=204)

    return Route(PATH, end_session, methods=["POST"])


def _read_id(body: bytes) -> str:
    try:
        session_id = json.loads(body)["id"]
    except (ValueError, TypeError, LookupError, RecursionError):
        session_id = None
    if not isinstance(session_id, str):
        raise InvalidRequest('expected {"id": "the id of the session"} as JSON')
    return session_id

"""Calls of an ASGI application without a network."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from cogwork.front.peer_name import Peer
from cogwork.wire.http1 import LOCAL_KEY, Application


@dataclass
class AsgiResponse:
    status: int
    headers: dict[str, str]
    body: bytes


async def send_request(
    application: Application,
    path: str = "/",
    *,
    method: str = "GET",
    query: str = "",
    client: str = "127.0.0.1",
    server: str = "127.0.0.1",
    **headers: str,
) -> AsgiResponse:
    """Send a request; `headers` have underscores for hyphens."""
    sent: list[dict[str, Any]] = []

    requests = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not requests:
            await asyncio.Event().wait()  # the client stays
        return requests.pop()

    async def send(message: Any) -> None:
        sent.append(message)

    request_headers = {"host": "localhost:8080", **headers}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [
            (name.replace("_", "-").encode(), value.encode())
            for name, value in request_headers.items()
        ],
        "scheme": "http",
        "http_version": "1.1",
        "client": (client, 50112),
        "server": ("localhost", 0),
        "state": {LOCAL_KEY: Peer.from_addresses((client, 50000), (server, 8080)).is_local},
    }
    await application(scope, receive, send)
    response_headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return AsgiResponse(sent[0]["status"], response_headers, body)

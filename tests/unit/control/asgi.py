"""Calls of an ASGI application without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cogwork.net.peer import Peer
from cogwork.wire.transports.asgi import ABORT_KEY, CLIENT_KEY, Application


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
    return await send_body(
        application, path, method=method, query=query, client=client, server=server, headers=headers
    )


async def send_body(
    application: Application,
    path: str,
    body: bytes = b"",
    *,
    method: str = "POST",
    query: str = "",
    client: str = "127.0.0.1",
    server: str = "127.0.0.1",
    headers: Mapping[str, str],
    on_abort: Callable[[], None] = lambda: None,
) -> AsgiResponse:
    """Send a request with a body. `on_abort` is called if the connection is aborted."""
    sent: list[dict[str, Any]] = []

    requests = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not requests:
            await asyncio.Event().wait()  # the client stays
        return requests.pop()

    async def send(message: Any) -> None:
        sent.append(message)

    peer = Peer.from_addresses((client, 50000), (server, 8080))
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
        "state": {ABORT_KEY: on_abort, CLIENT_KEY: peer},
    }
    await application(scope, receive, send)
    response_headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return AsgiResponse(sent[0]["status"], response_headers, body)

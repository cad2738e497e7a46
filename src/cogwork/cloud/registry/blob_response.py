"""HTTP responses with a blob, or with the requested range of a blob."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from cogwork.cloud.registry.byte_range import UnsatisfiableRange, parse_range
from cogwork.cloud.storage.blobs import Blobs
from cogwork.wire.transports.asgi import SECURITY_HEADERS


def respond_with_blob(
    blobs: Blobs, request: Request, digest: str, size: int, headers: Mapping[str, str]
) -> Response:
    """Respond with a blob. `headers` describe the content, such as its type."""
    etag = f'"{digest}"'
    found = {**SECURITY_HEADERS, "Accept-Ranges": "bytes", "ETag": etag, **headers}
    # Send a range only if the client has the beginning of the same content.
    is_same = request.headers.get("if-range", etag) == etag
    wanted = request.headers.get("range", "") if is_same and request.method == "GET" else ""
    try:
        part = parse_range(wanted, size)
    except UnsatisfiableRange as error:
        refusal = {**SECURITY_HEADERS, "Content-Range": f"bytes */{size}"}
        return PlainTextResponse(f"{error}\n", 416, headers=refusal)
    if part is not None:
        found["Content-Range"] = f"bytes {part.start}-{part.end - 1}/{size}"
    start, end = part or (0, size)
    found["Content-Length"] = str(end - start)
    if request.method == "HEAD":
        return Response(headers=found)
    chunks: AsyncIterator[bytes] = blobs.read(digest, start, end)
    return StreamingResponse(chunks, 206 if part is not None else 200, headers=found)

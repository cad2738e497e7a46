"""A response whose body is sent in slices."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

SLICE_SIZE = 16 * 1024
"""Maximum bytes that are buffered for a client that does not read."""


class SlicedResponse(Response):
    async def __call__(self, _: Any, __: Any, send: Any) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )
        body = memoryview(self.body)
        for start in range(0, len(body), SLICE_SIZE):
            piece = bytes(body[start : start + SLICE_SIZE])
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

"""Lets browsers call a gRPC server that does not serve gRPC-web itself, as an ASGI application."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import grpc.aio
import uvicorn

_HEAD = struct.Struct(">BI")
_TRAILERS = 0x80
_SKIPPED = ("host", "connection", "content-length", "content-type", "origin", "referer")


class GrpcWebProxy:
    def __init__(self, target: str) -> None:
        """`target`: the address of the gRPC server."""
        self._target = target

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        if scope["method"] == "GET":
            await _start(send, b"text/html")
            await send({"type": "http.response.body", "body": b"<!doctype html>"})
            return
        body, more = b"", True
        while more:
            part = await receive()
            body, more = body + part.get("body", b""), part.get("more_body", False)
        await _start(send, b"application/grpc-web+proto")
        metadata = [
            (name.decode(), value.decode())
            for name, value in scope["headers"]
            if name.decode() not in _SKIPPED and not name.startswith((b"accept", b"sec-"))
        ]
        status, text = 0, ""
        async with grpc.aio.insecure_channel(self._target) as channel:
            call: Any = channel.unary_stream(scope["path"])
            try:
                async for reply in call(body[_HEAD.size :], metadata=metadata, timeout=30):
                    await _send_frame(send, 0, reply)
            except grpc.aio.AioRpcError as error:
                status, text = error.code().value[0], error.details() or ""
        trailers = f"grpc-status: {status}\r\ngrpc-message: {text}\r\n".encode()
        await _send_frame(send, _TRAILERS, trailers)
        await send({"type": "http.response.body", "body": b""})


async def _start(send: Any, content_type: bytes) -> None:
    headers = [(b"content-type", content_type)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def _send_frame(send: Any, flags: int, data: bytes) -> None:
    frame = _HEAD.pack(flags, len(data)) + data
    await send({"type": "http.response.body", "body": frame, "more_body": True})


async def serve(address: str, port: int, target: str) -> None:
    config = uvicorn.Config(GrpcWebProxy(target), host=address, port=port, log_level="error")
    await asyncio.create_task(uvicorn.Server(config).serve())

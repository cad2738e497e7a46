"""gRPC-web through the public port, with a client that knows only its framing."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pytest
from google.protobuf.wrappers_pb2 import StringValue
from grpclib.const import Cardinality
from tests.contract.conftest import grpc_core
from tests.contract.test_listener import MIB, SERVICE, Site, serve_site
from tests.support.sizes import limit
from tests.support.waiting import pass_time, wait_until

from cogwork.auth.errors import Unauthenticated
from cogwork.core.errors import NotFound
from cogwork.wire.table.handlers import HandlerTable, Method, Stream
from cogwork.wire.transports.grpcweb import GrpcWebApp
from cogwork.wire.transports.http1 import Http1Server

__all__ = ["grpc_core"]

BINARY = "application/grpc-web+proto"
TEXT = "application/grpc-web-text+proto"
DEADLINE = 60.0


@dataclass
class Reply:
    messages: list[bytes]
    trailers: dict[str, str]
    headers: dict[str, str]

    @property
    def status(self) -> int:
        return int(self.trailers["grpc-status"])

    @property
    def message(self) -> str:
        return unquote(self.trailers.get("grpc-message", ""))


def frame(data: bytes, flags: int = 0) -> bytes:
    return bytes((flags,)) + len(data).to_bytes(4, "big") + data


def decode_text(body: bytes) -> bytes:
    """Decode base64 that may have padding in the middle, where a piece ended."""
    pieces, decoded = body.replace(b"=", b"= ").split(), b""
    joined = b""
    for piece in pieces:
        joined += piece
        if len(joined) % 4 == 0:
            decoded += base64.b64decode(joined)
            joined = b""
    return decoded


def parse_reply(body: bytes, headers: dict[str, str]) -> Reply:
    messages, trailers, at = [], {}, 0
    while at < len(body):
        size = int.from_bytes(body[at + 1 : at + 5], "big")
        data = body[at + 5 : at + 5 + size]
        if body[at] & 0x80:
            lines = data.decode().strip().split("\r\n")
            trailers = dict(line.split(": ", 1) for line in lines)
        else:
            messages.append(data)
        at += 5 + size
    return Reply(messages, trailers, headers)


def post(port: int, method: str, body: bytes, content_type: str = BINARY, **headers: str) -> Reply:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    try:
        sent = base64.b64encode(body) if "text" in content_type else body
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("POST", method, sent, {"Content-Type": content_type, **names})
        response = connection.getresponse()
        assert response.status == 200
        assert response.headers["content-type"] == content_type
        received = response.read()
        decoded = decode_text(received) if "text" in content_type else received
        return parse_reply(decoded, dict(response.headers))
    finally:
        connection.close()


class WebSite(Site):
    cancelled: int = 0

    def table(self) -> HandlerTable:
        table = super().table()
        methods = [
            Method(f"/{SERVICE}/Count", Cardinality.UNARY_STREAM, self._count, StringValue),
            Method(f"/{SERVICE}/Fail", Cardinality.UNARY_UNARY, self._fail, StringValue),
            Method(f"/{SERVICE}/Metadata", Cardinality.UNARY_UNARY, self._metadata, StringValue),
            Method(f"/{SERVICE}/Join", Cardinality.STREAM_UNARY, self._join, StringValue),
            Method(f"/{SERVICE}/Refused", Cardinality.UNARY_UNARY, self._echo),
            Method(f"/{SERVICE}/Exit", Cardinality.UNARY_UNARY, self._exit, StringValue),
            Method(f"/{SERVICE}/Silent", Cardinality.UNARY_UNARY, self._silent, StringValue),
            Method(f"/{SERVICE}/Forever", Cardinality.UNARY_STREAM, self._forever, StringValue),
        ]
        table.add(f"{SERVICE}", lambda: [*self._own(), *methods])
        return table

    def _own(self) -> list[Method]:
        return [
            Method(f"/{SERVICE}/Peer", Cardinality.UNARY_UNARY, self._peer, StringValue),
            Method(f"/{SERVICE}/Echo", Cardinality.UNARY_UNARY, self._echo),
        ]

    def check(self, method: Method, _: Stream) -> None:
        """Refuse a method before its request is read."""
        if method.path.endswith("Refused"):
            raise Unauthenticated("authentication required")

    async def _count(self, stream: Stream) -> None:
        for number in range(int(stream.request.value)):
            await stream.send_message(StringValue(value=str(number)))

    async def _fail(self, stream: Stream) -> None:
        raise NotFound(f"no {stream.request.value}: 100 % sûr\nnext line")

    async def _metadata(self, stream: Stream) -> None:
        await stream.send_initial_metadata(metadata={"opid": "7", "raw-bin": b"\x00\xff"})
        await stream.send_trailing_metadata(metadata={"cost": "3"})
        await stream.send_message(StringValue(value=json.dumps(sorted(stream.metadata))))

    async def _exit(self, _: Stream) -> None:
        raise SystemExit(3)

    async def _silent(self, _: Stream) -> None: ...

    async def _join(self, stream: Stream) -> None:
        parts = [message.value async for message in stream]
        await stream.send_message(StringValue(value="+".join(parts)))

    async def _forever(self, stream: Stream) -> None:
        try:
            await stream.send_message(StringValue(value="first"))
            await asyncio.Event().wait()
        finally:
            self.cancelled += 1


@pytest.fixture
async def site() -> AsyncIterator[WebSite]:
    web = WebSite()
    app = GrpcWebApp(web.table(), web.check)
    async with serve_site(http=Http1Server(lambda: app)) as inner:
        web.front, web.public = inner.front, inner.public
        yield web


async def call(site: Site, method: str, *texts: str, **options: Any) -> Reply:
    body = b"".join(frame(StringValue(value=text).SerializeToString()) for text in texts)
    return await asyncio.to_thread(post, site.port, f"/{SERVICE}/{method}", body, **options)


def texts_of(reply: Reply) -> list[str]:
    return [StringValue.FromString(message).value for message in reply.messages]


@pytest.mark.parametrize("content_type", [BINARY, TEXT, "application/grpc-web"])
async def test_unary_call(site: WebSite, content_type: str) -> None:
    reply = await call(site, "Peer", "", content_type=content_type)
    assert reply.status == 0
    assert texts_of(reply)[0].startswith("ipv4:127.0.0.1:")


@pytest.mark.parametrize("content_type", [BINARY, TEXT])
async def test_streamed_replies(site: WebSite, content_type: str) -> None:
    reply = await call(site, "Count", "100", content_type=content_type)
    assert (reply.status, texts_of(reply)) == (0, [str(number) for number in range(100)])


async def test_several_requests_in_one_body(site: WebSite) -> None:
    assert texts_of(await call(site, "Join", "a", "b", "c")) == ["a+b+c"]
    assert texts_of(await call(site, "Join")) == [""]


@pytest.mark.parametrize("content_type", [BINARY, TEXT])
async def test_large_messages_arrive_intact(site: WebSite, content_type: str) -> None:
    for size in (0, 1, 262_139, 262_140, 5 * MIB):
        body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
        path = f"/{SERVICE}/Echo"
        reply = await asyncio.to_thread(post, site.port, path, frame(body), content_type)
        assert (reply.status, reply.messages) == (0, [body])


async def test_metadata_of_64_kb_is_accepted(site: WebSite) -> None:
    reply = await call(site, "Metadata", "", padding="x" * 64_000)
    assert reply.status == 0
    assert "padding" in texts_of(reply)[0]


async def test_error_is_in_the_trailers(site: WebSite) -> None:
    reply = await call(site, "Fail", "camera")
    assert (reply.status, reply.message) == (5, "no camera: 100 % sûr\nnext line")
    assert reply.messages == []


async def test_driver_that_exits_fails_only_its_call(site: WebSite) -> None:
    assert (await call(site, "Exit", "")).status == 2
    assert (await call(site, "Peer", "")).status == 0


async def test_handler_without_a_reply_is_an_error(site: WebSite) -> None:
    reply = await call(site, "Silent", "")
    assert (reply.status, "without a reply" in reply.message) == (13, True)


async def send_beginning(site: WebSite, method: str, length: int, beginning: bytes) -> bytes:
    """Send only the beginning of a request, and return the answer up to the status."""
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    head = f"POST /{SERVICE}/{method} HTTP/1.1\r\nHost: x\r\nContent-Type: {BINARY}\r\n"
    writer.write(f"{head}Content-Length: {length}\r\n\r\n".encode() + beginning)
    answer = b""
    async with asyncio.timeout(DEADLINE):
        while b"grpc-status" not in answer:
            answer += await reader.read(4096)
    writer.close()
    await writer.wait_closed()
    return answer


async def test_refused_call_is_answered_before_its_request_arrives(site: WebSite) -> None:
    assert b"grpc-status: 16" in await send_beginning(site, "Refused", 30_000_000, b"")


async def test_millions_of_empty_messages_do_not_block_the_loop(site: WebSite) -> None:
    body = bytes(30 * MIB)
    for method, text in (("Peer", "exactly one message"), ("Join", "more than 1000 messages")):
        sending = asyncio.create_task(
            asyncio.to_thread(post, site.port, f"/{SERVICE}/{method}", body)
        )
        longest = 0.0
        while not sending.done():
            before = time.monotonic()
            await pass_time(0.001)
            longest = max(longest, time.monotonic() - before)
        assert text in (await sending).message
        assert longest < limit(2)


async def test_request_that_arrives_too_slowly_is_refused(
    site: WebSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cogwork.wire.transports.http_body._GRACE", 0.2)
    assert b"arrives too slowly" in await send_beginning(site, "Peer", 100, b"x")


async def test_unknown_method(site: WebSite) -> None:
    reply = await call(site, "Nothing", "")
    assert reply.status == 12


async def test_metadata_travels_both_ways(site: WebSite) -> None:
    reply = await call(site, "Metadata", "", authorization="Bearer x", viam_sid="s", cookie="c")
    assert {"authorization", "viam-sid"} <= set(json.loads(texts_of(reply)[0]))
    assert "cookie" not in json.loads(texts_of(reply)[0])
    assert reply.headers["opid"] == "7"
    assert reply.headers["raw-bin"] == "AP8"
    assert reply.trailers["cost"] == "3"


async def test_deadline_ends_the_call(site: WebSite) -> None:
    reply = await call(site, "Forever", "", grpc_timeout="100m")
    assert reply.status == 4
    await wait_until(lambda: site.cancelled == 1)


async def test_disconnecting_client_cancels_its_call(site: WebSite) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    head = f"POST /{SERVICE}/Forever HTTP/1.1\r\nHost: x\r\nContent-Type: {BINARY}\r\n"
    writer.write(f"{head}Content-Length: 5\r\n\r\n".encode() + frame(b""))
    async with asyncio.timeout(DEADLINE):
        while b"first" not in await reader.read(4096):
            pass
    writer.close()
    await writer.wait_closed()
    await wait_until(lambda: site.cancelled == 1)


BAD_BODIES = {
    "half a header": (b"\x00\x00", 3, "its last message is incomplete"),
    "half a message": (b"\x00\x00\x00\x00\x09x", 3, "its last message is incomplete"),
    "endless message": (b"\x00\xff\xff\xff\xff", 3, "its last message is incomplete"),
    "compressed": (frame(b"x", 1), 12, "compressed"),
    "none": (b"", 3, "exactly one message"),
    "two": (frame(b"") * 2, 3, "exactly one message"),
    "not protobuf": (frame(b"\xff\xff\xff"), 3, "is not a valid"),
    "too large": (frame(bytes(300_000)), 8, "at most"),
    "far too large": (frame(bytes(40 * MIB)), 8, "more than"),
}


@pytest.mark.parametrize("name", BAD_BODIES)
async def test_bad_request_is_explained(site: WebSite, name: str) -> None:
    body, status, text = BAD_BODIES[name]
    reply = await asyncio.to_thread(post, site.port, f"/{SERVICE}/Fail", body)
    assert reply.status == status
    assert text in reply.message


async def test_bad_base64_is_explained(site: WebSite) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    head = f"POST /{SERVICE}/Peer HTTP/1.1\r\nHost: x\r\nContent-Type: {TEXT}\r\n"
    writer.write(f"{head}Content-Length: 3\r\nConnection: close\r\n\r\n!!!".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert b"not valid base64" in decode_text(answer.split(b"\r\n")[-4])


@pytest.mark.parametrize("timeout", ["", "5", "x5S", "-5S", "5X", "999999999S"])
async def test_bad_deadline_is_explained(site: WebSite, timeout: str) -> None:
    reply = await call(site, "Peer", "", grpc_timeout=timeout)
    assert (reply.status, "grpc-timeout is not valid" in reply.message) == (3, True)

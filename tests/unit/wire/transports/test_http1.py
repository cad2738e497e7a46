from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from tests.support.waiting import pass_time, run_others, wait_until

from cogwork.serving.socket_directory import private_directory
from cogwork.wire.transports import http1_protocol
from cogwork.wire.transports.asgi import SECURITY_HEADERS, Application
from cogwork.wire.transports.http1 import Http1Server

MIB = 1 << 20
DEADLINE = 30.0

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


def make_pages() -> Application:
    """Return an application with two pages, built like the machine's own pages."""

    async def page(_: Request) -> Response:
        return PlainTextResponse("hello\n")

    async def missing(request: Request, _: Exception) -> Response:
        return PlainTextResponse(f"there is no {request.url.path} here\n", 404)

    return Starlette(
        routes=[Route("/", page), Route("/status.json", page)], exception_handlers={404: missing}
    )


@contextlib.asynccontextmanager
async def serve(make_application: Callable[[], Application]) -> AsyncIterator[Site]:
    with private_directory() as directory:
        site = Site(Http1Server(make_application), directory / "http")
        try:
            async with asyncio.timeout(30):
                yield site
        finally:
            await site.http.aclose()
            for writer in site.writers:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()


class Site:
    def __init__(self, http: Http1Server, path: Path) -> None:
        self.http = http
        self.path = path
        http.listen(path)
        self.writers: list[asyncio.StreamWriter] = []

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_unix_connection(self.path)
        self.writers.append(writer)
        return reader, writer

    async def request_until_close(self, request: bytes) -> bytes:
        """Send a request and return everything until the server closes."""
        reader, writer = await self.connect()
        writer.write(request)
        async with asyncio.timeout(DEADLINE):
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                return await reader.read()
        return b""


def get(path: str, *headers: str, version: str = "1.1") -> bytes:
    lines = [f"GET {path} HTTP/{version}", *(headers or ("Host: x",)), "", ""]
    return "\r\n".join(lines).encode("latin-1")


async def read_response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    async with asyncio.timeout(DEADLINE):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        return int(head.split()[1]), await reader.readexactly(length)


def logged_errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        f"{record.name}: {record.getMessage()}"
        for record in caplog.records
        if record.exc_info or record.levelno >= logging.ERROR
    ]


async def test_connection_is_reused_for_several_requests() -> None:
    async with serve(make_pages) as site:
        reader, writer = await site.connect()
        for path, status in (("/", 200), ("/status.json", 200), ("/nothing", 404), ("/", 200)):
            writer.write(get(path))
            assert (await read_response(reader))[0] == status
        assert site.http.connection_count == 1


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with serve(make_pages) as site:
        reader, writer = await site.connect()
        writer.write(get("/") + get("/a") + get("/status.json") + get("/b"))
        assert [(await read_response(reader))[0] for _ in range(4)] == [200, 404, 200, 404]


HOSTS = ("x", "", "[", "]:80", "a:b:c", "x:99999999", "x\xff", "x/../y", "[::1]:80", "x y")


@pytest.mark.parametrize("path", ["/nothing", "//", "/%ff%00", "/a?b#c", "*", "/status.json/"])
async def test_missing_page_is_answered_for_any_host_header(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve(make_pages) as site:
        for host in HOSTS:
            answer = await site.request_until_close(get(path, f"Host: {host}", "Connection: close"))
            assert int(answer.split()[1]) in (307, 400, 404), host
            if path == "/nothing":
                assert answer.endswith(b"there is no /nothing here\n")
    assert logged_errors(caplog) == []


MALFORMED = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
    "no path": b"GET\r\n\r\n",
    "no version": b"GET /\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    "a header without a colon": b"GET / HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n",
    "a header with a NUL": b"GET / HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n",
    "a path with a space": b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
    "a path that is no ASCII": b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
    "a length that is no number": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
    "a negative length": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "an unknown coding": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: zip\r\n\r\n",
    "a huge head": b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 200_000 + b"\r\n\r\n",
    "a huge path": b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 50_000 + b"\r\n",
    "noise": bytes(range(256)) * 40,
}


@pytest.mark.parametrize("name", MALFORMED)
async def test_malformed_request_gets_bad_request(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve(make_pages) as site:
        answer = await site.request_until_close(MALFORMED[name])
        # The answer may be lost when bytes are still in flight as the server closes.
        assert answer.startswith(b"HTTP/1.1 400 Bad Request") or len(MALFORMED[name]) > 10_000
        for header, value in SECURITY_HEADERS.items():
            assert not answer or f"\r\n{header}: {value}\r\n".encode() in answer
        assert b"Traceback" not in answer
        reader, writer = await site.connect()
        writer.write(get("/"))
        assert (await read_response(reader))[0] == 200
    assert logged_errors(caplog) == []


@pytest.mark.parametrize("after", [b"zz\r\n", b"\xff" * 50, b"-1\r\n\r\n", b"5\r\nabc"])
async def test_malformed_body_after_the_answer_is_tolerated(
    after: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve(make_pages) as site:
        reader, writer = await site.connect()
        writer.write(b"POST /no HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert (await read_response(reader))[0] == 404
        writer.write(after)
        writer.write_eof()
        assert b"Traceback" not in await reader.read()
    assert logged_errors(caplog) == []


@pytest.mark.parametrize("body", [b"zz\r\n", b"3;a=\nb\r\nabc\r\n0\r\n\r\n"])
async def test_malformed_body_before_the_answer_gets_bad_request(
    body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    head = b"POST /no HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with serve(make_pages) as site:
        answer = await site.request_until_close(head + body)
        assert answer.startswith(b"HTTP/1.1 400 Bad Request")
        assert answer.count(b"HTTP/1.1") == 1
    assert logged_errors(caplog) == []


async def test_unfinished_request_head_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timeout applies even while bytes keep arriving."""
    monkeypatch.setattr(http1_protocol, "_HEADERS_TIMEOUT", 0.3)
    async with serve(make_pages) as site:
        reader, writer = await site.connect()
        sending = asyncio.ensure_future(_drip(writer, get("/", "Host: " + "x" * 1000)))
        started = asyncio.get_running_loop().time()
        # Closed, reset, or broken by a byte that was sent after that.
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        sending.cancel()
        assert 0.25 < asyncio.get_running_loop().time() - started < 3
        await asyncio.wait({sending})


async def test_unfinished_second_request_head_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1_protocol, "_HEADERS_TIMEOUT", 0.3)
    async with serve(make_pages) as site:
        reader, writer = await site.connect()
        writer.write(get("/"))
        assert (await read_response(reader))[0] == 200
        sending = asyncio.ensure_future(_drip(writer, get("/", "Host: " + "x" * 1000)))
        # Closed, reset, or broken by a byte that was sent after that.
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        sending.cancel()
        await asyncio.wait({sending})


async def test_slow_answer_does_not_hit_the_head_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1_protocol, "_HEADERS_TIMEOUT", 0.1)
    resume = asyncio.Event()

    async def slow_app(scope: Any, receive: Any, send: Any) -> None:
        await resume.wait()
        await _reply(send, b"at last")

    async with serve(lambda: slow_app) as site:
        reader, writer = await site.connect()
        request = get("/")
        writer.write(request[:10])
        await run_others()
        writer.write(request[10:])
        with pytest.raises(TimeoutError):
            # Only waiting can show that nothing happens.
            async with asyncio.timeout(0.4):
                await reader.read(1)
        resume.set()
        assert await read_response(reader) == (200, b"at last")


async def _drip(writer: asyncio.StreamWriter, data: bytes) -> None:
    for byte in data:
        writer.write(bytes([byte]))
        await pass_time(0.02)


async def _reply(send: Any, body: bytes) -> None:
    length = str(len(body)).encode()
    headers = [(b"content-length", length)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def test_unread_large_body_is_discarded_in_bounded_memory() -> None:
    async with serve(make_pages) as site:
        reader, writer = await site.connect()
        writer.write(get("/"))
        await read_response(reader)
        before = psutil.Process().memory_info().rss
        writer.write(b"POST /no HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (64 * MIB))
        assert (await read_response(reader))[0] == 404
        chunk = bytes(MIB)
        for _ in range(64):
            writer.write(chunk)
            await writer.drain()
        writer.write(get("/"))
        assert (await read_response(reader))[0] == 200
        assert psutil.Process().memory_info().rss - before < 20 * MIB


async def test_client_that_does_not_read_blocks_only_itself() -> None:
    sent = 0

    async def flood_app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal sent
        if scope["path"] == "/":
            await _reply(send, b"hello")
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(256):
            await send({"type": "http.response.body", "body": bytes(MIB), "more_body": True})
            sent += 1
        await send({"type": "http.response.body", "body": b""})

    async with serve(lambda: flood_app) as site:
        _, unread = await site.connect()
        cast("asyncio.Transport", unread.transport).pause_reading()
        unread.write(get("/flood"))
        reader, writer = await site.connect()
        for _ in range(20):
            writer.write(get("/"))
            assert await read_response(reader) == (200, b"hello")
        assert sent < 32


async def test_client_that_does_not_read_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1_protocol, "_WRITE_TIMEOUT", 0.3)
    ended = asyncio.Event()

    async def flood_app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(64):
            await send({"type": "http.response.body", "body": bytes(MIB), "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        ended.set()

    async with serve(lambda: flood_app) as site:
        _, unread = await site.connect()
        cast("asyncio.Transport", unread.transport).pause_reading()
        unread.write(get("/"))
        async with asyncio.timeout(DEADLINE):
            await ended.wait()
        await wait_until(lambda: site.http.connection_count == 0)


async def test_client_that_reads_slowly_is_not_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1_protocol, "_WRITE_TIMEOUT", 1.0)
    size, part = 8 * MIB, 16 * 1024

    async def large_app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(size // part):
            await send({"type": "http.response.body", "body": bytes(part), "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async with serve(lambda: large_app) as site:
        reader, writer = await site.connect()
        writer.write(get("/", "Host: x", "Connection: close"))
        received = 0
        async with asyncio.timeout(DEADLINE):
            while data := await reader.read(128 * 1024):
                received += len(data)
                await pass_time(0.02)  # the client reads slowly
        assert received > size


@pytest.mark.parametrize("error", [ValueError("ouch"), SystemExit(1), KeyboardInterrupt()])
async def test_failing_application_gets_internal_server_error(error: BaseException) -> None:
    async def failing_app(scope: Any, receive: Any, send: Any) -> None:
        raise error

    async with serve(lambda: failing_app) as site:
        for _ in range(2):
            answer = await site.request_until_close(get("/"))
            assert answer.startswith(b"HTTP/1.1 500 ")
            assert b"Internal Server Error\r\n" in answer
            assert b"ouch" not in answer
            assert b"Traceback" not in answer


@pytest.mark.parametrize(
    "headers",
    [
        ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: eA=="),
        ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAM"),
        ("Expect: 100-continue",),
        ("Connection: close",),
        ("Transfer-Encoding: chunked",),
    ],
)
async def test_upgrade_and_other_headers_are_tolerated(
    headers: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    async with serve(make_pages) as site:
        reader, writer = await site.connect()
        writer.write(get("/", "Host: x", *headers))
        assert (await read_response(reader))[0] == 200
    assert logged_errors(caplog) == []


async def test_close_ends_running_requests() -> None:
    """A request that is never answered must not block the shutdown."""
    ended = asyncio.Event()

    async def hanging_app(scope: Any, receive: Any, send: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with serve(lambda: hanging_app) as site:
        readers = []
        for request in (get("/"), get("/")[:20], b""):
            reader, writer = await site.connect()
            writer.write(request)
            readers.append(reader)
        await wait_until(lambda: site.http.connection_count == 3)
        async with asyncio.timeout(60):
            await site.http.aclose()
        assert ended.is_set()
        assert site.http.connection_count == 0
        for reader in readers:
            with contextlib.suppress(ConnectionResetError):
                await reader.read()


async def test_close_without_connections() -> None:
    await Http1Server(make_pages).aclose()


async def test_application_that_cannot_be_created_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def raise_import_error() -> Application:
        raise ImportError("no starlette")

    async with serve(raise_import_error) as site:
        for _ in range(2):
            assert await site.request_until_close(get("/")) == b""
    assert caplog.text.count("cannot serve an HTTP connection: no starlette") == 2

"""A gRPC client that sends whatever it is given: any path, header and message bytes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from urllib.parse import unquote

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
    WindowUpdated,
)
from h2.exceptions import ProtocolError
from tests.support.network.http2_frames import message

Header = tuple[str | bytes, str | bytes]


@dataclass
class Answer:
    status: int | None = None
    """gRPC's; None: the call ended without one."""
    words: str = ""
    http: int = 0
    reset: int | None = None
    """HTTP/2's reason, when the server ended the call that way."""
    body: bytearray = field(default_factory=bytearray)

    def take(self, headers: Iterable[Header]) -> None:
        for raw_name, raw_value in headers:
            name, value = bytes_of(raw_name), bytes_of(raw_value)
            if name == b":status":
                self.http = int(value)
            elif name == b"grpc-status":
                self.status = int(value)
            elif name == b"grpc-message":
                self.words = unquote(value.decode(errors="replace"))


class Gone(Exception):
    """The server closed the connection."""


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        config = H2Configuration(
            header_encoding=None,
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
            validate_inbound_headers=False,
        )
        self._h2 = H2Connection(config)
        self._answers: dict[int, tuple[Answer, asyncio.Future[Answer]]] = {}
        self._more_window = asyncio.Event()
        self._gone: str | None = None

    @property
    def is_gone(self) -> bool:
        return self._gone is not None

    async def call(
        self,
        path: str | bytes,
        body: bytes,
        *,
        besides: Iterable[Header] = (),
        instead: Iterable[Header] | None = None,
        framed: bool = True,
        ends: bool = True,
    ) -> Answer:
        """Besides or instead of the headers that a well-behaved client sends.

        Unframed: the bytes are not even a message of gRPC. `ends`: whether the request ends with
        them.
        """
        if self._gone is not None:
            raise Gone(self._gone)
        number = self._h2.get_next_available_stream_id()
        ended: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answers[number] = (Answer(), ended)
        try:
            self._h2.send_headers(number, [*_default_headers(path, instead), *besides])
            await self._send(number, message(body) if framed else body, ended, ends=ends)
            return await ended
        finally:
            del self._answers[number]
            with contextlib.suppress(ProtocolError):
                self._h2.reset_stream(number, 8)
                self._flush()

    def begin(self) -> None:
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(1 << 30)
        self._flush()

    async def run(self) -> None:
        """Read until the connection is closed."""
        try:
            while data := await self._reader.read(1 << 20):
                for event in self._h2.receive_data(data):
                    self._handle_event(event)
                self._flush()
            self._end("the server closed the connection")
        except (OSError, ProtocolError) as error:
            self._end(repr(error))
        except asyncio.CancelledError:
            self._end("the client was closed")
            raise

    async def _send(
        self, number: int, data: bytes, ended: asyncio.Future[Answer], *, ends: bool
    ) -> None:
        """Send as much as the server accepts before it answers."""
        view = memoryview(data)
        try:
            while view:
                if ended.done():
                    return
                size = min(
                    self._h2.local_flow_control_window(number),
                    self._h2.max_outbound_frame_size,
                    len(view),
                )
                if size <= 0:
                    self._more_window.clear()
                    await self._more_window.wait()
                    continue
                self._h2.send_data(number, bytes(view[:size]))
                view = view[size:]
                self._flush()
                await self._writer.drain()
            if ends:
                self._h2.end_stream(number)
                self._flush()
        except (ProtocolError, OSError):
            # The server has closed the call or the connection, and says why.
            return

    def _handle_event(self, event: Event) -> None:
        if isinstance(event, WindowUpdated):
            self._more_window.set()
        elif isinstance(event, ConnectionTerminated):
            self._end(f"the server said goodbye: {event.error_code}")
        elif isinstance(event, DataReceived):
            self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        number = getattr(event, "stream_id", None)
        if number not in self._answers:
            return
        answer, ended = self._answers[number]
        if isinstance(event, ResponseReceived | TrailersReceived):
            answer.take(event.headers or ())
        elif isinstance(event, DataReceived):
            answer.body += event.data or b""
        elif isinstance(event, StreamReset):
            answer.reset = int(event.error_code or 0)
        if isinstance(event, StreamEnded | StreamReset) and not ended.done():
            ended.set_result(answer)
            self._more_window.set()

    def _end(self, why: str) -> None:
        self._gone = self._gone or why
        self._more_window.set()
        for _, ended in self._answers.values():
            if not ended.done():
                ended.set_exception(Gone(why))

    def _flush(self) -> None:
        if data := self._h2.data_to_send():
            self._writer.write(data)


@contextlib.asynccontextmanager
async def connected(port: int) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    client = Client(reader, writer)
    client.begin()
    running = asyncio.ensure_future(client.run())
    try:
        yield client
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _default_headers(path: str | bytes, instead: Iterable[Header] | None) -> list[Header]:
    named: list[Header] = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
    ]
    if instead is not None:
        return [*named, *instead]
    return [*named, ("te", "trailers"), ("content-type", "application/grpc")]


def bytes_of(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)

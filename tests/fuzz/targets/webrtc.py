"""What WebRTC clients and browsers send."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any, cast

from aiortc.sdp import SessionDescription, candidate_from_sdp
from google.protobuf.message import DecodeError
from google.protobuf.wrappers_pb2 import StringValue
from grpclib.const import Cardinality
from tests.fuzz.target import ContractViolation, Target, allow_errors, decode_lossy
from tests.support.paths import TESTS
from tests.support.waiting import run_others
from viam.gen.proto.rpc.webrtc.v1.grpc_pb2 import Response

from cogwork.helpers.message_stream import MessageSplitter, join_messages
from cogwork.net import session_description
from cogwork.net.peer import Peer
from cogwork.wire.table.handlers import HandlerTable, Method, Stream
from cogwork.wire.transports.asgi import ABORT_KEY, CLIENT_KEY
from cogwork.wire.transports.data_channel import DataChannel
from cogwork.wire.transports.grpcweb import CONTENT_TYPE, GrpcWebApp
from cogwork.wire.transports.unread_replies import UnreadReplies

_RECORDED = TESTS / "unit" / "wire" / "recorded_frames.json"
_SERVICE = "viam.component.sensor.v1.SensorService"
_OFFER = """v=0
o=- 1 1 IN IP4 127.0.0.1
s=-
t=0 0
a=group:BUNDLE 0
m=application 9 UDP/DTLS/SCTP webrtc-datachannel
c=IN IP4 0.0.0.0
a=candidate:1 1 udp 2130706431 192.0.2.1 50000 typ host
a=candidate:2 1 udp 1 6f2b.local 50001 typ host
a=ice-ufrag:abcd
a=ice-pwd:0123456789012345678901
a=fingerprint:sha-256 {}
a=setup:actpass
a=mid:0
a=sctp-port:5000
""".format(":".join(["AB"] * 32))


async def _echo(stream: Stream) -> None:
    async for message in stream:
        await stream.send_message(message)


def _table() -> HandlerTable:
    table = HandlerTable()
    methods = [
        Method(f"/{_SERVICE}/GetReadings", Cardinality.STREAM_STREAM, _echo, StringValue),
        Method(f"/{_SERVICE}/Echo", Cardinality.UNARY_UNARY, _echo, None),
    ]
    table.add(_SERVICE, lambda: methods)
    return table


class _Transport:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.is_aborted = False

    def write(self, data: bytes) -> None:
        self.written += data

    def abort(self) -> None:
        self.is_aborted = True

    def is_closing(self) -> bool:
        return self.is_aborted

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def target_channel(data: bytes) -> None:
    """Check that every reply is a frame, and that no call ends twice without beginning again."""
    frames = data.split(b"\0FRAME")
    asyncio.run(_receive(frames))


async def _receive(frames: list[bytes]) -> None:
    transport, table = _Transport(), _table()
    client = Peer("webrtc:192.0.2.7:1", is_encrypted=True)
    channel = DataChannel(table, client, {}, UnreadReplies(), lambda: None)
    channel.connection_made(cast("Any", transport))
    for frame in frames:
        channel.data_received(join_messages([frame]))
        await run_others()
    await run_others(5)
    channel.connection_lost(None)
    await asyncio.gather(*channel._tasks, return_exceptions=True)
    open_calls: set[int] = set()
    for reply in MessageSplitter().feed(transport.written):
        try:
            response = Response.FromString(reply)
        except DecodeError as error:
            raise ContractViolation("a reply is not a frame") from error
        number, kind = response.stream.id, response.WhichOneof("type")
        if kind == "headers":
            open_calls.add(number)
        elif number not in open_calls:
            raise ContractViolation(f"{kind} of a call that has not begun")
        if kind == "trailers":
            open_calls.discard(number)


def target_offer(data: bytes) -> None:
    """Check that what is accepted has no names that a library would resolve."""
    text = base64.b64encode(json.dumps({"type": "offer", "sdp": decode_lossy(data)}).encode())
    with allow_errors(data, ValueError):
        sdp = session_description.decode(text.decode(), "offer")
        if any(line.startswith("a=candidate:2 1 udp 1 6f2b.local") for line in sdp.splitlines()):
            raise ContractViolation("a candidate with a name is kept")
        # The process that reads it reports every error of the library.
        try:
            SessionDescription.parse(sdp)
        except Exception:
            return
    with allow_errors(data, ValueError):
        session_description.decode(decode_lossy(data), "answer")


def target_candidate(data: bytes) -> None:
    text = decode_lossy(data)
    if not session_description.is_usable_candidate(text):
        return
    with allow_errors(data, ValueError, AssertionError, IndexError):
        candidate_from_sdp(text.removeprefix("candidate:"))


def target_grpcweb(data: bytes) -> None:
    """Check that every request gets a complete response."""
    sent: list[Any] = []
    content_type = f"{CONTENT_TYPE}-text" if data[:1] == b"A" else CONTENT_TYPE

    async def receive() -> Any:
        if not parts:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": parts.pop(), "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    parts = [data]
    scope = {
        "type": "http",
        "path": f"/{_SERVICE}/GetReadings",
        "headers": [(b"content-type", content_type.encode())],
        "state": {ABORT_KEY: lambda: None, CLIENT_KEY: Peer("192.0.2.7:1", is_encrypted=True)},
    }
    asyncio.run(GrpcWebApp(_table(), lambda *_: None)(scope, receive, send))
    if not sent or sent[-1].get("more_body"):
        raise ContractViolation("the response is not complete")


def _channel_seeds() -> list[bytes]:
    recorded = json.loads(_RECORDED.read_text())
    calls = [call for calls in recorded.values() for call in calls]
    return [
        b"\0FRAME".join(base64.b64decode(each) for each in call["frames"])
        for call in calls
        if call["method"].startswith(f"/{_SERVICE}/")
    ]


def _grpcweb_seeds() -> list[bytes]:
    message = StringValue(value="hello").SerializeToString()
    frame = b"\0" + len(message).to_bytes(4, "big") + message
    return [frame, frame + frame, base64.b64encode(frame)]


TARGETS = (
    Target(
        "webrtc.channel",
        target_channel,
        _channel_seeds,
        (
            "cogwork.wire.transports.data_channel",
            "cogwork.wire.transports.channel_frames",
            "cogwork.wire.transports.packet_assembler",
            "cogwork.wire.transports.received_call",
        ),
        (b"\0FRAME", b"grpc-timeout", b"\x0a\x00", b"\x1a\x02\x18\x01", b"\x20\x01"),
    ),
    Target(
        "webrtc.offer",
        target_offer,
        lambda: [_OFFER.replace("\n", "\r\n").encode(), _OFFER.encode()],
        ("cogwork.net.session_description",),
        (b"m=video 9 UDP/TLS/RTP/SAVPF 96", b"a=candidate:", b"a=mid:", b"a=recvonly", b"\r\n"),
    ),
    Target(
        "webrtc.candidate",
        target_candidate,
        lambda: [
            b"candidate:1 1 udp 2130706431 192.0.2.1 50000 typ host",
            b"candidate:2 1 udp 1 192.0.2.1 5 typ srflx raddr 10.0.0.1 rport 6",
        ],
        ("cogwork.net.session_description:is_usable_candidate",),
        (b" typ ", b" raddr ", b".local", b"tcptype", b"::1"),
    ),
    Target(
        "webrtc.grpcweb",
        target_grpcweb,
        _grpcweb_seeds,
        ("cogwork.wire.transports.grpcweb", "cogwork.wire.transports.received_call"),
        (b"\x00\x00\x00\x00\x01", b"\x80", b"\x01", b"AAAAAAE="),
    ),
)

"""Renders docs/reference/limits.md: the limits for one client, and for all clients together."""

from __future__ import annotations

from typing import NamedTuple

from cogwork.core.limits.byte_budget import request_budget, upload_budget
from cogwork.front.connections import DEFAULT_LIMITS as CONNECTIONS
from cogwork.front.http2_monitor import MonitorLimits
from cogwork.front.relay import REQUEST_TIMEOUT
from cogwork.resource.messages.structs import MAX_EXTRA_VALUES
from cogwork.resource.sdk import clean_import as sdk
from cogwork.robot.middleware.operations import MAX_CALL_SECONDS
from cogwork.robot.motion.open_sessions import SessionLimits
from cogwork.robot.video.video_streams import MAX_STREAMS, MAX_VIDEOS
from cogwork.wire.table.concurrency_limit import ConcurrencyLimits
from cogwork.wire.table.event_streams import EventStreamLimits
from cogwork.wire.table.first_message import FIRST_MESSAGE_TIMEOUT
from cogwork.wire.table.request_limits import (
    DEFAULT_MAX_SIZE,
    MAX_COMMAND_ELEMENTS,
    MAX_ELEMENTS,
    MAX_REQUEST_SIZE,
    MAX_UPLOAD_SIZE,
)
from cogwork.wire.transports.data_channel import MAX_CALLS
from cogwork.wire.transports.webrtc_peers import MAX_PEERS

assert sdk.VERSION  # must precede any other import of the SDK

_GIB = 1 << 30
_HEAD = """# Limits

What one client, and all clients together, may use of a machine. A client that exceeds a limit is
told so; others go on. A *client* is a connection. `RESOURCE_EXHAUSTED` comes with a sentence that
names the limit.

The budgets of memory are parts of a quarter of the computer's memory, or of its container's, and of
3 GiB at most. The figures in the table are for a computer with 4 GiB.

This page is generated from the code.
"""


class Limit(NamedTuple):
    what: str
    value: str
    seen: str
    """The error that a client gets when it exceeds the limit."""


def render_limits_page() -> str:
    parts = [_HEAD]
    for title, limits in _list_limits().items():
        parts.append(f"\n## {title}\n\n| limit | value | what a client sees |\n|---|---|---|\n")
        parts += (f"| {each.what} | {each.value} | {each.seen} |\n" for each in limits)
    return "".join(parts)


def _list_limits() -> dict[str, list[Limit]]:
    return {
        "Connections": _connections(),
        "Calls and streams": _calls(),
        "Bytes": _bytes(),
        "Rates": _rates(),
        "Times": _times(),
    }


def _connections() -> list[Limit]:
    sessions = SessionLimits()
    return [
        Limit(
            "open connections",
            f"{CONNECTIONS.total:,}",
            "the one that is least in use is closed for a new one",
        ),
        Limit("of them from one address", f"{CONNECTIONS.per_host:,}", "the same"),
        Limit("WebRTC clients", f"{MAX_PEERS}", "`RESOURCE_EXHAUSTED`, unless its role is higher"),
        Limit("sessions", f"{sessions.total:,}", "`RESOURCE_EXHAUSTED`, if none is idle"),
        Limit("sessions of one client", f"{sessions.per_client}", "the same"),
        Limit("videos of one client", f"{MAX_VIDEOS}", "`RESOURCE_EXHAUSTED`"),
        Limit("videos that are encoded", f"{MAX_STREAMS}", "`RESOURCE_EXHAUSTED`"),
    ]


def _calls() -> list[Limit]:
    calls, events, frames = ConcurrencyLimits(), EventStreamLimits(), MonitorLimits()
    return [
        Limit(
            "calls of a resource that run at the same time, shared equally between clients",
            f"{calls.running}",
            f"further ones wait for {calls.timeout:g} s, then `RESOURCE_EXHAUSTED`",
        ),
        Limit(
            "calls of one client that wait for a resource",
            f"{calls.waiting}",
            "`RESOURCE_EXHAUSTED` at once",
        ),
        Limit(
            "streams that wait for events, of one client",
            f"{events.per_client}",
            "`RESOURCE_EXHAUSTED`",
        ),
        Limit(
            "such streams of all clients, shared equally",
            f"{events.total:,}",
            "`RESOURCE_EXHAUSTED`; the newest of the client with most gives way to one with fewer",
        ),
        Limit("calls and streams of one WebRTC connection", f"{MAX_CALLS}", "`RESOURCE_EXHAUSTED`"),
        Limit("streams of one HTTP/2 connection", "1,024", "its library waits"),
        Limit(
            "requests that have sent headers but no message, of one connection",
            f"{frames.waiting}",
            "the connection is closed",
        ),
        Limit(
            "requests whose message is incomplete, of one connection",
            f"{frames.incomplete}",
            "the connection is closed",
        ),
    ]


def _bytes() -> list[Limit]:
    requests, uploads = request_budget(4 * _GIB), upload_budget(4 * _GIB)
    return [
        Limit("a request", _size(DEFAULT_MAX_SIZE), "`RESOURCE_EXHAUSTED`"),
        Limit(
            "a request with an image, a file or other data, and `DoCommand`",
            _size(MAX_REQUEST_SIZE),
            "`RESOURCE_EXHAUSTED`",
        ),
        Limit(
            "the archive of a module, in one message to a cloud",
            _size(MAX_UPLOAD_SIZE),
            "`RESOURCE_EXHAUSTED`",
        ),
        Limit("elements in the lists of a request", f"{MAX_ELEMENTS:,}", "`RESOURCE_EXHAUSTED`"),
        Limit("elements of a command", f"{MAX_COMMAND_ELEMENTS:,}", "`RESOURCE_EXHAUSTED`"),
        Limit("values in `extra`", f"{MAX_EXTRA_VALUES:,}", "`INVALID_ARGUMENT`"),
        Limit(
            "metadata of a call",
            "64 kB, a little more with gRPC-web",
            "`RESOURCE_EXHAUSTED`; HTTP 400 with gRPC-web",
        ),
        Limit(
            "requests that are being served, their copies included, of all clients",
            _size(requests.total),
            "`RESOURCE_EXHAUSTED`; a client that holds nothing may exceed it with one request",
        ),
        Limit("of them for one client", _size(requests.per_client), "the same"),
        Limit(
            "large requests that have not arrived yet",
            _size(uploads.total),
            "its upload waits, as on a slow network",
        ),
        Limit("replies that a client has not read", "16 MiB", "its next calls wait"),
    ]


def _rates() -> list[Limit]:
    frames = MonitorLimits()
    return [
        Limit(
            "pings, settings and other frames without data, each second",
            f"{frames.control_frames:,}; a ping for each frame of data that it receives is free",
            "the connection is closed",
        ),
        Limit(
            "window updates, each second", f"{frames.window_updates:,}", "the connection is closed"
        ),
    ]


def _times() -> list[Limit]:
    return [
        Limit("a unary call without a deadline", f"{MAX_CALL_SECONDS:g} s", "`DEADLINE_EXCEEDED`"),
        Limit(
            "until the first message of a stream of requests",
            f"{FIRST_MESSAGE_TIMEOUT:g} s",
            "`INVALID_ARGUMENT`",
        ),
        Limit(
            "without progress of a request that has begun",
            f"{REQUEST_TIMEOUT:g} s",
            "the connection is closed",
        ),
    ]


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"

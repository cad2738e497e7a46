"""The event journal: one line per event of the machine, kept on disk across restarts.

It shows when something happened, and why a resource is in its state. Events are never deduplicated.
The size is bounded: the oldest lines are deleted.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cogwork.core.clock import Clock
from cogwork.core.escape import escape_json
from cogwork.graph.events import CallAbandoned, CallFailed, CallSlow, Event, StateChanged
from cogwork.graph.node import NodeState
from cogwork.logs.entry import format_timestamp
from cogwork.logs.fields import limit_fields
from cogwork.logs.rotating_file import RotatingFile, Rotation
from cogwork.logs.sink import Sink

ROTATION = Rotation(size=1 << 20, age=0.0, total=4 << 20)

_MAX_READ_BYTES = 8 << 20
"""Maximum bytes to read: twice the rotation limit, because other programs may have written to the
files, too."""
_BLOCK = 1 << 16
"""Bytes per read from the end of a file."""

MAX_CLIENTS_PER_MINUTE = 100
MINUTE = 60.0


class EventJournal:
    def __init__(self, file: Path, clock: Clock, redact: Callable[[str], str] = str) -> None:
        """`redact` removes secrets from a text."""
        self._redact = redact
        self._path = file
        self._clock = clock
        self._file = RotatingFile(file, ROTATION, clock)
        self._sink = Sink("journal", self._file.write)
        self._client_times: deque[float] = deque()
        self._suppressed_clients = 0

    def record(self, event: str, details: Mapping[str, Any]) -> None:
        fields = limit_fields(details, self._redact)
        line = {"time": format_timestamp(self._clock.time()), "event": event, **fields}
        text = escape_json(json.dumps(line, ensure_ascii=False))
        self._sink.put(f"{text}\n".encode())

    def record_client(self, peer: str, connected: bool) -> None:
        """Record that a client connected or disconnected, up to a limit per minute."""
        now = self._clock.monotonic()
        while self._client_times and now - self._client_times[0] >= MINUTE:
            self._client_times.popleft()
        if len(self._client_times) >= MAX_CLIENTS_PER_MINUTE:
            self._suppressed_clients += 1
            return
        self._client_times.append(now)
        suppressed, self._suppressed_clients = self._suppressed_clients, 0
        details = {"peer": peer, "state": "connected" if connected else "disconnected"}
        self.record("client", {**details, "untold": suppressed} if suppressed else details)

    def record_graph_event(self, event: Event) -> None:
        """Record an event of the resource graph."""
        details = _format_event(event)
        if details is not None:
            self.record("resource", details)

    def read(self, resource: str | None = None) -> list[dict[str, Any]]:
        """Return the events, oldest first. If `resource` (a full or short name) is set, return only
        its events."""
        return [
            line for _, line in self.iter_records() if resource is None or _is_about(line, resource)
        ]

    def close(self) -> None:
        self._sink.close()
        self._file.close()

    def iter_records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each line as text and as a dictionary, oldest first."""
        for part in reversed(list(_read_tails(reversed((*self._file.list_rotated(), self._path))))):
            for text in part.decode(errors="replace").split("\n"):
                if (line := _parse_line(text)) is not None:
                    yield text, line

    def iter_latest_records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each line as text and as a dictionary, newest first.

        Read the files in blocks from the end, and only while the caller iterates.
        """
        for raw in _read_lines_backwards(reversed((*self._file.list_rotated(), self._path))):
            text = raw.decode(errors="replace")
            if (line := _parse_line(text)) is not None:
                yield text, line


def _parse_line(text: str) -> dict[str, Any] | None:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        # Skip the invalid line: the server was killed while writing it, or another program wrote
        # it.
        return None
    return line if isinstance(line, dict) else None


def _read_tails(files: Iterable[Path]) -> Iterator[bytes]:
    """Yield the last part of each file, up to `_MAX_READ_BYTES` in total."""
    left = _MAX_READ_BYTES
    for file in files:
        try:
            with file.open("rb") as stream:
                size = stream.seek(0, os.SEEK_END)
                stream.seek(max(0, size - left))
                part = stream.read(left)
        except OSError:
            continue  # the file was rotated meanwhile, or does not exist yet
        yield part
        left -= len(part)
        if left <= 0:
            return


def _read_lines_backwards(files: Iterable[Path]) -> Iterator[bytes]:
    """Yield the lines of the files from the end, up to `_MAX_READ_BYTES` in total."""
    left = _MAX_READ_BYTES
    for file in files:
        try:
            with file.open("rb") as stream:
                end, rest = stream.seek(0, os.SEEK_END), b""
                while end > 0 and left > 0:
                    begin = max(0, end - min(_BLOCK, left))
                    stream.seek(begin)
                    block = stream.read(end - begin)
                    rest, *lines = (block + rest).split(b"\n")
                    yield from reversed(lines)
                    left -= end - begin
                    end = begin
        except OSError:
            continue  # the file was rotated meanwhile, or does not exist yet
        if left <= 0:
            return
        yield rest


def _format_event(event: Event) -> dict[str, Any] | None:
    match event:
        case StateChanged(name, _, after, reason) if after is not NodeState.UNCONFIGURED:
            return {"resource": str(name), "state": after.name.lower(), "reason": reason}
        case CallSlow(name, doing, elapsed):
            return {"resource": str(name), "state": f"still {doing}", "seconds": elapsed}
        case CallAbandoned(name, doing):
            return {"resource": str(name), "state": f"gave up {doing}"}
        case CallFailed(name, doing, error):
            return {"resource": str(name), "state": f"{doing} failed", "reason": error}
    return None


def _is_about(line: Mapping[str, Any], resource: str) -> bool:
    name = line.get("resource")
    if not isinstance(name, str):
        return False
    return name == resource or name.partition("/")[2] == resource

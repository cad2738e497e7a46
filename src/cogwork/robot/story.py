"""What happened to the machine, one line for each thing: kept on disk, from one run to the next.

It answers what happened at a given moment, and why a resource is as it is. Never deduplicated, and
bounded: the oldest lines go.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cogwork.core.clock import Clock
from cogwork.graph.events import Abandoned, Event, Slow, StateChanged, Trouble
from cogwork.graph.node import State
from cogwork.logs.entry import moment
from cogwork.logs.file import RotatingFile, Rotation
from cogwork.logs.sink import Sink

ROTATION = Rotation(size=1 << 20, age=0.0, total=4 << 20)

CLIENTS_A_MINUTE = 100
MINUTE = 60.0


class Story:
    def __init__(self, file: Path, clock: Clock, masked: Callable[[str], str] = str) -> None:
        """`masked` takes the secrets out of a line."""
        self._masked = masked
        self._path = file
        self._clock = clock
        self._file = RotatingFile(file, ROTATION, clock)
        self._sink = Sink("story", self._file.write)
        self._clients: deque[float] = deque()
        self._untold = 0

    def tell(self, event: str, details: Mapping[str, Any]) -> None:
        line = {"time": moment(self._clock.time()), "event": event, **details}
        text = self._masked(json.dumps(line, ensure_ascii=False, default=str))
        self._sink.put(f"{text}\n".encode(errors="backslashreplace"))

    def client(self, peer: str, here: bool) -> None:
        """A client that comes or goes. Of a flood of them, only so many are told."""
        now = self._clock.monotonic()
        while self._clients and now - self._clients[0] >= MINUTE:
            self._clients.popleft()
        if len(self._clients) >= CLIENTS_A_MINUTE:
            self._untold += 1
            return
        self._clients.append(now)
        untold, self._untold = self._untold, 0
        told = {"peer": peer, "state": "connected" if here else "disconnected"}
        self.tell("client", {**told, "untold": untold} if untold else told)

    def observe(self, event: Event) -> None:
        """What the graph says of its resources."""
        told = _told(event)
        if told is not None:
            self.tell("resource", told)

    def read(self, resource: str | None = None) -> list[dict[str, Any]]:
        """The oldest first. Of one resource, by its full or its short name, if one is given."""
        return [line for line in self._lines() if resource is None or _is_of(line, resource)]

    def close(self) -> None:
        self._sink.close()
        self._file.close()

    def _lines(self) -> Iterator[dict[str, Any]]:
        for file in (*self._file.rotated(), self._path):
            for text in _text_of(file).splitlines():
                try:
                    line = json.loads(text)
                except ValueError:
                    continue  # torn by a kill in mid-write
                if isinstance(line, dict):
                    yield line


def _text_of(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""  # just now rotated away, or not there yet


def _told(event: Event) -> dict[str, Any] | None:
    match event:
        case StateChanged(name, _, after, reason) if after is not State.UNCONFIGURED:
            return {"resource": str(name), "state": after.name.lower(), "reason": reason}
        case Slow(name, doing, elapsed):
            return {"resource": str(name), "state": f"still {doing}", "seconds": elapsed}
        case Abandoned(name, doing):
            return {"resource": str(name), "state": f"gave up {doing}"}
        case Trouble(name, doing, error):
            return {"resource": str(name), "state": f"{doing} failed", "reason": error}
    return None


def _is_of(line: Mapping[str, Any], resource: str) -> bool:
    name = line.get("resource")
    if not isinstance(name, str):
        return False
    return name == resource or name.partition("/")[2] == resource

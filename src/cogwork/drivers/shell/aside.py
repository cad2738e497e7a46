"""Copies whose disk work is done in a thread of their own, one piece at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Self, TypeVar

from viam.gen.service.shell.v1 import shell_pb2 as messages

from cogwork.core.workers import Workers
from cogwork.drivers.shell.files import Incoming, Outgoing, SourceType

T = TypeVar("T")


class IncomingAside:
    def __init__(self, incoming: Incoming, workers: Workers) -> None:
        self._incoming = incoming
        self._workers = workers

    @classmethod
    async def open(cls, destination: Path, source_type: SourceType, *, preserve: bool) -> Self:
        made, workers = await _made(lambda: Incoming(destination, source_type, preserve=preserve))
        return cls(made, workers)

    async def take(self, piece: messages.FileData) -> bool:
        return await self._workers.run(self._incoming.take, piece)

    async def aclose(self) -> None:
        # A piece may still be under way, for a client that has gone.
        self._workers.close_after(self._incoming.close)


class OutgoingAside:
    def __init__(
        self, outgoing: Outgoing, workers: Workers, tell: Callable[[Sequence[str]], None]
    ) -> None:
        self._outgoing = outgoing
        self._pieces = outgoing.pieces()
        self._workers = workers
        self._tell = tell

    @classmethod
    async def open(
        cls,
        paths: Sequence[Path],
        *,
        recursive: bool,
        preserve: bool,
        tell: Callable[[Sequence[str]], None],
    ) -> Self:
        """`tell` gets what was left out."""
        made, workers = await _made(lambda: Outgoing(paths, recursive=recursive, preserve=preserve))
        return cls(made, workers, tell)

    @property
    def source_type(self) -> SourceType:
        return self._outgoing.source_type

    async def __aiter__(self) -> AsyncIterator[messages.FileData]:
        while (piece := await self._workers.run(next, self._pieces, None)) is not None:
            yield piece
        self._tell(self._outgoing.left_out)

    async def aclose(self) -> None:
        self._workers.close_after(self._pieces.close)


async def _made(make: Callable[[], T]) -> tuple[T, Workers]:
    workers = Workers("copy")
    try:
        return await workers.run(make), workers
    except BaseException:
        workers.close()
        raise

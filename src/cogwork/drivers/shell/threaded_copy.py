"""File copies whose disk work runs in a thread, one chunk at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Self, TypeVar

from viam.gen.service.shell.v1 import shell_pb2 as messages

from cogwork.core.workers import Workers
from cogwork.drivers.shell.file_copy import FileReceiver, FileSender, SourceType

T = TypeVar("T")


class ThreadedReceiver:
    def __init__(self, receiver: FileReceiver, workers: Workers) -> None:
        self._receiver = receiver
        self._workers = workers

    @classmethod
    async def open(cls, destination: Path, source_type: SourceType, *, preserve: bool) -> Self:
        copier, workers = await _make_in_thread(
            lambda: FileReceiver(destination, source_type, preserve=preserve)
        )
        return cls(copier, workers)

    async def write_chunk(self, chunk: messages.FileData) -> bool:
        return await self._workers.run(self._receiver.write_chunk, chunk)

    async def aclose(self) -> None:
        # A write for a disconnected client may still be running: close when it has ended.
        self._workers.close_after(self._receiver.close)


class ThreadedSender:
    def __init__(
        self, sender: FileSender, workers: Workers, on_skipped: Callable[[Sequence[str]], None]
    ) -> None:
        self._sender = sender
        self._chunks = sender.chunks()
        self._workers = workers
        self._on_skipped = on_skipped

    @classmethod
    async def open(
        cls,
        paths: Sequence[Path],
        *,
        recursive: bool,
        preserve: bool,
        on_skipped: Callable[[Sequence[str]], None],
    ) -> Self:
        """`on_skipped` receives the paths that were skipped."""
        copier, workers = await _make_in_thread(
            lambda: FileSender(paths, recursive=recursive, preserve=preserve)
        )
        return cls(copier, workers, on_skipped)

    @property
    def source_type(self) -> SourceType:
        return self._sender.source_type

    async def __aiter__(self) -> AsyncIterator[messages.FileData]:
        while (chunk := await self._workers.run(next, self._chunks, None)) is not None:
            yield chunk
        self._on_skipped(self._sender.skipped)

    async def aclose(self) -> None:
        self._workers.close_after(self._chunks.close)


async def _make_in_thread(make: Callable[[], T]) -> tuple[T, Workers]:
    workers = Workers("copy")
    try:
        return await workers.run(make), workers
    except BaseException:
        workers.close()
        raise

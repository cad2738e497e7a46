"""Connections are accepted in batches, and after a pause when descriptors have run out."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.waiting import pass_time, run_others, wait_until

from cogwork.net.acceptor import Acceptor
from cogwork.net.listen_sockets import open_unix_listener

PAUSE = 0.05


class Site:
    """A listening socket, with what was accepted from it."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._clients: list[socket.socket] = []
        self.listener = FailingListener(open_unix_listener(self._path))
        self.accepted: list[socket.socket] = []
        self.errors: list[int | None] = []

    def accept(self, batch: int = 1) -> Acceptor:
        return Acceptor(
            self.listener,  # type: ignore[arg-type]
            lambda connection, _: self.accepted.append(connection),
            lambda error: self.errors.append(error.errno),
            batch=batch,
            pause=PAUSE,
        )

    def connect(self, count: int = 1) -> None:
        for _ in range(count):
            client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._clients.append(client)
            client.connect(self._path)

    def close(self) -> None:
        for each in (*self._clients, *self.accepted):
            each.close()
        self.listener.close()


class FailingListener:
    """A listening socket of a process that runs out of descriptors."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.failures = 0
        """How many more times `accept` fails."""

    def accept(self) -> tuple[socket.socket, object]:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return self._listener.accept()

    def setblocking(self, flag: bool) -> None:
        self._listener.setblocking(flag)

    def fileno(self) -> int:
        return self._listener.fileno()

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with contextlib.closing(Site(tmp_path / "socket")) as site:
        yield site


@pytest.mark.parametrize("batch", [1, 8])
async def test_waiting_connections_are_accepted(site: Site, batch: int) -> None:
    site.connect(20)
    acceptor = site.accept(batch)
    await wait_until(lambda: len(site.accepted) == 20)
    assert not any(each.getblocking() for each in site.accepted)
    assert not site.errors
    acceptor.close()


async def test_no_iteration_accepts_more_than_a_batch(site: Site) -> None:
    site.connect(20)
    acceptor = site.accept(batch=8)
    counts = [len(site.accepted)]

    def count() -> None:
        counts.append(len(site.accepted))
        if counts[-1] < 20:
            asyncio.get_running_loop().call_soon(count)

    count()
    await wait_until(lambda: counts[-1] == 20)
    assert max(after - before for before, after in itertools.pairwise(counts)) == 8
    acceptor.close()


async def test_accepting_goes_on_after_a_pause(site: Site) -> None:
    site.listener.failures = 2
    site.connect(3)
    acceptor = site.accept()
    await wait_until(lambda: len(site.accepted) == 3)
    assert site.errors == [errno.EMFILE] * 2
    acceptor.close()


async def test_closed_acceptor_does_not_resume(site: Site) -> None:
    site.listener.failures = 1
    site.connect()
    acceptor = site.accept()
    await wait_until(lambda: bool(site.errors))
    acceptor.close()
    assert site.listener.fileno() == -1
    await pass_time(2 * PAUSE)
    await run_others()
    assert not site.accepted


def test_failed_bind_leaves_no_socket_open(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=os.strerror(errno.ENOENT)):
        open_unix_listener(str(tmp_path / "missing" / "socket"))

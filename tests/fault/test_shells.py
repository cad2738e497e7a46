"""Many shells are requested at once, beside a well-behaved client."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import grpc.aio
import psutil
from tests.support.machine.watched import FAKES, LONGEST_TURN, is_front, run_watched
from tests.support.waiting import wait_until

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.service.shell.v1 import shell_pb2 as messages  # noqa: E402

SHELLS = 40
"""Fewer than one client may have open."""
PATH = "/viam.service.shell.v1.ShellService/Shell"


async def test_many_shells_do_not_block_the_loop(tmp_path: Path) -> None:
    shell = {
        "name": "sh",
        "api": "rdk:service:shell",
        "model": "builtin",
        "attributes": {"shell": "/bin/sh", "directory": str(tmp_path)},
    }
    config = {**FAKES, "services": [shell]}
    async with run_watched(tmp_path, config) as machine:
        idle = await machine.measure_idle()
        longest_turn = max(LONGEST_TURN, 5 * idle.busy)
        attack = partial(_open_shells, machine.server.port)
        phase = await machine.attack(f"{SHELLS} shells", attack, longest_turn=longest_turn)
        assert not phase.bystander.failed
        assert phase.busy < longest_turn
        await wait_until(lambda: not _find_shells(machine.process), every=0.05)


async def _open_shells(port: int) -> None:
    async with grpc.aio.insecure_channel(f"localhost:{port}") as channel:
        request = messages.ShellRequest(name="sh", data_in="echo up\n").SerializeToString()
        calls = [_open(channel) for _ in range(SHELLS)]
        await asyncio.gather(*(call.write(request) for call in calls))
        async with asyncio.timeout(30):
            await asyncio.gather(*(call.read() for call in calls))
        for call in calls:
            call.cancel()


def _open(channel: grpc.aio.Channel) -> Any:
    make: Any = channel.stream_stream(PATH)
    return make()


def _find_shells(server: psutil.Process) -> list[psutil.Process]:
    return [each for each in server.children(recursive=True) if not is_front(each)]

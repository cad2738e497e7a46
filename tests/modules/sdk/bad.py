"""A module with one thing wrong with it: what, says `MODE`.

At start:
- `exit-at-start`: exits with code 3, after a traceback
- `hang-at-start`: never serves
Of the handshake:
- `hang-in-ready`
- `not-ready`: says that it is not, the first three times
- `exit-after-ready`: exits with code 4, once it has answered
- `no-reflection`
- `others-model`: has the model `acme:test:sensor`, as another module does
Of its resources, which are of the model `acme:bad:thing` and the API generic:
- `hang-in-add`, `hang-in-remove`, `hang-in-reconfigure`, `hang-in-call`
- `exit-in-add`, `exit-in-reconfigure` (when the old one is gone already), `exit-in-call`: code 5
Of its process, each from Ready on:
- `ignore-sigterm`
- `fork`: a child that forks until there are 32, all deaf to SIGTERM
- `flood`: `FLOOD` bytes (1 GB) of lines on stderr, while it serves
- `stop`: sends SIGSTOP to itself, once it has answered
- `good`: nothing is wrong with it

`HANG=blocking` makes it hang with its loop, so that it serves nothing else meanwhile and hears no
SIGTERM; without it only the one call hangs.
"""

# The SDK's own classes are not all typed.
# mypy: disable-error-code="no-untyped-call,misc"

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

MODE = os.environ.get("MODE", "good")


def misbehave_at_start() -> None:
    """Ahead of the SDK, which takes a third of a second to import."""
    if f"`{MODE}`" not in str(__doc__):
        sys.exit(f'MODE is "{MODE}"; what it may be is said at the top of {__file__}')
    if MODE == "exit-at-start":
        try:
            raise RuntimeError("the device is not there")
        except RuntimeError:
            traceback.print_exc()
        sys.exit(3)
    if MODE == "hang-at-start":
        time.sleep(3600)


misbehave_at_start()

from grpclib.reflection.service import ServerReflection  # noqa: E402
from viam.components.generic import Generic  # noqa: E402
from viam.components.sensor import Sensor  # noqa: E402
from viam.module.module import Module  # noqa: E402
from viam.proto.module import (  # noqa: E402
    AddResourceRequest,
    ReadyRequest,
    ReadyResponse,
    ReconfigureResourceRequest,
    RemoveResourceRequest,
)
from viam.resource.easy_resource import EasyResource  # noqa: E402
from viam.resource.types import resource_name_from_string  # noqa: E402
from viam.utils import SensorReading  # noqa: E402


class BadModule(Module):
    """Between the SDK and whoever calls."""

    times_asked = 0

    async def ready(self, request: ReadyRequest) -> ReadyResponse:
        await _hang_in("ready")
        answer = await super().ready(request)
        self.times_asked += 1
        if MODE == "not-ready":
            answer.ready = self.times_asked > 3
        if self.times_asked == 1 and MODE in FROM_READY_ON:
            FROM_READY_ON[MODE]()
        return answer

    async def add_resource(self, request: AddResourceRequest, *, deadline: Any = None) -> None:
        await _hang_in("add")
        _exit_in("add")
        await super().add_resource(request, deadline=deadline)

    async def reconfigure_resource(self, request: ReconfigureResourceRequest) -> None:
        await _hang_in("reconfigure")
        if MODE == "exit-in-reconfigure":
            full_name = f"{request.config.api}/{request.config.name}"
            await self.server.remove_resource(resource_name_from_string(full_name))
            _exit_in("reconfigure")
        await super().reconfigure_resource(request)

    async def remove_resource(self, request: RemoveResourceRequest) -> None:
        await _hang_in("remove")
        await super().remove_resource(request)


def _is(mode: str) -> bool:
    return mode == MODE


async def _hang_in(where: str) -> None:
    if not _is(f"hang-in-{where}"):
        return
    if os.environ.get("HANG") == "blocking":
        time.sleep(3600)  # noqa: ASYNC251
    await asyncio.sleep(3600)


def _exit_in(where: str) -> None:
    if _is(f"exit-in-{where}"):
        print(f"exits in {where}", file=sys.stderr)
        os._exit(5)


def _once_answered(do: Callable[..., object], *arguments: object) -> None:
    """A moment later: the answer is written when the call returns."""
    asyncio.get_running_loop().call_later(0.05, do, *arguments)


def _exit_soon() -> None:
    _once_answered(os._exit, 4)


def _stop_soon() -> None:
    _once_answered(os.kill, os.getpid(), signal.SIGSTOP)


def _ignore_sigterm() -> None:
    # The SDK listens to it once it serves.
    asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _fork() -> None:
    source = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(5): os.fork()
time.sleep(600)
"""
    subprocess.Popen([sys.executable, "-I", "-S", "-c", source])


def _flood() -> None:
    threading.Thread(
        target=_write, args=(int(os.environ.get("FLOOD", 1 << 30)),), daemon=True
    ).start()


def _write(size: int) -> None:
    lines = (b"all work and no play makes a dull log " * 3 + b"\n") * 512
    with contextlib.suppress(OSError):
        while size > 0:
            size -= os.write(2, lines)


FROM_READY_ON: Mapping[str, Callable[[], None]] = {
    "exit-after-ready": _exit_soon,
    "ignore-sigterm": _ignore_sigterm,
    "fork": _fork,
    "flood": _flood,
    "stop": _stop_soon,
}


class Thing(Generic, EasyResource):
    """Echoes."""

    MODEL: ClassVar[Any] = "acme:bad:thing"

    async def do_command(self, command: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:
        await _hang_in("call")
        _exit_in("call")
        return command


if MODE == "others-model":

    class OthersSensor(Sensor, EasyResource):
        """Not the one of the module `sensor`."""

        MODEL: ClassVar[Any] = "acme:test:sensor"

        async def get_readings(self, **_: Any) -> Mapping[str, SensorReading]:
            return {"from": "bad"}


if MODE == "no-reflection":
    ServerReflection.extend = staticmethod(list)  # type: ignore[method-assign,assignment]


if __name__ == "__main__":
    asyncio.run(BadModule.run_from_registry())

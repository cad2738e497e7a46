"""Calls of what only modules know: how long they may take, and why some of them cannot be."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from grpclib.metadata import Deadline
from tests.unit.robot.bench import Bench
from tests.unit.robot.module_api import OWN_API, Brought, described

from cogwork.core.errors import InvalidRequest
from cogwork.resource.clients import UnknownApiResource
from cogwork.robot import module_proxy
from cogwork.robot.machine import NotAvailable
from cogwork.robot.module_host import NoModules
from cogwork.robot.operations import TookTooLong
from cogwork.wire import first_message
from cogwork.wire.in_process_call import InProcessStream

GREET, FLOW = "/acme.own.v1.OwnService/Greet", "/acme.own.v1.OwnService/Flow"
NAMED = b"\x0a\x04hers"

Call = Callable[..., Awaitable[None]]


def stream(request: Any = NAMED, timeout: float | None = None) -> InProcessStream:
    deadline = Deadline.from_timeout(timeout) if timeout is not None else None
    return InProcessStream(request, peer="test", metadata={}, deadline=deadline)


class Silent(InProcessStream):
    """Of a client that opens a call, and says nothing."""

    async def recv_message(self) -> Any:
        await asyncio.Event().wait()


class Starting(NoModules):
    def pending_reason(self) -> str | None:
        return 'module "own" is starting'


@pytest.fixture
def call(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Of a resource that is there, in a module that never answers."""

    async def carry(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(module_proxy, "forward", carry)
    monkeypatch.setattr(module_proxy, "MAX_CALL_SECONDS", 0.05)
    resource: Any = UnknownApiResource("hers")
    resource.raw_channel = None
    monkeypatch.setattr(bench.machine, "find", lambda _: resource)
    bench.machine.modules = described(OWN_API)()
    return module_proxy.ModuleProxy(bench.machine).forward_unknown


async def test_one_with_a_single_reply_is_ended(call: Call) -> None:
    with pytest.raises(TookTooLong, match=r"Greet was cancelled after 0\.05s; set a deadline"):
        await call(GREET, stream())


@pytest.mark.parametrize(("path", "timeout"), [(GREET, 60.0), (FLOW, None)])
async def test_streams_and_those_with_a_deadline_of_their_own_go_on(
    call: Call, path: str, timeout: float | None
) -> None:
    going_on = asyncio.ensure_future(call(path, stream(timeout=timeout)))
    done, _ = await asyncio.wait({going_on}, timeout=0.2)
    assert not done
    going_on.cancel()
    await asyncio.wait({going_on})


async def test_whoever_says_nothing_does_not_keep_it(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_message, "FIRST_MESSAGE_TIMEOUT", 0.05)
    silent = Silent(None, peer="test", metadata={}, deadline=None)
    with pytest.raises(InvalidRequest, match="received no message within"):
        await call(FLOW, silent)


async def test_whoever_names_nobody_is_told(call: Call) -> None:
    with pytest.raises(InvalidRequest, match=r"names no resource: .* of acme:service:own"):
        await call(GREET, stream(b""))


async def test_one_that_may_come_yet(bench: Bench) -> None:
    call = module_proxy.ModuleProxy(bench.machine).forward_unknown
    bench.machine.modules = Starting()
    with pytest.raises(NotAvailable, match='not served yet: module "own" is starting'):
        await call(GREET, stream())
    bench.machine.modules = NoModules()
    with pytest.raises(NotImplementedError, match=r"no module of this machine provides acme\.own"):
        await call(GREET, stream())


async def test_one_that_its_module_does_not_describe_may_take_as_long_as_it_likes(
    call: Call, bench: Bench
) -> None:
    bench.machine.modules = Brought()
    going_on = asyncio.ensure_future(call(GREET, stream()))
    done, _ = await asyncio.wait({going_on}, timeout=0.2)
    assert not done
    going_on.cancel()
    await asyncio.wait({going_on})

"""Calls of APIs that only modules know: time limits and errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from grpclib.metadata import Deadline
from tests.unit.robot.bench import Bench
from tests.unit.robot.module_api import OWN_API, OwnApiModules, make_modules
from viam.gen.service.vision.v1.vision_pb2 import CaptureAllFromCameraResponse, Classification

from cogwork.core.errors import InvalidRequest
from cogwork.resource.sdk.clients import UnknownApiResource
from cogwork.robot.hosts import NoModules
from cogwork.robot.middleware import resource_proxy
from cogwork.robot.middleware.operations import TookTooLong
from cogwork.robot.middleware.resource_proxy import ResourceProxy
from cogwork.robot.unavailable import NotAvailable
from cogwork.wire.table import first_message
from cogwork.wire.table.concurrency_limit import ConcurrencyLimiter
from cogwork.wire.table.handlers import Stream
from cogwork.wire.transports.in_process_call import InProcessStream

GREET, FLOW = "/acme.own.v1.OwnService/Greet", "/acme.own.v1.OwnService/Flow"
NAMED = b"\x0a\x04hers"

Call = Callable[..., Awaitable[None]]


def make_stream(request: Any = NAMED, timeout: float | None = None) -> InProcessStream:
    deadline = Deadline.from_timeout(timeout) if timeout is not None else None
    return InProcessStream(request, peer="test", metadata={}, deadline=deadline)


class SilentStream(InProcessStream):
    """The stream of a client that opens a call and sends nothing."""

    async def recv_message(self) -> Any:
        await asyncio.Event().wait()


class StartingModules(NoModules):
    def pending_reason(self) -> str | None:
        return 'module "own" is starting'


@pytest.fixture
def call(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Call a resource of a module that never answers."""

    async def wait_forever(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(resource_proxy, "forward", wait_forever)
    monkeypatch.setattr(resource_proxy, "MAX_CALL_SECONDS", 0.05)
    resource: Any = UnknownApiResource("hers")
    resource.raw_channel = None
    monkeypatch.setattr(bench.machine, "find", lambda _: resource)
    bench.machine.modules = make_modules(OWN_API)()
    return ResourceProxy(bench.machine, ConcurrencyLimiter(bench.clock)).forward_unknown


async def test_unary_call_is_cancelled_after_the_limit(call: Call) -> None:
    with pytest.raises(TookTooLong, match=r"Greet was cancelled after 0\.05s; set a deadline"):
        await call(GREET, make_stream())


@pytest.mark.parametrize(("path", "timeout"), [(GREET, 60.0), (FLOW, None)])
async def test_streams_and_calls_with_a_deadline_continue(
    call: Call, path: str, timeout: float | None
) -> None:
    running = asyncio.ensure_future(call(path, make_stream(timeout=timeout)))
    done, _ = await asyncio.wait({running}, timeout=0.2)
    assert not done
    running.cancel()
    await asyncio.wait({running})


async def test_stream_without_a_first_message_times_out(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_message, "FIRST_MESSAGE_TIMEOUT", 0.05)
    silent = SilentStream(None, peer="test", metadata={}, deadline=None)
    with pytest.raises(InvalidRequest, match="received no message within"):
        await call(FLOW, silent)


async def test_request_without_a_resource_name_raises(call: Call) -> None:
    with pytest.raises(InvalidRequest, match=r"cannot route .*resource of acme:service:own"):
        await call(GREET, make_stream(b""))


async def test_unknown_api_is_unavailable_while_modules_start(bench: Bench) -> None:
    call = ResourceProxy(bench.machine, ConcurrencyLimiter(bench.clock)).forward_unknown
    bench.machine.modules = StartingModules()
    with pytest.raises(NotAvailable, match='not served yet: module "own" is starting'):
        await call(GREET, make_stream())
    bench.machine.modules = NoModules()
    with pytest.raises(
        NotImplementedError, match=r"no module or remote of this machine provides acme\.own"
    ):
        await call(GREET, make_stream())


async def test_call_without_descriptor_has_no_limit(call: Call, bench: Bench) -> None:
    bench.machine.modules = OwnApiModules()
    running = asyncio.ensure_future(call(GREET, make_stream()))
    done, _ = await asyncio.wait({running}, timeout=0.2)
    assert not done
    running.cancel()
    await asyncio.wait({running})


@pytest.mark.parametrize("image", [b"", b"pixels"])
async def test_capture_of_a_module_has_all_parts(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, image: bytes
) -> None:
    reply = CaptureAllFromCameraResponse(classifications=[Classification(class_name="cat")])
    if image:
        reply.image.image = image

    async def answer(_channel: Any, _path: str, _kind: Any, stream: Stream, *_: object) -> None:
        await stream.send_message(reply.SerializeToString())

    monkeypatch.setattr(resource_proxy, "forward", answer)
    resource: Any = UnknownApiResource("hers")
    resource.raw_channel = None
    monkeypatch.setattr(bench.machine, "find", lambda _: resource)
    method = bench.table.find("/viam.service.vision.v1.VisionService/CaptureAllFromCamera")
    assert method is not None
    assert method.proxy_route is not None
    stream = make_stream()
    await method.proxy_route.handle(stream)
    assert isinstance(stream.reply, bytes)
    got = CaptureAllFromCameraResponse.FromString(stream.reply)
    assert got.HasField("image")
    assert got.HasField("extra")
    assert got.image.image == image
    assert got.classifications == reply.classifications

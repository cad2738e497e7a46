"""A call that is forwarded to another process, with its metadata in both directions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest
from grpclib.const import Cardinality

from cogwork.wire.clients.proxy import forward
from cogwork.wire.table.handlers import HandlerTable, Stream
from cogwork.wire.transports.grpc import grpc_server

PATH = "/acme.v1.Far/Ask"
TWICE = (("x-part", "one"), ("x-part", "two"), ("x-raw-bin", b"\0\xff"))


class FarServer(grpc.GenericRpcHandler):
    """Answers with the metadata that it received, as message and as metadata."""

    def service(self, _: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
        return grpc.stream_stream_rpc_method_handler(self._answer)

    async def _answer(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        given = tuple(
            (key, value) for key, value in context.invocation_metadata() if key.startswith("x-")
        )
        await context.send_initial_metadata(given)
        context.set_trailing_metadata(given)
        async for _ in requests:
            yield repr(given).encode()


@pytest.fixture
async def near(tmp_path: Any) -> AsyncIterator[grpc.aio.Channel]:
    """Yield a channel to a server that forwards every call."""
    far = grpc.aio.server(handlers=(FarServer(),))
    far.add_insecure_port(f"unix:{tmp_path}/far")
    await far.start()
    carrier = grpc.aio.insecure_channel(f"unix:{tmp_path}/far")

    async def forward_call(path: str, stream: Stream) -> None:
        kind = Cardinality.UNARY_UNARY if path.endswith("Once") else Cardinality.STREAM_STREAM
        first, metadata = await stream.recv_message(), stream.metadata.items()
        given = [(name, value) for name, value in metadata if name.startswith("x-")]
        await forward(carrier, path, kind, stream, first, metadata=given)

    server = grpc_server(HandlerTable(fallback=forward_call))
    server.add_insecure_port(f"unix:{tmp_path}/near")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"unix:{tmp_path}/near") as channel:
            yield channel
    finally:
        await server.stop(None)
        await carrier.close()
        await far.stop(None)


@pytest.mark.parametrize("path", [PATH, f"{PATH}Once"])
async def test_repeated_metadata_keys_are_kept(near: grpc.aio.Channel, path: str) -> None:
    ask: Any = near.unary_unary(path)
    call = ask(b"hello", metadata=TWICE, timeout=60)
    assert (await call).decode() == repr(TWICE)
    assert tuple(await call.initial_metadata()) == TWICE
    assert tuple(await call.trailing_metadata()) == TWICE

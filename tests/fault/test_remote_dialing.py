"""Connecting to real sockets that do not always answer."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest
from tests.fault.gate import Gate, run_gate
from tests.support.waiting import pass_time

from cogwork.core.clock import SystemClock
from cogwork.remotes.dialing import DialTarget, dial
from cogwork.remotes.errors import RemoteUnavailable

ANSWER = "/slow.Service/Answer"


class SlowService(grpc.GenericRpcHandler):
    """Answers each call after as many seconds as its request says."""

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        del details
        return grpc.unary_unary_rpc_method_handler(self._answer)

    async def _answer(self, request: bytes, context: object) -> bytes:
        del context
        await pass_time(float(request))
        return request


@contextlib.asynccontextmanager
async def slow_server(silent: int = 0) -> AsyncIterator[tuple[Gate, DialTarget]]:
    """`silent` is how many connections are never answered."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((SlowService(),))
    target = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with run_gate(target, silent) as gate:
            address = f"127.0.0.1:{gate.port}"
            yield gate, DialTarget(address, None, insecure=True, allow_plaintext=False)
    finally:
        await server.stop(None)


async def test_attempt_that_is_not_answered_is_overtaken_by_the_next_one() -> None:
    async with slow_server(silent=1) as (gate, to):
        began = time.monotonic()
        connection = await dial(to, SystemClock())
        assert time.monotonic() - began < 4
        assert await connection.control.unary_unary(ANSWER)(b"0", timeout=60) == b"0"
        assert gate.connections >= 2
        await connection.aclose()


async def test_calls_outlive_the_renewal_of_their_connections() -> None:
    async with slow_server() as (gate, to):
        connection = await dial(to, SystemClock())
        await connection.open_calls()
        former = [connection.control, connection.calls]
        calls = [channel.unary_unary(ANSWER)(b"5", timeout=60) for channel in former]
        await connection.renew()
        for channel in (connection.control, connection.calls):
            assert channel not in former
            assert await channel.unary_unary(ANSWER)(b"0", timeout=60) == b"0"
        assert [await call for call in calls] == [b"5", b"5"]
        calls.clear()  # gRPC keeps the connection of a call
        await gate.wait_until_open(2)
        await connection.aclose()


async def test_machine_that_never_answers_is_explained_and_gets_few_attempts() -> None:
    async with slow_server(silent=100) as (gate, to):
        with pytest.raises(RemoteUnavailable, match="did not answer within 5 s"):
            await dial(to, SystemClock())
        assert 2 <= gate.connections <= 6

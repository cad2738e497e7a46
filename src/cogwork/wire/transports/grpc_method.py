"""Adapts methods of the handler table to grpc.

Messages are parsed and serialized here: if grpc did this, a failure would reach the client as a
Python error.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
from grpclib.const import Cardinality

from cogwork.wire.table.concurrency_limit import STOP_METHODS
from cogwork.wire.table.first_message import with_timeout
from cogwork.wire.table.handlers import Handler, Method, NoReply
from cogwork.wire.table.message_parser import keep_bytes, make_parser, make_size_check
from cogwork.wire.table.status import grpc_code, status_of
from cogwork.wire.transports.grpc_call import (
    StreamStreamCall,
    StreamUnaryCall,
    UnaryStreamCall,
    UnaryUnaryCall,
    serialize,
)
from cogwork.wire.transports.grpc_clients import Context, GrpcClients
from cogwork.wire.transports.running_calls import RunningCalls


def to_grpc_handler(method: Method, clients: GrpcClients) -> grpc.RpcMethodHandler[Any, Any]:
    match method.cardinality:
        case Cardinality.UNARY_UNARY:
            return grpc.unary_unary_rpc_method_handler(
                _track(_make_unary_unary(method, clients), clients.running)
            )
        case Cardinality.UNARY_STREAM:
            return grpc.unary_stream_rpc_method_handler(
                _track(_make_unary_stream(method, clients), clients.running)
            )
        case Cardinality.STREAM_UNARY:
            return grpc.stream_unary_rpc_method_handler(
                _track(_make_stream_unary(method, clients), clients.running)
            )
        case _:
            return grpc.stream_stream_rpc_method_handler(
                _track(_make_stream_stream(method, clients), clients.running)
            )


def _track(serve: Any, running: RunningCalls) -> Any:
    async def tracked(request: Any, context: Context) -> Any:
        task = asyncio.current_task()
        assert task is not None
        running.begin(task, context)
        try:
            return await serve(request, context)
        finally:
            running.end(task)

    return tracked


def _make_unary_unary(method: Method, clients: GrpcClients) -> Any:
    waits = not method.path.endswith(STOP_METHODS)
    handle, parse, check = method.handle, make_parser(method), make_size_check(method)

    async def serve(data: bytes, context: Context) -> bytes:
        try:
            with clients.hold(context) as hold:
                hold.acquire_message(len(data))
                if waits and clients.may_be_behind:
                    await clients.wait_until_read(context)
                if (forward := method.find_proxy(data)) is not None:
                    stream = UnaryUnaryCall(context, clients, hold, data, keep_bytes)
                    await forward(stream)
                else:
                    check(data)
                    stream = UnaryUnaryCall(context, clients, hold, data, parse)
                    await handle(stream)
            return clients.track_reply(_encode_single_reply(stream.reply, method), context)
        except BaseException as error:
            _set_error_status(context, error, method)
            return b""

    return serve


def _make_unary_stream(method: Method, clients: GrpcClients) -> Any:
    handle, parse, check = method.handle, make_parser(method), make_size_check(method)

    async def serve(data: bytes, context: Context) -> None:
        try:
            with clients.hold(context) as hold:
                hold.acquire_message(len(data))
                if (forward := method.find_proxy(data)) is not None:
                    await forward(UnaryStreamCall(context, clients, hold, data, keep_bytes))
                else:
                    check(data)
                    await handle(UnaryStreamCall(context, clients, hold, data, parse))
        except BaseException as error:
            _set_error_status(context, error, method)

    return serve


def _make_stream_unary(method: Method, clients: GrpcClients) -> Any:
    parse, check = make_parser(method), make_size_check(method)

    async def serve(_: AsyncIterator[bytes], context: Context) -> bytes:
        try:
            with clients.hold(context) as hold:
                stream = StreamUnaryCall(context, clients, hold, parse, check)
                await (await _select_handler(method, stream))(stream)
            return clients.track_reply(_encode_single_reply(stream.reply, method), context)
        except BaseException as error:
            _set_error_status(context, error, method)
            return b""

    return serve


def _make_stream_stream(method: Method, clients: GrpcClients) -> Any:
    parse, check = make_parser(method), make_size_check(method)

    async def serve(_: AsyncIterator[bytes], context: Context) -> None:
        try:
            with clients.hold(context) as hold:
                stream = StreamStreamCall(context, clients, hold, parse, check)
                await (await _select_handler(method, stream))(stream)
        except BaseException as error:
            _set_error_status(context, error, method)

    return serve


async def _select_handler(method: Method, stream: StreamStreamCall) -> Handler:
    """Return the handler for the resource that the first message of a client stream names."""
    if not method.is_routed:
        return method.handle
    forward = method.find_proxy(await with_timeout(stream.peek(), method.path))
    if forward is None:
        return method.handle
    stream.switch_to_raw()
    return forward


def _set_error_status(context: Context, error: BaseException, method: Method) -> None:
    """Convert any error to a status, because a driver that calls sys.exit must not end the process.

    `context.abort` is not used, because the error that it raises keeps the received messages in
    memory.
    """
    if isinstance(error, GeneratorExit) or _is_call_cancelled(error):
        raise error
    status, message = status_of(error, method.path)
    context.set_code(grpc_code(status))
    context.set_details(message)


def _is_call_cancelled(error: BaseException) -> bool:
    """Return whether the call itself was cancelled.

    If it was not, a driver awaited another task that was cancelled, and the client must get an
    error.
    """
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _encode_single_reply(reply: Any, method: Method) -> bytes:
    if reply is None:
        raise NoReply(method.path)
    return serialize(reply)

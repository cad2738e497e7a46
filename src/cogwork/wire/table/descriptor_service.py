"""Builds the methods of a service from its descriptor, for services implemented by Cogwork."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import Any

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpclib.const import Cardinality

from cogwork.wire.table.handlers import Handler, Method, Stream

UnaryHandler = Callable[[Any, Stream], Awaitable[Message | bytes]]
"""Takes the request and its stream, and returns the reply."""


def methods_from_descriptor(
    service: ServiceDescriptor,
    handlers: Mapping[str, UnaryHandler],
    refusals: Mapping[str, str] | None = None,
    raw: Collection[str] = (),
    streams: Mapping[str, Handler] | None = None,
) -> Iterator[Method]:
    """Yield every method of the service.

    `handlers` serve the unary methods, and `streams` serve the streaming methods. `refusals` has
    the error texts of methods that always fail. A method in `raw` receives its request as unparsed
    bytes.
    """
    refusals = refusals or {}
    handles = {
        **{name: _refusing_handler(reason) for name, reason in refusals.items()},
        **{name: to_stream_handler(handler) for name, handler in handlers.items()},
        **(streams or {}),
    }
    for name, method in service.methods_by_name.items():
        yield Method(
            f"/{service.full_name}/{name}",
            _cardinality_of(method),
            handles[name],
            GetMessageClass(method.input_type) if name not in raw else None,
            GetMessageClass(method.output_type),
            refusal=refusals.get(name),
        )


def to_stream_handler(handler: UnaryHandler) -> Handler:
    async def handle(stream: Stream) -> None:
        await stream.send_message(await handler(stream.request, stream))

    return handle


def _refusing_handler(reason: str) -> Handler:
    async def refuse(_: Stream) -> None:
        raise NotImplementedError(reason)

    return refuse


def _cardinality_of(method: MethodDescriptor) -> Cardinality:
    return next(
        kind
        for kind in Cardinality
        if (kind.client_streaming, kind.server_streaming)
        == (method.client_streaming, method.server_streaming)
    )

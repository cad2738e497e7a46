"""The methods of a service made from its descriptor, for services that we write ourselves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import Any

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpclib.const import Cardinality

from cogwork.wire.handlers import Handle, Method, Stream

Answer = Callable[[Any, Stream], Awaitable[Message | bytes]]
"""From the request to the reply."""


def described_methods(
    service: ServiceDescriptor,
    answers: Mapping[str, Answer],
    refusals: Mapping[str, str] | None = None,
    raw: Collection[str] = (),
    streams: Mapping[str, Handle] | None = None,
) -> Iterator[Method]:
    """Every method of the service: the answered ones, those that converse over `streams`, and a
    sentence for each of the others. Those that are `raw` get their requests as the bytes that
    came."""
    refusals = refusals or {}
    handles = {
        **{name: _refusing(sentence) for name, sentence in refusals.items()},
        **{name: answering(answer) for name, answer in answers.items()},
        **(streams or {}),
    }
    for name, method in service.methods_by_name.items():
        yield Method(
            f"/{service.full_name}/{name}",
            _cardinality(method),
            handles[name],
            GetMessageClass(method.input_type) if name not in raw else None,
            GetMessageClass(method.output_type),
            refusal=refusals.get(name),
        )


def answering(answer: Answer) -> Handle:
    async def handle(stream: Stream) -> None:
        await stream.send_message(await answer(stream.request, stream))

    return handle


def _refusing(sentence: str) -> Handle:
    async def refuse(_: Stream) -> None:
        raise NotImplementedError(sentence)

    return refuse


def _cardinality(method: MethodDescriptor) -> Cardinality:
    return next(
        kind
        for kind in Cardinality
        if (kind.client_streaming, kind.server_streaming)
        == (method.client_streaming, method.server_streaming)
    )

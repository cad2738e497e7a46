"""The ML model API. The SDK's own service makes a Python number of every value of a tensor, which
takes longer than most models do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import Struct
from viam.gen.service.mlmodel.v1 import mlmodel_pb2 as mlmodel

from cogwork.core.errors import InvalidRequest
from cogwork.graph.name import Api
from cogwork.resource.answers import CommonAnswers, Find, time_left
from cogwork.resource.structs import extra_to_dict
from cogwork.resource.tensors import read_infer_request, write_infer_reply
from cogwork.wire.described import Answer, described_methods
from cogwork.wire.handlers import Method, Stream

T = TypeVar("T")
U = TypeVar("U")

_LARGE = 4 * 1024 * 1024
"""Bytes that take the loop longer to copy than a thread to start: whoever else is served waits."""
_DESCRIPTOR = mlmodel.DESCRIPTOR.services_by_name["MLModelService"]


def mlmodel_methods(api: Api, find: Find) -> Iterable[Method]:
    return described_methods(_DESCRIPTOR, MLModelService(api, find).answers(), raw=("Infer",))


class MLModelService(CommonAnswers):
    def answers(self) -> Mapping[str, Answer]:
        return {
            "Infer": self.infer,
            "Metadata": self.metadata,
            "GetStatus": self.get_status,
        }

    async def infer(self, data: bytes, stream: Stream) -> bytes:
        """From bytes to bytes: the tensors are views into the request."""
        request = await _aside(read_infer_request, data, len(data))
        outputs = await self.resource(request.name).infer(
            request.tensors, extra=extra_to_dict(_extra(request.extra)), timeout=time_left(stream)
        )
        size = sum(each.nbytes for each in outputs.values())
        return await _aside(write_infer_reply, outputs, size)

    async def metadata(
        self, request: mlmodel.MetadataRequest, stream: Stream
    ) -> mlmodel.MetadataResponse:
        metadata = await self.resource(request.name).metadata(
            extra=extra_to_dict(request.extra), timeout=time_left(stream)
        )
        return mlmodel.MetadataResponse(metadata=metadata)


async def _aside(work: Callable[[T], U], given: T, size: int) -> U:
    return work(given) if size < _LARGE else await asyncio.to_thread(work, given)


def _extra(data: bytes) -> Struct:
    try:
        return Struct.FromString(data)
    except DecodeError:
        raise InvalidRequest("extra is no Struct message") from None

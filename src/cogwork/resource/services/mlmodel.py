"""The ML model API.

The SDK's own service converts every value of a tensor to a Python number, which takes longer than
most models.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import Struct
from viam.gen.service.mlmodel.v1 import mlmodel_pb2 as mlmodel

from cogwork.core.errors import InvalidRequest
from cogwork.graph.name import Api
from cogwork.resource.messages.structs import extra_to_dict
from cogwork.resource.model import NUMPY
from cogwork.resource.services.resource_service import FindResource, ResourceService, time_left
from cogwork.wire.table.descriptor_service import UnaryHandler, methods_from_descriptor
from cogwork.wire.table.handlers import Method, Stream

T = TypeVar("T")
U = TypeVar("U")

_THREAD_THRESHOLD = 4 * 1024 * 1024
"""Size in bytes from which a message is converted in a thread, because copying would block the
loop."""
_DESCRIPTOR = mlmodel.DESCRIPTOR.services_by_name["MLModelService"]


def mlmodel_methods(api: Api, find: FindResource) -> Iterable[Method]:
    return methods_from_descriptor(
        _DESCRIPTOR, MLModelService(api, find).unary_handlers(), raw=("Infer",)
    )


class MLModelService(ResourceService):
    _has_numpy = False
    """Whether NumPy is imported. Importing it would block the loop for a tenth of a second."""

    def unary_handlers(self) -> Mapping[str, UnaryHandler]:
        return {
            "Infer": self.infer,
            "Metadata": self.metadata,
            "GetStatus": self.get_status,
        }

    async def infer(self, data: bytes, stream: Stream) -> bytes:
        """Run inference on raw messages. The input tensors are views into the request."""
        if not self._has_numpy:
            await NUMPY.load()
            self._has_numpy = True
        from cogwork.resource.messages.tensors import read_infer_request, write_infer_reply

        request = await _run_off_loop(read_infer_request, data, len(data))
        outputs = await self.find_resource(request.name).infer(
            request.tensors,
            extra=extra_to_dict(_parse_extra(request.extra)),
            timeout=time_left(stream),
        )
        size = sum(each.nbytes for each in outputs.values())
        return await _run_off_loop(write_infer_reply, outputs, size)

    async def metadata(
        self, request: mlmodel.MetadataRequest, stream: Stream
    ) -> mlmodel.MetadataResponse:
        metadata = await self.find_resource(request.name).metadata(
            extra=extra_to_dict(request.extra), timeout=time_left(stream)
        )
        return mlmodel.MetadataResponse(metadata=metadata)


async def _run_off_loop(convert: Callable[[T], U], value: T, size: int) -> U:
    return convert(value) if size < _THREAD_THRESHOLD else await asyncio.to_thread(convert, value)


def _parse_extra(data: bytes) -> Struct:
    try:
        return Struct.FromString(data)
    except DecodeError:
        raise InvalidRequest("extra is not a valid Struct message") from None

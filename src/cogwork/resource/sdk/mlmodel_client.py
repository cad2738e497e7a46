"""A client for ML models in another process. It avoids the SDK's slow tensor conversion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from numpy.typing import NDArray
from viam.services.mlmodel import MLModelClient

from cogwork.resource.messages.structs import to_struct
from cogwork.resource.messages.tensors import read_infer_reply, write_infer_request
from cogwork.wire.clients.channel import as_grpclib_errors


class UnaryChannel(Protocol):
    """The part of a grpc.aio channel that the client uses."""

    def unary_unary(self, method: str) -> Any: ...


class FastMLModelClient(MLModelClient):
    """The SDK's client, except that serializing a tensor copies its values only once."""

    def __init__(self, name: str, channel: Any, raw_channel: UnaryChannel) -> None:
        """`channel` is the SDK's wrapper of a channel. `raw_channel` is a channel to the same
        target."""
        super().__init__(name, channel)
        self._infer = raw_channel.unary_unary("/viam.service.mlmodel.v1.MLModelService/Infer")

    async def infer(
        self,
        input_tensors: Mapping[str, NDArray[Any]],
        *,
        extra: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> dict[str, NDArray[Any]]:
        request = write_infer_request(
            self.name, input_tensors, to_struct(extra).SerializeToString()
        )
        metadata = tuple(options.get("metadata", self.Metadata()).proto)
        with as_grpclib_errors():
            reply = await self._infer(request, timeout=timeout, metadata=metadata)
        return read_infer_reply(reply)

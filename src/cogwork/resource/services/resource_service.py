"""The base class of our own services, with the methods that every API has."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeVar

from cogwork.graph.name import Api, ResourceName
from cogwork.resource.messages.structs import extra_to_dict, to_dict_async, to_struct_async
from cogwork.resource.sdk import clean_import as sdk
from cogwork.wire.table.descriptor_service import UnaryHandler
from cogwork.wire.table.handlers import Stream

assert sdk.VERSION  # imported before any other module of the SDK
from viam.gen.common.v1 import common_pb2 as common  # noqa: E402

T = TypeVar("T")

FindResource = Callable[[ResourceName], object]
"""Returns a ready resource, or raises an error with the reason."""


class ResourceService:
    def __init__(self, api: Api, find: FindResource) -> None:
        self._api = api
        self._find = find

    def unary_handlers(self) -> Mapping[str, UnaryHandler]:
        return {"DoCommand": self.do_command, "GetStatus": self.get_status}

    def find_resource(self, name: str) -> Any:
        return self._find(ResourceName.from_short(self._api, name))

    async def do_command(self, request: Any, stream: Stream) -> common.DoCommandResponse:
        """Run a command. Large commands are converted in a thread instead of on the loop."""
        resource = self.find_resource(request.name)
        command = await to_dict_async(request.command)
        result = await resource.do_command(
            command, timeout=time_left(stream), metadata=stream.metadata
        )
        return common.DoCommandResponse(result=await to_struct_async(result))

    async def get_status(self, request: Any, stream: Stream) -> common.GetStatusResponse:
        result = await self.find_resource(request.name).get_status(
            timeout=time_left(stream), metadata=stream.metadata
        )
        return common.GetStatusResponse(result=await to_struct_async(result))

    async def get_geometries(self, request: Any, stream: Stream) -> common.GetGeometriesResponse:
        """Return the geometries.

        Metadata is not passed, because the SDK's default `get_geometries` does not accept it.
        """
        geometries = await self.find_resource(request.name).get_geometries(
            extra=extra_to_dict(request.extra), timeout=time_left(stream)
        )
        return common.GetGeometriesResponse(geometries=geometries)


def time_left(stream: Stream) -> float | None:
    """Return the seconds until the client's deadline, or None if there is no deadline."""
    return stream.deadline.time_remaining() if stream.deadline is not None else None


@contextlib.asynccontextmanager
async def closing(replies: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Close a generator when the call ends, not when it is garbage-collected."""
    try:
        yield replies
    finally:
        close = getattr(replies, "aclose", None)
        if close is not None:
            await close()

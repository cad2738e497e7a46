"""The calls that every API has, for the services that we write ourselves."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeVar

from cogwork.graph.name import Api, ResourceName
from cogwork.resource import sdk
from cogwork.resource.structs import extra_to_dict, to_dict_aside, to_struct_aside
from cogwork.wire.described import Answer
from cogwork.wire.handlers import Stream

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.common.v1 import common_pb2 as common  # noqa: E402

T = TypeVar("T")

Find = Callable[[ResourceName], object]
"""The ready resource, or an error that says why there is none."""


class CommonAnswers:
    def __init__(self, api: Api, find: Find) -> None:
        self._api = api
        self._find = find

    def answers(self) -> Mapping[str, Answer]:
        return {"DoCommand": self.do_command, "GetStatus": self.get_status}

    def resource(self, name: str) -> Any:
        return self._find(ResourceName.of(self._api, name))

    async def do_command(self, request: Any, stream: Stream) -> common.DoCommandResponse:
        """A command may hold any number of values, which the SDK would convert on the loop."""
        resource = self.resource(request.name)
        command = await to_dict_aside(request.command)
        result = await resource.do_command(
            command, timeout=time_left(stream), metadata=stream.metadata
        )
        return common.DoCommandResponse(result=await to_struct_aside(result))

    async def get_status(self, request: Any, stream: Stream) -> common.GetStatusResponse:
        result = await self.resource(request.name).get_status(
            timeout=time_left(stream), metadata=stream.metadata
        )
        return common.GetStatusResponse(result=await to_struct_aside(result))

    async def get_geometries(self, request: Any, stream: Stream) -> common.GetGeometriesResponse:
        """Without metadata: the one that the SDK's components have by nature takes none."""
        geometries = await self.resource(request.name).get_geometries(
            extra=extra_to_dict(request.extra), timeout=time_left(stream)
        )
        return common.GetGeometriesResponse(geometries=geometries)


def time_left(stream: Stream) -> float | None:
    """Seconds, where the client set a deadline."""
    return stream.deadline.time_remaining() if stream.deadline is not None else None


@contextlib.asynccontextmanager
async def closing(replies: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """A generator is closed when the call ends, not when somebody comes across it."""
    try:
        yield replies
    finally:
        close = getattr(replies, "aclose", None)
        if close is not None:
            await close()

"""The world state store API: the SDK's service, with StreamTransformChanges replaced.

The SDK's method does not report when the stream is open, and leaves the store's generator open when
a call ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from viam.gen.service.worldstatestore.v1 import world_state_store_pb2 as messages

from cogwork.graph.name import Api
from cogwork.resource.messages.structs import extra_to_dict
from cogwork.resource.services.patched_service import patch_methods
from cogwork.resource.services.resource_service import (
    FindResource,
    ResourceService,
    closing,
    time_left,
)
from cogwork.wire.table.handlers import Method, Stream


def world_state_store_methods(api: Api, find: FindResource) -> Iterable[Method]:
    service = WorldStateStoreService(api, find)
    return patch_methods(api, find, {"StreamTransformChanges": service.stream_transform_changes})


class WorldStateStoreService(ResourceService):
    async def stream_transform_changes(self, stream: Stream) -> None:
        request: messages.StreamTransformChangesRequest = stream.request
        changes = self.find_resource(request.name).stream_transform_changes(
            extra=extra_to_dict(request.extra), timeout=time_left(stream)
        )
        async with closing(aiter(changes)) as replies:
            first = asyncio.ensure_future(anext(replies, None))
            try:
                await asyncio.sleep(0)  # let the store start watching for changes
                # This empty message tells clients that the stream is open, so that they miss no
                # change.
                await stream.send_message(messages.StreamTransformChangesResponse())
                change = await first
            finally:
                first.cancel()
                await asyncio.gather(first, return_exceptions=True)
            while change is not None:
                await stream.send_message(change)
                change = await anext(replies, None)

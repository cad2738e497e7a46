"""The board API: the SDK's service, with StreamTicks replaced.

The SDK's method ignores `extra` and the deadline, and ends normally when a tick cannot be sent.
"""

from __future__ import annotations

from collections.abc import Iterable

from viam.gen.component.board.v1 import board_pb2 as messages

from cogwork.graph.name import Api
from cogwork.resource.patched_service import patch_methods
from cogwork.resource.resource_service import FindResource, ResourceService, closing, time_left
from cogwork.resource.structs import extra_to_dict
from cogwork.wire.handlers import Method, Stream

_DESCRIPTOR = messages.DESCRIPTOR.services_by_name["BoardService"]


def board_methods(api: Api, find: FindResource) -> Iterable[Method]:
    ticks = BoardService(api, find).stream_ticks
    return patch_methods(api, find, {"StreamTicks": ticks})


class BoardService(ResourceService):
    async def stream_ticks(self, stream: Stream) -> None:
        request: messages.StreamTicksRequest = stream.request
        board = self.find_resource(request.name)
        interrupts = [await board.digital_interrupt_by_name(name) for name in request.pin_names]
        ticks = await board.stream_ticks(
            interrupts,
            extra=extra_to_dict(request.extra),
            timeout=time_left(stream),
            metadata=stream.metadata,
        )
        async with closing(aiter(ticks)) as replies:
            # A client that waits for the initial metadata misses no tick after it.
            await stream.send_initial_metadata()
            async for tick in replies:
                await stream.send_message(tick)

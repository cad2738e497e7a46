"""The board API. Of the SDK's own service all but one method serves: that of ticks drops `extra`
and the deadline, and when a tick cannot be sent ends as if all had been."""

from __future__ import annotations

from collections.abc import Iterable

from viam.gen.component.board.v1 import board_pb2 as messages

from cogwork.graph.name import Api
from cogwork.resource.answers import CommonAnswers, Find, closing, time_left
from cogwork.resource.mended import mended
from cogwork.resource.structs import extra_to_dict
from cogwork.wire.handlers import Method, Stream

_DESCRIPTOR = messages.DESCRIPTOR.services_by_name["BoardService"]
_SDK_CLASS = "viam.components.board.service:BoardRPCService"


def board_methods(api: Api, find: Find) -> Iterable[Method]:
    ticks = BoardService(api, find).stream_ticks
    return mended(api, find, _DESCRIPTOR, _SDK_CLASS, {"StreamTicks": ticks})


class BoardService(CommonAnswers):
    async def stream_ticks(self, stream: Stream) -> None:
        request: messages.StreamTicksRequest = stream.request
        board = self.resource(request.name)
        interrupts = [await board.digital_interrupt_by_name(name) for name in request.pin_names]
        ticks = await board.stream_ticks(
            interrupts,
            extra=extra_to_dict(request.extra),
            timeout=time_left(stream),
            metadata=stream.metadata,
        )
        async with closing(aiter(ticks)) as coming:
            # Whoever waits for it knows that no tick is missed from here on.
            await stream.send_initial_metadata()
            async for tick in coming:
                await stream.send_message(tick)

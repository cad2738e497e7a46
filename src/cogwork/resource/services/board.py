"""The board API: the SDK's service, with StreamTicks and SetPowerMode replaced.

The SDK's StreamTicks ignores `extra` and the deadline, and ends the stream without an error when a
tick cannot be sent. Its SetPowerMode reports an invalid duration as an unknown error.
"""

from __future__ import annotations

from collections.abc import Iterable

from viam.gen.component.board.v1 import board_pb2 as messages

from cogwork.core.errors import InvalidRequest
from cogwork.graph.name import Api
from cogwork.resource.messages.structs import extra_to_dict
from cogwork.resource.services.patched_service import patch_methods
from cogwork.resource.services.resource_service import (
    FindResource,
    ResourceService,
    closing,
    time_left,
)
from cogwork.wire.table.descriptor_service import to_stream_handler
from cogwork.wire.table.handlers import Method, Stream

_DESCRIPTOR = messages.DESCRIPTOR.services_by_name["BoardService"]


def board_methods(api: Api, find: FindResource) -> Iterable[Method]:
    service = BoardService(api, find)
    return patch_methods(
        api,
        find,
        {
            "StreamTicks": service.stream_ticks,
            "SetPowerMode": to_stream_handler(service.set_power_mode),
        },
    )


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
            # This empty message tells clients that the stream is open, so that they miss no tick.
            await stream.send_message(messages.StreamTicksResponse())
            async for tick in replies:
                await stream.send_message(tick)

    async def set_power_mode(
        self, request: messages.SetPowerModeRequest, stream: Stream
    ) -> messages.SetPowerModeResponse:
        board = self.find_resource(request.name)
        try:
            duration = request.duration.ToTimedelta()
        except (ValueError, OverflowError) as error:
            raise InvalidRequest(f"the duration is invalid: {error}") from None
        await board.set_power_mode(
            mode=request.power_mode,
            duration=duration,
            extra=extra_to_dict(request.extra),
            timeout=time_left(stream),
            metadata=stream.metadata,
        )
        return messages.SetPowerModeResponse()

"""The audio_in API.

The SDK's own service ignores `extra` and the deadline. It modifies chunks that a driver may share
between streams, and ends a stream without an error when a chunk cannot be sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from viam.gen.common.v1 import common_pb2 as common
from viam.gen.component.audioin.v1 import audioin_pb2 as audio_in

from cogwork.graph.name import Api
from cogwork.resource.messages.structs import extra_to_dict
from cogwork.resource.services.resource_service import (
    FindResource,
    ResourceService,
    closing,
    time_left,
)
from cogwork.wire.table.descriptor_service import UnaryHandler, methods_from_descriptor
from cogwork.wire.table.handlers import Method, Stream

_DESCRIPTOR = audio_in.DESCRIPTOR.services_by_name["AudioInService"]


def audio_in_methods(api: Api, find: FindResource) -> Iterable[Method]:
    service = AudioInService(api, find)
    return methods_from_descriptor(
        _DESCRIPTOR, service.unary_handlers(), streams={"GetAudio": service.get_audio}
    )


class AudioInService(ResourceService):
    def unary_handlers(self) -> Mapping[str, UnaryHandler]:
        return {
            **super().unary_handlers(),
            "GetProperties": self.get_properties,
            "GetGeometries": self.get_geometries,
        }

    async def get_audio(self, stream: Stream) -> None:
        request: audio_in.GetAudioRequest = stream.request
        audio = await self.find_resource(request.name).get_audio(
            codec=request.codec,
            duration_seconds=request.duration_seconds,
            previous_timestamp_ns=request.previous_timestamp_nanoseconds,
            extra=extra_to_dict(request.extra),
            timeout=time_left(stream),
            metadata=stream.metadata,
        )
        async with closing(aiter(audio)) as chunks:
            async for chunk in chunks:
                # A driver may share a chunk between streams, so it must not be modified.
                await stream.send_message(
                    audio_in.GetAudioResponse(audio=chunk.audio, request_id=request.request_id)
                )

    async def get_properties(
        self, request: common.GetPropertiesRequest, stream: Stream
    ) -> common.GetPropertiesResponse:
        properties: common.GetPropertiesResponse = await self.find_resource(
            request.name
        ).get_properties(
            extra=extra_to_dict(request.extra), timeout=time_left(stream), metadata=stream.metadata
        )
        return properties

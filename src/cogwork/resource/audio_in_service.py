"""The audio_in API. The SDK's own service drops `extra` and the deadline, writes into chunks that a
driver may have handed to others too, and when one cannot be sent ends as if all had been."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from viam.gen.common.v1 import common_pb2 as common
from viam.gen.component.audioin.v1 import audioin_pb2 as audio_in

from cogwork.graph.name import Api
from cogwork.resource.answers import CommonAnswers, Find, closing, time_left
from cogwork.resource.structs import extra_to_dict
from cogwork.wire.described import Answer, described_methods
from cogwork.wire.handlers import Method, Stream

_DESCRIPTOR = audio_in.DESCRIPTOR.services_by_name["AudioInService"]


def audio_in_methods(api: Api, find: Find) -> Iterable[Method]:
    service = AudioInService(api, find)
    return described_methods(
        _DESCRIPTOR, service.answers(), streams={"GetAudio": service.get_audio}
    )


class AudioInService(CommonAnswers):
    def answers(self) -> Mapping[str, Answer]:
        return {
            **super().answers(),
            "GetProperties": self.get_properties,
            "GetGeometries": self.get_geometries,
        }

    async def get_audio(self, stream: Stream) -> None:
        request: audio_in.GetAudioRequest = stream.request
        heard = await self.resource(request.name).get_audio(
            codec=request.codec,
            duration_seconds=request.duration_seconds,
            previous_timestamp_ns=request.previous_timestamp_nanoseconds,
            extra=extra_to_dict(request.extra),
            timeout=time_left(stream),
            metadata=stream.metadata,
        )
        async with closing(aiter(heard)) as chunks:
            async for chunk in chunks:
                # A driver may hand the same one to everybody who listens.
                await stream.send_message(
                    audio_in.GetAudioResponse(audio=chunk.audio, request_id=request.request_id)
                )

    async def get_properties(
        self, request: common.GetPropertiesRequest, stream: Stream
    ) -> common.GetPropertiesResponse:
        properties: common.GetPropertiesResponse = await self.resource(request.name).get_properties(
            extra=extra_to_dict(request.extra), timeout=time_left(stream), metadata=stream.metadata
        )
        return properties

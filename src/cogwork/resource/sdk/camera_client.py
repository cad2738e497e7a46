"""A client for cameras in another process that also reads the header of annotated images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from viam.components.camera.client import CameraClient
from viam.gen.component.camera.v1.camera_pb2 import GetImagesRequest, GetImagesResponse
from viam.media.video import CameraMimeType, NamedImage
from viam.proto.common import ResponseMetadata

from cogwork.resource.annotated_camera import read_annotator
from cogwork.resource.messages.structs import to_struct
from cogwork.wire.clients.channel import ForwardChannel, as_grpclib_errors


class HeaderCameraClient(CameraClient):
    drawn_by: str | None = None
    """The vision service whose results are on the last images, as their header says."""

    def __init__(self, name: str, channel: Any, raw_channel: ForwardChannel) -> None:
        """`channel` is the SDK's wrapper of a channel. `raw_channel` is a channel to the same
        target."""
        super().__init__(name, channel)
        self._get_images = raw_channel.unary_unary(
            "/viam.component.camera.v1.CameraService/GetImages",
            request_serializer=GetImagesRequest.SerializeToString,
            response_deserializer=GetImagesResponse.FromString,
        )

    async def get_images(
        self,
        *,
        filter_source_names: Sequence[str] | None = None,
        extra: dict[str, Any] | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> tuple[Sequence[NamedImage], ResponseMetadata]:
        request = GetImagesRequest(
            name=self.name, extra=to_struct(extra), filter_source_names=filter_source_names
        )
        metadata = tuple(options.get("metadata", self.Metadata()).proto)
        with as_grpclib_errors():
            call = self._get_images(request, timeout=timeout, metadata=metadata)
            reply = await call
            self.drawn_by = read_annotator(await call.initial_metadata())
        images = [
            NamedImage(each.source_name, each.image, CameraMimeType.from_string(each.mime_type))
            for each in reply.images
        ]
        return images, reply.response_metadata

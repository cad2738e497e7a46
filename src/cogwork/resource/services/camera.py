"""The camera API.

The SDK's own service parses every image byte by byte on the event loop to find its size, which is
not used. It also drops annotations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from viam.gen.app.data.v1 import data_pb2 as data
from viam.gen.common.v1 import common_pb2 as common
from viam.gen.component.camera.v1 import camera_pb2 as camera

from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.graph.name import Api
from cogwork.resource.annotated_camera import send_annotator
from cogwork.resource.frame import Annotation, Frame, produces_frames
from cogwork.resource.messages.structs import extra_to_dict
from cogwork.resource.messages.timestamps import to_timestamp
from cogwork.resource.services.resource_service import FindResource, ResourceService, time_left
from cogwork.wire.table.descriptor_service import UnaryHandler, methods_from_descriptor
from cogwork.wire.table.handlers import Method, Stream
from cogwork.wire.transports.grpc_options import MAX_MESSAGE_SIZE

_DESCRIPTOR = camera.DESCRIPTOR.services_by_name["CameraService"]

MIME_TYPE_KEY = "mime_type"
"""Key in `extra` for the requested MIME type. The API has no field for it."""
_MAX_SOURCES = 1000


class CameraDataTooLarge(CogworkError):
    """An image or a point cloud does not fit into a reply."""

    status = "RESOURCE_EXHAUSTED"


def camera_methods(api: Api, find: FindResource) -> Iterable[Method]:
    return methods_from_descriptor(_DESCRIPTOR, CameraService(api, find).unary_handlers())


class CameraService(ResourceService):
    def unary_handlers(self) -> Mapping[str, UnaryHandler]:
        return {
            **super().unary_handlers(),
            "GetImages": self.get_images,
            "GetPointCloud": self.get_point_cloud,
            "GetProperties": self.get_properties,
            "GetGeometries": self.get_geometries,
        }

    async def get_images(
        self, request: camera.GetImagesRequest, stream: Stream
    ) -> camera.GetImagesResponse:
        resource = self.find_resource(request.name)
        sources = list(request.filter_source_names)
        _check_sources(sources)
        extra = extra_to_dict(request.extra)
        if produces_frames(resource):
            frames = await resource.frames(sources)
            reply = await _encode_frames(frames, parse_mime_type(extra))
            await send_annotator(stream, resource)
            return reply
        images, metadata = await resource.get_images(
            filter_source_names=sources,
            extra=extra,
            timeout=time_left(stream),
            metadata=stream.metadata,
        )
        await send_annotator(stream, resource)
        return camera.GetImagesResponse(
            images=[_to_image(each) for each in images], response_metadata=metadata
        )

    async def get_point_cloud(
        self, request: camera.GetPointCloudRequest, stream: Stream
    ) -> camera.GetPointCloudResponse:
        points, mime_type = await self.find_resource(request.name).get_point_cloud(
            extra=extra_to_dict(request.extra), timeout=time_left(stream), metadata=stream.metadata
        )
        _check_size(len(points), mime_type)
        return camera.GetPointCloudResponse(mime_type=mime_type, point_cloud=points)

    async def get_properties(
        self, request: camera.GetPropertiesRequest, stream: Stream
    ) -> camera.GetPropertiesResponse:
        properties: camera.GetPropertiesResponse = await self.find_resource(
            request.name
        ).get_properties(timeout=time_left(stream), metadata=stream.metadata)
        return properties


def parse_mime_type(extra: Mapping[str, Any] | None) -> str | None:
    """Return the requested MIME type, or None for the default of each image."""
    requested = (extra or {}).get(MIME_TYPE_KEY)
    if requested is None:
        return None
    if not isinstance(requested, str):
        raise InvalidRequest(f'"{MIME_TYPE_KEY}" in extra must be a string such as "image/png"')
    return requested.removesuffix("+lazy")


def to_annotations(annotations: Iterable[Annotation]) -> data.Annotations:
    return data.Annotations(
        bboxes=[
            data.BoundingBox(
                id=str(number),
                label=each.label,
                x_min_normalized=each.x_min,
                y_min_normalized=each.y_min,
                x_max_normalized=each.x_max,
                y_max_normalized=each.y_max,
                confidence=each.confidence,
            )
            for number, each in enumerate(annotations)
        ]
    )


def make_response_metadata(frames: Sequence[Frame]) -> common.ResponseMetadata:
    """Return metadata with the capture time of the oldest frame."""
    if not frames:
        return common.ResponseMetadata()
    seconds = min(frame.captured_at for frame in frames)
    return common.ResponseMetadata(captured_at=to_timestamp(seconds))


async def _encode_frames(
    frames: Sequence[Frame], mime_type: str | None
) -> camera.GetImagesResponse:
    reply = camera.GetImagesResponse(response_metadata=make_response_metadata(frames))
    for frame in frames:
        kind = mime_type or frame.default_mime_type
        data = await frame.encode(kind)
        _check_size(len(data), kind)
        image = reply.images.add(source_name=frame.source, mime_type=kind, image=data)
        if frame.annotations:
            image.annotations.CopyFrom(to_annotations(frame.annotations))
    return reply


def _to_image(image: Any) -> camera.Image:
    """Convert an image to a message. Only images of our subclass have annotations."""
    _check_size(len(image.data), image.mime_type)
    return camera.Image(
        source_name=image.name,
        mime_type=image.mime_type,
        image=image.data,
        annotations=getattr(image, "annotations", None),
    )


def _check_sources(sources: Sequence[str]) -> None:
    if len(sources) > _MAX_SOURCES:
        raise InvalidRequest(
            f"the filter has {len(sources)} source names; use at most {_MAX_SOURCES}"
        )
    seen: set[str] = set()
    for source in sources:
        if source in seen:
            raise InvalidRequest(f"duplicate source name in filter: {source}")
        seen.add(source)


def _check_size(size: int, mime_type: str) -> None:
    """Raise CameraDataTooLarge if the data is too large.

    Check this before the data is copied, because the copy blocks the loop.
    """
    if size > MAX_MESSAGE_SIZE:
        raise CameraDataTooLarge(
            f"{mime_type} takes {size} bytes, but a reply holds at most {MAX_MESSAGE_SIZE}; "
            "request another type or smaller images"
        )

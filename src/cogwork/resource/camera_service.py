"""The camera API. The SDK's own service reads every picture byte by byte on the loop, to learn a
size that nobody asked for, and drops annotations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from viam.gen.app.data.v1 import data_pb2 as data
from viam.gen.common.v1 import common_pb2 as common
from viam.gen.component.camera.v1 import camera_pb2 as camera

from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.graph.name import Api
from cogwork.resource.answers import CommonAnswers, Find, time_left
from cogwork.resource.frame import Frame, Mark, offers_frames
from cogwork.resource.moments import timestamp
from cogwork.resource.structs import extra_to_dict
from cogwork.wire.described import Answer, described_methods
from cogwork.wire.grpc import LARGEST_MESSAGE
from cogwork.wire.handlers import Method, Stream

_DESCRIPTOR = camera.DESCRIPTOR.services_by_name["CameraService"]

MIME_TYPE = "mime_type"
"""In `extra`: which type the pictures shall have. The API has no field for it."""
_MOST_SOURCES = 1000


class TooLarge(CogworkError):
    """More than fits into a reply."""

    status = "RESOURCE_EXHAUSTED"


def camera_methods(api: Api, find: Find) -> Iterable[Method]:
    return described_methods(_DESCRIPTOR, CameraService(api, find).answers())


class CameraService(CommonAnswers):
    def answers(self) -> Mapping[str, Answer]:
        return {
            **super().answers(),
            "GetImages": self.get_images,
            "GetPointCloud": self.get_point_cloud,
            "GetProperties": self.get_properties,
            "GetGeometries": self.get_geometries,
        }

    async def get_images(
        self, request: camera.GetImagesRequest, stream: Stream
    ) -> camera.GetImagesResponse:
        resource = self.resource(request.name)
        sources = list(request.filter_source_names)
        _refuse_twins(sources)
        extra = extra_to_dict(request.extra)
        if offers_frames(resource):
            frames = await resource.frames(sources)
            return await _of_frames(frames, wanted_type(extra))
        images, metadata = await resource.get_images(
            filter_source_names=sources,
            extra=extra,
            timeout=time_left(stream),
            metadata=stream.metadata,
        )
        return camera.GetImagesResponse(
            images=[_of_named(each) for each in images], response_metadata=metadata
        )

    async def get_point_cloud(
        self, request: camera.GetPointCloudRequest, stream: Stream
    ) -> camera.GetPointCloudResponse:
        points, mime_type = await self.resource(request.name).get_point_cloud(
            extra=extra_to_dict(request.extra), timeout=time_left(stream), metadata=stream.metadata
        )
        _refuse_more_than_fits(len(points), mime_type)
        return camera.GetPointCloudResponse(mime_type=mime_type, point_cloud=points)

    async def get_properties(
        self, request: camera.GetPropertiesRequest, stream: Stream
    ) -> camera.GetPropertiesResponse:
        properties: camera.GetPropertiesResponse = await self.resource(request.name).get_properties(
            timeout=time_left(stream), metadata=stream.metadata
        )
        return properties


def wanted_type(extra: Mapping[str, Any] | None) -> str | None:
    """None: each picture's usual one."""
    wanted = (extra or {}).get(MIME_TYPE)
    if wanted is None:
        return None
    if not isinstance(wanted, str):
        raise InvalidRequest(f'extra "{MIME_TYPE}" is a text such as image/png')
    return wanted.removesuffix("+lazy")


def annotations_of(marks: Iterable[Mark]) -> data.Annotations:
    return data.Annotations(
        bboxes=[
            data.BoundingBox(
                id=str(number),
                label=mark.label,
                x_min_normalized=mark.x_min,
                y_min_normalized=mark.y_min,
                x_max_normalized=mark.x_max,
                y_max_normalized=mark.y_max,
                confidence=mark.confidence,
            )
            for number, mark in enumerate(marks)
        ]
    )


def captured(frames: Sequence[Frame]) -> common.ResponseMetadata:
    """When the oldest of them was taken."""
    if not frames:
        return common.ResponseMetadata()
    seconds = min(frame.captured_at for frame in frames)
    return common.ResponseMetadata(captured_at=timestamp(seconds))


async def _of_frames(frames: Sequence[Frame], mime_type: str | None) -> camera.GetImagesResponse:
    reply = camera.GetImagesResponse(response_metadata=captured(frames))
    for frame in frames:
        kind = mime_type or frame.usual_type
        data = await frame.encoded(kind)
        _refuse_more_than_fits(len(data), kind)
        image = reply.images.add(source_name=frame.source, mime_type=kind, image=data)
        if frame.marks:
            image.annotations.CopyFrom(annotations_of(frame.marks))
    return reply


def _of_named(image: Any) -> camera.Image:
    """Of a class written for the SDK, which knows no annotations; one of ours may carry them."""
    _refuse_more_than_fits(len(image.data), image.mime_type)
    return camera.Image(
        source_name=image.name,
        mime_type=image.mime_type,
        image=image.data,
        annotations=getattr(image, "annotations", None),
    )


def _refuse_twins(sources: Sequence[str]) -> None:
    if len(sources) > _MOST_SOURCES:
        raise InvalidRequest(f"the filter has {len(sources)} source names; no camera has so many")
    seen: set[str] = set()
    for source in sources:
        if source in seen:
            raise InvalidRequest(f"duplicate source name in filter: {source}")
        seen.add(source)


def _refuse_more_than_fits(size: int, mime_type: str) -> None:
    """Here, since copying it into a reply that is refused later would keep the loop."""
    if size > LARGEST_MESSAGE:
        raise TooLarge(
            f"{mime_type} takes {size} bytes here, a reply holds at most {LARGEST_MESSAGE}; "
            "ask for another type, or for smaller pictures"
        )

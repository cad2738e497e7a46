"""The vision API. The SDK's own service reads every image byte by byte on the loop, to learn a
size that nobody asked for; and a name of a camera reaches it as a name, whoever has to find it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from google.protobuf.message import DecodeError
from viam.gen.common.v1 import common_pb2 as common
from viam.gen.component.camera.v1 import camera_pb2 as camera
from viam.gen.service.vision.v1 import vision_pb2 as vision
from viam.media.video import CameraMimeType, ViamImage

from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.answers import CommonAnswers, Find, time_left
from cogwork.resource.frame import Frame
from cogwork.resource.image_header import PCD, read_header
from cogwork.resource.structs import extra_to_dict, to_struct
from cogwork.wire.described import Answer, described_methods
from cogwork.wire.handlers import Method, Stream

_LARGE = 1 << 20
"""Bytes of an image."""
_WITH_IMAGES = ("GetDetections", "GetClassifications")
"""Their requests come as bytes: see `_read`."""
_DESCRIPTOR = vision.DESCRIPTOR.services_by_name["VisionService"]
_CAMERA = Api.parse("rdk:component:camera")

T = TypeVar("T", vision.GetDetectionsRequest, vision.GetClassificationsRequest)


class NoCamera(CogworkError):
    """A call that needs a camera, and none is named or configured."""

    status = "INVALID_ARGUMENT"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What somebody wants to know of one picture."""

    detections: bool = False
    classifications: bool = False
    objects: bool = False
    detections_3d: bool = False
    most_classifications: int = 0
    """0: all of them."""
    optional: bool = False
    """Whether a part that the model has no answer to is left out instead of being an error."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One picture and what was found in it."""

    frame: Frame
    detections: Sequence[vision.Detection] = ()
    classifications: Sequence[vision.Classification] = ()
    objects: Sequence[common.PointCloudObject] = ()
    detections_3d: Sequence[vision.Detection3D] = ()
    extra: Mapping[str, Any] | None = None


@runtime_checkable
class LooksThroughCameras(Protocol):
    """A vision service in this process: it is handed the camera, not its name."""

    @property
    def default_camera(self) -> str | None: ...

    async def look(self, camera: Any, camera_name: str, wishes: Wishes) -> Seen: ...


@runtime_checkable
class FindsInFrames(Protocol):
    """A vision service in this process: it needs no encoded picture."""

    async def detections_in(self, frame: Frame) -> Sequence[vision.Detection]: ...

    async def classifications_in(
        self, frame: Frame, most: int
    ) -> Sequence[vision.Classification]: ...


class GivenImage(ViamImage):
    """Bytes from a client, as the SDK's classes want them. What they are is said by themselves."""

    def __init__(self, data: bytes) -> None:
        header = read_header(data)
        self._data = data
        self._mime_type = CameraMimeType.from_string(header.mime_type)
        self._width, self._height = header.width, header.height


def vision_methods(api: Api, find: Find) -> Iterable[Method]:
    return described_methods(_DESCRIPTOR, VisionService(api, find).answers(), raw=_WITH_IMAGES)


class VisionService(CommonAnswers):
    def answers(self) -> Mapping[str, Answer]:
        return {
            **super().answers(),
            "GetDetectionsFromCamera": self.get_detections_from_camera,
            "GetDetections": self.get_detections,
            "GetClassificationsFromCamera": self.get_classifications_from_camera,
            "GetClassifications": self.get_classifications,
            "GetDetections3D": self.get_detections_3d,
            "GetObjectPointClouds": self.get_object_point_clouds,
            "GetProperties": self.get_properties,
            "CaptureAllFromCamera": self.capture_all_from_camera,
        }

    async def get_detections_from_camera(
        self, request: vision.GetDetectionsFromCameraRequest, stream: Stream
    ) -> vision.GetDetectionsFromCameraResponse:
        resource = self.resource(request.name)
        if isinstance(resource, LooksThroughCameras):
            seen = await self._look(resource, request.camera_name, Wishes(detections=True))
            return vision.GetDetectionsFromCameraResponse(detections=seen.detections)
        found = await resource.get_detections_from_camera(
            request.camera_name, extra=extra_to_dict(request.extra), timeout=time_left(stream)
        )
        return vision.GetDetectionsFromCameraResponse(detections=found)

    async def get_detections(self, data: bytes, stream: Stream) -> vision.GetDetectionsResponse:
        request, image = await _read(vision.GetDetectionsRequest, data)
        found = await self.resource(request.name).get_detections(
            image,
            extra=extra_to_dict(request.extra),
            timeout=time_left(stream),
        )
        return vision.GetDetectionsResponse(detections=found)

    async def get_classifications_from_camera(
        self, request: vision.GetClassificationsFromCameraRequest, stream: Stream
    ) -> vision.GetClassificationsFromCameraResponse:
        resource = self.resource(request.name)
        if isinstance(resource, LooksThroughCameras):
            wishes = Wishes(classifications=True, most_classifications=request.n)
            seen = await self._look(resource, request.camera_name, wishes)
            return vision.GetClassificationsFromCameraResponse(classifications=seen.classifications)
        found = await resource.get_classifications_from_camera(
            request.camera_name,
            request.n,
            extra=extra_to_dict(request.extra),
            timeout=time_left(stream),
        )
        return vision.GetClassificationsFromCameraResponse(classifications=found)

    async def get_classifications(
        self, data: bytes, stream: Stream
    ) -> vision.GetClassificationsResponse:
        request, image = await _read(vision.GetClassificationsRequest, data)
        found = await self.resource(request.name).get_classifications(
            image,
            request.n,
            extra=extra_to_dict(request.extra),
            timeout=time_left(stream),
        )
        return vision.GetClassificationsResponse(classifications=found)

    async def get_detections_3d(
        self, request: vision.GetDetections3DRequest, stream: Stream
    ) -> vision.GetDetections3DResponse:
        resource = self.resource(request.name)
        if isinstance(resource, LooksThroughCameras):
            seen = await self._look(resource, request.camera_name, Wishes(detections_3d=True))
            return vision.GetDetections3DResponse(detections_3d=seen.detections_3d)
        found = await resource.get_detections_3d(
            request.camera_name, extra=extra_to_dict(request.extra), timeout=time_left(stream)
        )
        return vision.GetDetections3DResponse(detections_3d=found)

    async def get_object_point_clouds(
        self, request: vision.GetObjectPointCloudsRequest, stream: Stream
    ) -> vision.GetObjectPointCloudsResponse:
        resource = self.resource(request.name)
        if isinstance(resource, LooksThroughCameras):
            seen = await self._look(resource, request.camera_name, Wishes(objects=True))
            return vision.GetObjectPointCloudsResponse(mime_type=PCD, objects=seen.objects)
        found = await resource.get_object_point_clouds(
            request.camera_name, extra=extra_to_dict(request.extra), timeout=time_left(stream)
        )
        return vision.GetObjectPointCloudsResponse(mime_type=PCD, objects=found)

    async def get_properties(
        self, request: vision.GetPropertiesRequest, stream: Stream
    ) -> vision.GetPropertiesResponse:
        properties: vision.GetPropertiesResponse = await self.resource(request.name).get_properties(
            extra=extra_to_dict(request.extra), timeout=time_left(stream)
        )
        return properties

    async def capture_all_from_camera(
        self, request: vision.CaptureAllFromCameraRequest, stream: Stream
    ) -> vision.CaptureAllFromCameraResponse:
        resource = self.resource(request.name)
        if isinstance(resource, LooksThroughCameras):
            return await self._capture_all(resource, request)
        result = await resource.capture_all_from_camera(
            request.camera_name,
            return_image=request.return_image,
            return_classifications=request.return_classifications,
            return_detections=request.return_detections,
            return_object_point_clouds=request.return_object_point_clouds,
            return_detections_3d=request.return_detections_3d,
            extra=extra_to_dict(request.extra),
            timeout=time_left(stream),
        )
        return vision.CaptureAllFromCameraResponse(
            image=_image(result.image, request.camera_name),
            detections=result.detections,
            classifications=result.classifications,
            objects=result.objects,
            detections_3d=result.detections_3d,
            extra=to_struct(result.extra),
        )

    async def _capture_all(
        self, resource: LooksThroughCameras, request: vision.CaptureAllFromCameraRequest
    ) -> vision.CaptureAllFromCameraResponse:
        wishes = Wishes(
            detections=request.return_detections,
            classifications=request.return_classifications,
            objects=request.return_object_point_clouds,
            detections_3d=request.return_detections_3d,
            optional=True,
        )
        name = _camera_name(resource, request.camera_name)
        seen = await self._look(resource, name, wishes)
        reply = vision.CaptureAllFromCameraResponse(
            detections=seen.detections,
            classifications=seen.classifications,
            objects=seen.objects,
            detections_3d=seen.detections_3d,
            extra=to_struct(seen.extra),
        )
        if request.return_image:
            kind = seen.frame.usual_type
            reply.image.source_name, reply.image.mime_type = name, kind
            reply.image.image = await seen.frame.encoded(kind)
        return reply

    async def _look(self, resource: LooksThroughCameras, name: str, wishes: Wishes) -> Seen:
        name = _camera_name(resource, name)
        return await resource.look(self._find(ResourceName.of(_CAMERA, name)), name, wishes)


async def _read(kind: type[T], data: bytes) -> tuple[T, GivenImage]:
    """A large one is copied twice, and what it is may take long to find out: in a thread."""

    def read() -> tuple[T, GivenImage]:
        request = kind.FromString(data)
        return request, GivenImage(request.image)

    try:
        return read() if len(data) < _LARGE else await asyncio.to_thread(read)
    except DecodeError:
        raise InvalidRequest(f"the request is no {kind.DESCRIPTOR.full_name} message") from None


def _camera_name(resource: LooksThroughCameras, given: str) -> str:
    name = given or resource.default_camera
    if not name:
        raise NoCamera(
            "no camera name provided and no default camera found: name one in the call, or set "
            '"camera_name" of the vision service'
        )
    return name


def _image(image: ViamImage | None, source: str) -> camera.Image | None:
    if image is None:
        return None
    return camera.Image(source_name=source, mime_type=image.mime_type, image=image.data)

"""The vision API.

The SDK's own service parses every image byte by byte on the event loop to find an unused size, and
passes only the name of a camera to the vision service instead of the camera.
"""

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
from cogwork.resource.frame import Frame
from cogwork.resource.image_header import PCD, read_header
from cogwork.resource.resource_service import FindResource, ResourceService, time_left
from cogwork.resource.structs import extra_to_dict, to_struct
from cogwork.wire.descriptor_service import UnaryHandler, methods_from_descriptor
from cogwork.wire.handlers import Method, Stream

_THREAD_THRESHOLD = 1 << 20
"""Bytes from which a request with an image is parsed in a thread."""
_RAW_METHODS = ("GetDetections", "GetClassifications")
"""Methods that receive the request as bytes: see `_parse_image_request`."""
_DESCRIPTOR = vision.DESCRIPTOR.services_by_name["VisionService"]
_CAMERA_API = Api.parse("rdk:component:camera")

T = TypeVar("T", vision.GetDetectionsRequest, vision.GetClassificationsRequest)


class NoCamera(CogworkError):
    """A call needs a camera, but none is named or configured."""

    status = "INVALID_ARGUMENT"


@dataclass(frozen=True, slots=True)
class VisionQuery:
    """The results that are requested for one image."""

    detections: bool = False
    classifications: bool = False
    objects: bool = False
    detections_3d: bool = False
    max_classifications: int = 0
    """Maximum number of classifications; 0 for all."""
    skip_unsupported: bool = False
    """Whether results that the model does not support are omitted instead of raising an error."""


@dataclass(frozen=True, slots=True)
class VisionCapture:
    """An image and the results for it."""

    frame: Frame
    detections: Sequence[vision.Detection] = ()
    classifications: Sequence[vision.Classification] = ()
    objects: Sequence[common.PointCloudObject] = ()
    detections_3d: Sequence[vision.Detection3D] = ()
    extra: Mapping[str, Any] | None = None


@runtime_checkable
class CameraAnalyzer(Protocol):
    """A vision service in this process, which receives the camera instead of its name."""

    @property
    def default_camera(self) -> str | None: ...

    async def analyze_camera(
        self, camera: Any, camera_name: str, query: VisionQuery
    ) -> VisionCapture: ...


@runtime_checkable
class FrameAnalyzer(Protocol):
    """A vision service in this process, which does not need an encoded image."""

    async def detect_in_frame(self, frame: Frame) -> Sequence[vision.Detection]: ...

    async def classify_frame(self, frame: Frame, most: int) -> Sequence[vision.Classification]: ...


class RequestImage(ViamImage):
    """An image from a client, in the form of the SDK; its type is detected from the data."""

    def __init__(self, data: bytes) -> None:
        header = read_header(data)
        self._data = data
        self._mime_type = CameraMimeType.from_string(header.mime_type)
        self._width, self._height = header.width, header.height


def vision_methods(api: Api, find: FindResource) -> Iterable[Method]:
    return methods_from_descriptor(
        _DESCRIPTOR, VisionService(api, find).unary_handlers(), raw=_RAW_METHODS
    )


class VisionService(ResourceService):
    def unary_handlers(self) -> Mapping[str, UnaryHandler]:
        return {
            **super().unary_handlers(),
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
        resource = self.find_resource(request.name)
        if isinstance(resource, CameraAnalyzer):
            capture = await self._analyze_camera(
                resource, request.camera_name, VisionQuery(detections=True)
            )
            return vision.GetDetectionsFromCameraResponse(detections=capture.detections)
        found = await resource.get_detections_from_camera(
            request.camera_name, extra=extra_to_dict(request.extra), timeout=time_left(stream)
        )
        return vision.GetDetectionsFromCameraResponse(detections=found)

    async def get_detections(self, data: bytes, stream: Stream) -> vision.GetDetectionsResponse:
        request, image = await _parse_image_request(vision.GetDetectionsRequest, data)
        found = await self.find_resource(request.name).get_detections(
            image,
            extra=extra_to_dict(request.extra),
            timeout=time_left(stream),
        )
        return vision.GetDetectionsResponse(detections=found)

    async def get_classifications_from_camera(
        self, request: vision.GetClassificationsFromCameraRequest, stream: Stream
    ) -> vision.GetClassificationsFromCameraResponse:
        resource = self.find_resource(request.name)
        if isinstance(resource, CameraAnalyzer):
            query = VisionQuery(classifications=True, max_classifications=request.n)
            capture = await self._analyze_camera(resource, request.camera_name, query)
            return vision.GetClassificationsFromCameraResponse(
                classifications=capture.classifications
            )
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
        request, image = await _parse_image_request(vision.GetClassificationsRequest, data)
        found = await self.find_resource(request.name).get_classifications(
            image,
            request.n,
            extra=extra_to_dict(request.extra),
            timeout=time_left(stream),
        )
        return vision.GetClassificationsResponse(classifications=found)

    async def get_detections_3d(
        self, request: vision.GetDetections3DRequest, stream: Stream
    ) -> vision.GetDetections3DResponse:
        resource = self.find_resource(request.name)
        if isinstance(resource, CameraAnalyzer):
            capture = await self._analyze_camera(
                resource, request.camera_name, VisionQuery(detections_3d=True)
            )
            return vision.GetDetections3DResponse(detections_3d=capture.detections_3d)
        found = await resource.get_detections_3d(
            request.camera_name, extra=extra_to_dict(request.extra), timeout=time_left(stream)
        )
        return vision.GetDetections3DResponse(detections_3d=found)

    async def get_object_point_clouds(
        self, request: vision.GetObjectPointCloudsRequest, stream: Stream
    ) -> vision.GetObjectPointCloudsResponse:
        resource = self.find_resource(request.name)
        if isinstance(resource, CameraAnalyzer):
            capture = await self._analyze_camera(
                resource, request.camera_name, VisionQuery(objects=True)
            )
            return vision.GetObjectPointCloudsResponse(mime_type=PCD, objects=capture.objects)
        found = await resource.get_object_point_clouds(
            request.camera_name, extra=extra_to_dict(request.extra), timeout=time_left(stream)
        )
        return vision.GetObjectPointCloudsResponse(mime_type=PCD, objects=found)

    async def get_properties(
        self, request: vision.GetPropertiesRequest, stream: Stream
    ) -> vision.GetPropertiesResponse:
        properties: vision.GetPropertiesResponse = await self.find_resource(
            request.name
        ).get_properties(extra=extra_to_dict(request.extra), timeout=time_left(stream))
        return properties

    async def capture_all_from_camera(
        self, request: vision.CaptureAllFromCameraRequest, stream: Stream
    ) -> vision.CaptureAllFromCameraResponse:
        resource = self.find_resource(request.name)
        if isinstance(resource, CameraAnalyzer):
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
            image=_to_image(result.image, request.camera_name),
            detections=result.detections,
            classifications=result.classifications,
            objects=result.objects,
            detections_3d=result.detections_3d,
            extra=to_struct(result.extra),
        )

    async def _capture_all(
        self, resource: CameraAnalyzer, request: vision.CaptureAllFromCameraRequest
    ) -> vision.CaptureAllFromCameraResponse:
        query = VisionQuery(
            detections=request.return_detections,
            classifications=request.return_classifications,
            objects=request.return_object_point_clouds,
            detections_3d=request.return_detections_3d,
            skip_unsupported=True,
        )
        name = _choose_camera(resource, request.camera_name)
        capture = await self._analyze_camera(resource, name, query)
        reply = vision.CaptureAllFromCameraResponse(
            detections=capture.detections,
            classifications=capture.classifications,
            objects=capture.objects,
            detections_3d=capture.detections_3d,
            extra=to_struct(capture.extra),
        )
        if request.return_image:
            kind = capture.frame.default_mime_type
            reply.image.source_name, reply.image.mime_type = name, kind
            reply.image.image = await capture.frame.encode(kind)
        return reply

    async def _analyze_camera(
        self, resource: CameraAnalyzer, name: str, query: VisionQuery
    ) -> VisionCapture:
        name = _choose_camera(resource, name)
        return await resource.analyze_camera(
            self._find(ResourceName.from_short(_CAMERA_API, name)), name, query
        )


async def _parse_image_request(kind: type[T], data: bytes) -> tuple[T, RequestImage]:
    """Parse a request and the header of its image; in a thread if the request is large, because
    it is copied twice and reading the header may be slow."""

    def parse() -> tuple[T, RequestImage]:
        request = kind.FromString(data)
        return request, RequestImage(request.image)

    try:
        return parse() if len(data) < _THREAD_THRESHOLD else await asyncio.to_thread(parse)
    except DecodeError:
        raise InvalidRequest(
            f"the request is not a valid {kind.DESCRIPTOR.full_name} message"
        ) from None


def _choose_camera(resource: CameraAnalyzer, given: str) -> str:
    name = given or resource.default_camera
    if not name:
        raise NoCamera(
            "no camera name provided and no default camera found: name one in the call, or set "
            '"camera_name" of the vision service'
        )
    return name


def _to_image(image: ViamImage | None, source: str) -> camera.Image | None:
    if image is None:
        return None
    return camera.Image(source_name=source, mime_type=image.mime_type, image=image.data)

"""The vision API.

The SDK's own service scans every image byte by byte on the event loop for its size, which is not
used. It also passes the name of a camera to the vision service instead of the camera.
"""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from google.protobuf.message import DecodeError
from viam.gen.service.vision.v1 import vision_pb2 as vision
from viam.media.video import CameraMimeType, ViamImage

from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.graph.name import Api, ResourceName
from cogwork.media.image_header import PCD, read_header
from cogwork.resource.frame import Frame
from cogwork.resource.messages.structs import extra_to_dict, to_struct_async
from cogwork.resource.services.resource_service import FindResource, ResourceService, time_left
from cogwork.wire.table.descriptor_service import UnaryHandler, methods_from_descriptor
from cogwork.wire.table.handlers import Method, Stream

EXPLAIN = "explain"
"""Key in the `extra` of a request that asks for an explanation, and in the `extra` of the reply."""
_THREAD_THRESHOLD = 1 << 20
"""Minimum size in bytes of an image request that is parsed in a thread."""
_RAW_METHODS = ("GetDetections", "GetClassifications")
"""Methods that receive the request as bytes: see `_parse_image_request`."""
_DESCRIPTOR = vision.DESCRIPTOR.services_by_name["VisionService"]
_CAMERA_API = Api.parse("rdk:component:camera")

T = TypeVar("T", vision.GetDetectionsRequest, vision.GetClassificationsRequest)


class NoCamera(CogworkError):
    """A call needs a camera, but neither the call nor the configuration names one."""

    status = "INVALID_ARGUMENT"


class FrameAnalyzer(abc.ABC):
    """A vision service in this process, which accepts cameras and images in memory.

    The methods of the SDK that take the name of a camera also take the camera itself, as `camera`.
    """

    @property
    @abc.abstractmethod
    def default_camera(self) -> str | None:
        """Name of the camera to use for calls that do not name one."""

    @abc.abstractmethod
    async def detect_in_frame(self, frame: Frame) -> Sequence[vision.Detection]: ...

    @abc.abstractmethod
    async def classify_frame(self, frame: Frame, most: int) -> Sequence[vision.Classification]:
        """Return the first `most` classifications, or all if `most` is not positive."""


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
        resource, camera_name, options = self._prepare_call(request, stream)
        found = await resource.get_detections_from_camera(camera_name, **options)
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
        resource, camera_name, options = self._prepare_call(request, stream)
        found = await resource.get_classifications_from_camera(camera_name, request.n, **options)
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
        resource, camera_name, options = self._prepare_call(request, stream)
        found = await resource.get_detections_3d(camera_name, **options)
        return vision.GetDetections3DResponse(detections_3d=found)

    async def get_object_point_clouds(
        self, request: vision.GetObjectPointCloudsRequest, stream: Stream
    ) -> vision.GetObjectPointCloudsResponse:
        resource, camera_name, options = self._prepare_call(request, stream)
        found = await resource.get_object_point_clouds(camera_name, **options)
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
        resource, camera_name, options = self._prepare_call(request, stream)
        if EXPLAIN in request.extra.fields:
            options["extra"] = extra_to_dict(request.extra)
        result = await resource.capture_all_from_camera(
            camera_name,
            return_image=request.return_image,
            return_classifications=request.return_classifications,
            return_detections=request.return_detections,
            return_object_point_clouds=request.return_object_point_clouds,
            return_detections_3d=request.return_detections_3d,
            **options,
        )
        reply = vision.CaptureAllFromCameraResponse(
            detections=result.detections,
            classifications=result.classifications,
            objects=result.objects,
            detections_3d=result.detections_3d,
            extra=await to_struct_async(result.extra),
        )
        reply.image.SetInParent()  # set even without an image: Go clients always read the field
        if result.image is not None:
            # Set the field in place, because the constructor would copy the bytes of the image
            # twice.
            reply.image.source_name = camera_name
            reply.image.mime_type = result.image.mime_type
            reply.image.image = result.image.data
        return reply

    def _prepare_call(self, request: Any, stream: Stream) -> tuple[Any, str, dict[str, Any]]:
        """Return the vision service, the name of the camera and the options of the call.

        A service in this process gets the camera itself. Other services find it by its name.
        """
        resource = self.find_resource(request.name)
        if not isinstance(resource, FrameAnalyzer):
            options = {"extra": extra_to_dict(request.extra), "timeout": time_left(stream)}
            return resource, request.camera_name, options
        name = request.camera_name or resource.default_camera
        if not name:
            raise NoCamera(
                "no camera name provided and no default camera found: name one in the call, or set "
                '"camera_name" of the vision service'
            )
        return resource, name, {"camera": self._find(ResourceName.from_short(_CAMERA_API, name))}


async def _parse_image_request(kind: type[T], data: bytes) -> tuple[T, RequestImage]:
    """Parse a request and the header of its image.

    A large request is parsed in a thread, because it is copied twice and the header may be slow to
    read.
    """

    def parse() -> tuple[T, RequestImage]:
        request = kind.FromString(data)
        return request, RequestImage(request.image)

    try:
        return parse() if len(data) < _THREAD_THRESHOLD else await asyncio.to_thread(parse)
    except DecodeError:
        raise InvalidRequest(
            f"the request is not a valid {kind.DESCRIPTOR.full_name} message"
        ) from None

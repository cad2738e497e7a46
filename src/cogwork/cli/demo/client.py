"""gRPC client of the demo machine."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import grpc

from cogwork.cli.client.grpc_client import format_rpc_error
from cogwork.core.errors import CogworkError
from cogwork.resource.sdk import clean_import as sdk
from cogwork.wire.transports.grpc_options import GRPC_OPTIONS

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.common.v1 import common_pb2 as common  # noqa: E402
from viam.gen.component.camera.v1 import camera_pb2 as camera  # noqa: E402
from viam.gen.service.vision.v1 import vision_pb2 as vision  # noqa: E402

_TIMEOUT = 10.0
_SERVICE = "inspector"


class DemoCallFailed(CogworkError):
    """A call to the demo machine failed."""


class DemoClient:
    def __init__(self, address: str) -> None:
        self._address = address
        self._channel = grpc.insecure_channel(address, GRPC_OPTIONS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._channel.close()

    def fetch_labels(self) -> list[str]:
        """Fetch the label of each object on the belt."""
        reply = self._call(
            "service.vision.v1.VisionService/GetDetectionsFromCamera",
            vision.GetDetectionsFromCameraRequest(name=_SERVICE),
            vision.GetDetectionsFromCameraResponse,
        )
        return [each.class_name for each in reply.detections]

    def fetch_inference_ms(self) -> float:
        """Fetch the duration of one inference, in milliseconds."""
        reply = self._call(
            "service.vision.v1.VisionService/GetStatus",
            common.GetStatusRequest(name=_SERVICE),
            common.GetStatusResponse,
        )
        return float(reply.result["milliseconds"]["infer"])

    def fetch_image(self, name: str) -> bytes:
        reply = self._call(
            "component.camera.v1.CameraService/GetImages",
            camera.GetImagesRequest(name=name, filter_source_names=["color"]),
            camera.GetImagesResponse,
        )
        data: bytes = reply.images[0].image
        return data

    def _call(self, method: str, request: Any, reply: Any) -> Any:
        call = self._channel.unary_unary(
            f"/viam.{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=reply.FromString,
        )
        try:
            return call(request, timeout=_TIMEOUT)
        except grpc.RpcError as error:
            raise DemoCallFailed(format_rpc_error(error, self._address)) from error

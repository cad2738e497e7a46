"""Base class of the built-in cameras: implements the SDK's interface on frames."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from viam.components.camera import Camera
from viam.gen.app.data.v1.data_pb2 import Annotations
from viam.media.video import CameraMimeType, NamedImage
from viam.proto.common import ResponseMetadata
from viam.proto.component.camera import DistortionParameters as DistortionMessage
from viam.proto.component.camera import IntrinsicParameters as IntrinsicMessage

from cogwork.core.errors import InvalidRequest, Unsupported
from cogwork.core.workers import Workers
from cogwork.drivers.camera.attributes import DistortionParameters, IntrinsicParameters, Optics
from cogwork.drivers.no_geometry import NoGeometry
from cogwork.graph.name import ResourceName
from cogwork.media.image import COLOR_TYPES, DEPTH_TYPES
from cogwork.media.image_header import PCD
from cogwork.resource.frame import Frame
from cogwork.resource.model import logger_of
from cogwork.resource.point_cloud import Intrinsics, depth_to_pcd
from cogwork.resource.services.camera import make_response_metadata, parse_mime_type, to_annotations


class FrameImage(NamedImage):
    """An encoded frame with its annotations.

    The width and height are known even for image types that the SDK cannot parse.
    """

    def __init__(self, frame: Frame, data: bytes, mime_type: str) -> None:
        self.name = frame.source
        self._data = data
        self._mime_type = CameraMimeType.from_string(mime_type)
        self._width = frame.width
        self._height = frame.height
        self._annotations = frame.annotations

    @property
    def annotations(self) -> Annotations:
        return to_annotations(self._annotations)


async def encode_frame(frame: Frame) -> FrameImage:
    """Encode a frame in its default format."""
    mime_type = frame.default_mime_type
    return FrameImage(frame, await frame.encode(mime_type), mime_type)


class FrameCamera(NoGeometry, Camera):
    """A camera that implements `frames`; all other calls build on it."""

    def __init__(
        self,
        name: ResourceName,
        optics: Optics,
        *,
        sources: Sequence[str] = ("",),
        has_depth: bool = False,
        frame_rate: float | None = None,
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self.workers = Workers(f"camera {name.short}")
        self.sources = tuple(sources)
        self._optics = optics
        self._has_depth = has_depth
        self._frame_rate = frame_rate

    @abc.abstractmethod
    async def frames(self, sources: Sequence[str] = ()) -> Sequence[Frame]: ...

    async def close(self) -> None:
        self.workers.close()

    async def get_images(
        self,
        *,
        filter_source_names: Sequence[str] | None = None,
        extra: dict[str, Any] | None = None,
        **_: Any,
    ) -> tuple[Sequence[NamedImage], ResponseMetadata]:
        frames = await self.frames(filter_source_names or ())
        mime_type = parse_mime_type(extra)
        images = []
        for frame in frames:
            kind = mime_type or frame.default_mime_type
            images.append(FrameImage(frame, await frame.encode(kind), kind))
        return images, make_response_metadata(frames)

    @property
    def supports_pcd(self) -> bool:
        return self._has_depth and self._optics.intrinsic_parameters is not None

    async def get_point_cloud(self, **_: Any) -> tuple[bytes, str]:
        frames = await self.frames() if self._has_depth else ()
        depth = next((frame for frame in frames if frame.is_depth), None)
        if depth is None:
            raise Unsupported(
                f'camera "{self.name}" has no point clouds: it does not provide depth'
            )
        color = next((f for f in frames if not f.is_depth and _is_aligned(f, depth)), None)
        pixels = color.pixels if color is not None else None
        cloud = await self.workers.run(
            depth_to_pcd, depth.pixels, self._depth_intrinsics(depth), pixels
        )
        return cloud, PCD

    async def get_properties(self, **_: Any) -> Camera.Properties:
        properties = Camera.Properties(supports_pcd=self.supports_pcd)
        intrinsics, distortion = (
            self._optics.intrinsic_parameters,
            self._optics.distortion_parameters,
        )
        if intrinsics is not None:
            properties.intrinsic_parameters.CopyFrom(_intrinsics_to_proto(intrinsics))
        if distortion is not None:
            properties.distortion_parameters.CopyFrom(_distortion_to_proto(distortion))
        properties.mime_types.extend(dict.fromkeys(self._mime_types()))
        if self._frame_rate is not None:
            properties.frame_rate = self._frame_rate
        return properties

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {}

    def check_sources(self, names: Iterable[str]) -> None:
        for source in names:
            if source not in self.sources:
                known = ", ".join(f'"{each}"' for each in self.sources) or "none"
                raise InvalidRequest(f"invalid source name: {source}; this camera has {known}")

    def _mime_types(self) -> tuple[str, ...]:
        return (*COLOR_TYPES, *DEPTH_TYPES) if self._has_depth else COLOR_TYPES

    def _depth_intrinsics(self, depth: Frame) -> Intrinsics:
        intrinsics = self._optics.intrinsic_parameters
        if intrinsics is None:
            raise Unsupported(
                f'camera "{self.name}" has no point clouds: "intrinsic_parameters" is missing in '
                "its configuration"
            )
        if (intrinsics.width_px, intrinsics.height_px) != (depth.width, depth.height):
            raise Unsupported(
                f'camera "{self.name}" has no point clouds: its "intrinsic_parameters" are for '
                f"{intrinsics.width_px}x{intrinsics.height_px}, but its depth "
                f"is {depth.width}x{depth.height}"
            )
        return Intrinsics(
            intrinsics.width_px,
            intrinsics.height_px,
            intrinsics.fx,
            intrinsics.fy,
            intrinsics.ppx,
            intrinsics.ppy,
        )


def _intrinsics_to_proto(intrinsics: IntrinsicParameters) -> IntrinsicMessage:
    return IntrinsicMessage(
        width_px=intrinsics.width_px,
        height_px=intrinsics.height_px,
        focal_x_px=intrinsics.fx,
        focal_y_px=intrinsics.fy,
        center_x_px=intrinsics.ppx,
        center_y_px=intrinsics.ppy,
    )


def _distortion_to_proto(distortion: DistortionParameters) -> DistortionMessage:
    return DistortionMessage(
        model="brown_conrady",
        parameters=[distortion.rk1, distortion.rk2, distortion.rk3, distortion.tp1, distortion.tp2],
    )


def _is_aligned(color: Frame, depth: Frame) -> bool:
    return (color.width, color.height) == (depth.width, depth.height)

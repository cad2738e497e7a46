"""What the built-in cameras share: the SDK's contract, answered from frames."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from viam.components.camera import Camera
from viam.media.video import CameraMimeType, NamedImage
from viam.proto.common import ResponseMetadata
from viam.proto.component.camera import DistortionParameters as DistortionMessage
from viam.proto.component.camera import IntrinsicParameters as IntrinsicMessage

from cogwork.core.errors import InvalidRequest, Unsupported
from cogwork.core.workers import Workers
from cogwork.drivers.camera.attributes import DistortionParameters, IntrinsicParameters, Optics
from cogwork.drivers.shapeless import Shapeless
from cogwork.graph.name import ResourceName
from cogwork.resource.camera_service import annotations_of, captured, wanted_type
from cogwork.resource.frame import Frame
from cogwork.resource.image import COLOUR_TYPES, DEPTH_TYPES
from cogwork.resource.image_header import PCD
from cogwork.resource.model import logger_of
from cogwork.resource.point_cloud import Intrinsics, to_pcd


class FrameImage(NamedImage):
    """A picture with what is marked on it. Its size is known, also of a type that the SDK cannot
    measure."""

    def __init__(self, frame: Frame, data: bytes, mime_type: str) -> None:
        self.name = frame.source
        self._data = data
        self._mime_type = CameraMimeType.from_string(mime_type)
        self._width = frame.width
        self._height = frame.height
        self.annotations = annotations_of(frame.marks)


class FrameCamera(Shapeless, Camera):
    """A camera that has `frames`; everything else follows from them."""

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
        wanted = wanted_type(extra)
        images = []
        for frame in frames:
            kind = wanted or frame.usual_type
            images.append(FrameImage(frame, await frame.encoded(kind), kind))
        return images, captured(frames)

    @property
    def supports_pcd(self) -> bool:
        return self._has_depth and self._optics.intrinsic_parameters is not None

    async def get_point_cloud(self, **_: Any) -> tuple[bytes, str]:
        frames = await self.frames() if self._has_depth else ()
        depth = next((frame for frame in frames if frame.is_depth), None)
        if depth is None:
            raise Unsupported(f'camera "{self.name}" has no point clouds: it does not see depth')
        colour = next((f for f in frames if not f.is_depth and _aligned(f, depth)), None)
        pixels = colour.pixels if colour is not None else None
        cloud = await self.workers.run(to_pcd, depth.pixels, self._intrinsics(depth), pixels)
        return cloud, PCD

    async def get_properties(self, **_: Any) -> Camera.Properties:
        properties = Camera.Properties(supports_pcd=self.supports_pcd)
        lens, bend = self._optics.intrinsic_parameters, self._optics.distortion_parameters
        if lens is not None:
            properties.intrinsic_parameters.CopyFrom(_lens_message(lens))
        if bend is not None:
            properties.distortion_parameters.CopyFrom(_bend_message(bend))
        properties.mime_types.extend(dict.fromkeys(self._types()))
        if self._frame_rate is not None:
            properties.frame_rate = self._frame_rate
        return properties

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {}

    def check_sources(self, wanted: Iterable[str]) -> None:
        for source in wanted:
            if source not in self.sources:
                known = ", ".join(f'"{each}"' for each in self.sources) or "none"
                raise InvalidRequest(f"invalid source name: {source}; this camera has {known}")

    def _types(self) -> tuple[str, ...]:
        return (*COLOUR_TYPES, *DEPTH_TYPES) if self._has_depth else COLOUR_TYPES

    def _intrinsics(self, depth: Frame) -> Intrinsics:
        lens = self._optics.intrinsic_parameters
        if lens is None:
            raise Unsupported(
                f'camera "{self.name}" has no point clouds: its configuration lacks '
                '"intrinsic_parameters"'
            )
        if (lens.width_px, lens.height_px) != (depth.width, depth.height):
            raise Unsupported(
                f'camera "{self.name}" has no point clouds: its "intrinsic_parameters" are for '
                f"{lens.width_px}x{lens.height_px}, its depth is {depth.width}x{depth.height}"
            )
        return Intrinsics(lens.width_px, lens.height_px, lens.fx, lens.fy, lens.ppx, lens.ppy)


def _lens_message(lens: IntrinsicParameters) -> IntrinsicMessage:
    return IntrinsicMessage(
        width_px=lens.width_px,
        height_px=lens.height_px,
        focal_x_px=lens.fx,
        focal_y_px=lens.fy,
        center_x_px=lens.ppx,
        center_y_px=lens.ppy,
    )


def _bend_message(bend: DistortionParameters) -> DistortionMessage:
    return DistortionMessage(
        model="brown_conrady", parameters=[bend.rk1, bend.rk2, bend.rk3, bend.tp1, bend.tp2]
    )


def _aligned(colour: Frame, depth: Frame) -> bool:
    return (colour.width, colour.height) == (depth.width, depth.height)

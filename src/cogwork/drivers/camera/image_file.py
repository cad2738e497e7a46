"""A camera that shows files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import os_reason
from cogwork.drivers.camera.attributes import ImageFileAttributes
from cogwork.drivers.camera.frame_camera import FrameCamera
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.media.image_header import MAX_BYTES, PCD, BadImage
from cogwork.resource.frame import Frame, decode_image


class BadFile(CogworkError):
    """The file does not have the content that its attribute requires."""


class ImageFileCamera(FrameCamera):
    def __init__(self, name: ResourceName, attributes: ImageFileAttributes, clock: Clock) -> None:
        self._paths = {
            "color": attributes.color_image_file_path,
            "depth": attributes.depth_image_file_path,
        }
        super().__init__(
            name,
            attributes,
            sources=[source for source, path in self._paths.items() if path],
            has_depth=bool(attributes.depth_image_file_path),
        )
        self._clock = clock
        self._frames: dict[str, Frame] = {}
        self._point_cloud: bytes | None = None

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: ImageFileAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> ImageFileCamera:
        del dependencies
        camera = cls(name, attributes, clock or SystemClock())
        try:
            await camera._load(attributes.pointcloud_file_path)
        except BaseException:
            await camera.close()
            raise
        return camera

    async def frames(self, sources: Sequence[str] = ()) -> Sequence[Frame]:
        self.check_sources(sources)
        now = self._clock.time()
        return [self._frames[source].with_capture_time(now) for source in sources or self.sources]

    @property
    def supports_pcd(self) -> bool:
        return self._point_cloud is not None or super().supports_pcd

    async def get_point_cloud(self, **kwargs: Any) -> tuple[bytes, str]:
        if self._point_cloud is not None:
            return self._point_cloud, PCD
        return await super().get_point_cloud(**kwargs)

    async def _load(self, cloud: str | None) -> None:
        for source in self.sources:
            path = self._paths[source]
            assert path is not None
            self._frames[source] = await self.workers.run(self._read_frame, path, source)
        if cloud:
            self._point_cloud = await self.workers.run(_read_point_cloud, cloud)

    def _read_frame(self, path: str, source: str) -> Frame:
        data = _read_bytes(path)
        try:
            frame = Frame(decode_image(data, self.workers), self._clock.time(), source)
        except BadImage as error:
            raise BadFile(f"{path} is not a usable image: {error}") from error
        if frame.is_depth != (source == "depth"):
            problem = (
                "not a depth image, such as a 16-bit PNG" if source == "depth" else "a depth image"
            )
            raise BadFile(f'{path} is {problem}, but is set as "{source}_image_file_path"')
        return frame


def _read_bytes(path: str) -> bytes:
    file = Path(path)
    try:
        if file.exists() and not file.is_file():
            raise BadFile(f"{path} is not a regular file")
        size = file.stat().st_size
        if size > MAX_BYTES:
            raise BadFile(f"{path} is too large: {size} bytes; the limit is {MAX_BYTES} bytes")
        return file.read_bytes()
    except OSError as error:
        raise BadFile(f"{path} cannot be read: {os_reason(error)}") from error


def _read_point_cloud(path: str) -> bytes:
    data = _read_bytes(path)
    head = data[:2048]
    if b"FIELDS" not in head or b"DATA" not in head:
        raise BadFile(f"{path} is not a point cloud: it has no PCD header")
    return data

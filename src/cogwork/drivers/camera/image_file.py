"""A camera that sees files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import CogworkError
from cogwork.drivers.camera.attributes import ImageFileAttributes
from cogwork.drivers.camera.frame_camera import FrameCamera
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.frame import Frame, picture_of
from cogwork.resource.image_header import MOST_BYTES, PCD, BadImage


class BadFile(CogworkError):
    """A file that is not what its attribute promises."""


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
        self._cloud: bytes | None = None

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
        return [self._frames[source].seen_at(now) for source in sources or self.sources]

    @property
    def supports_pcd(self) -> bool:
        return self._cloud is not None or super().supports_pcd

    async def get_point_cloud(self, **kwargs: Any) -> tuple[bytes, str]:
        if self._cloud is not None:
            return self._cloud, PCD
        return await super().get_point_cloud(**kwargs)

    async def _load(self, cloud: str | None) -> None:
        for source in self.sources:
            path = self._paths[source]
            assert path is not None
            self._frames[source] = await self.workers.run(self._read, path, source)
        if cloud:
            self._cloud = await self.workers.run(_read_cloud, cloud)

    def _read(self, path: str, source: str) -> Frame:
        data = _bytes_of(path)
        try:
            frame = Frame(picture_of(data, self.workers), self._clock.time(), source)
        except BadImage as error:
            raise BadFile(f"{path} cannot be shown: {error}") from error
        if frame.is_depth != (source == "depth"):
            wanted = "no depth: it must be a PNG of 16 bits" if source == "depth" else "depth"
            raise BadFile(f'{path} is {wanted}; it is given as "{source}_image_file_path"')
        return frame


def _bytes_of(path: str) -> bytes:
    file = Path(path)
    try:
        if file.exists() and not file.is_file():
            raise BadFile(f"{path} is no file: there is nothing to read to its end")
        size = file.stat().st_size
        if size > MOST_BYTES:
            raise BadFile(f"{path} is too large: {size} bytes, at most {MOST_BYTES} are read")
        return file.read_bytes()
    except OSError as error:
        raise BadFile(f"{path} cannot be read: {error.strerror}") from error


def _read_cloud(path: str) -> bytes:
    data = _bytes_of(path)
    head = data[:2048]
    if b"FIELDS" not in head or b"DATA" not in head:
        raise BadFile(f"{path} is no point cloud: a PCD file begins with its fields")
    return data

"""A module with a camera: pictures of one colour, as large as its attributes say."""

# The SDK's own classes are not all typed.
# mypy: disable-error-code="no-untyped-call,misc"

from __future__ import annotations

import asyncio
import io
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from PIL import Image
from viam.components.camera import Camera
from viam.errors import NotSupportedError
from viam.media.video import CameraMimeType, NamedImage
from viam.module.module import Module
from viam.proto.app.robot import ComponentConfig
from viam.proto.common import ResourceName, ResponseMetadata
from viam.resource.base import ResourceBase
from viam.resource.easy_resource import EasyResource
from viam.utils import struct_to_dict


class TestCamera(Camera, EasyResource):
    """`width`, `height`, `color` (three numbers), and `bytes`, to which a picture is filled up."""

    MODEL: ClassVar[Any] = "acme:test:camera"

    @classmethod
    def new(
        cls, config: ComponentConfig, dependencies: Mapping[ResourceName, ResourceBase]
    ) -> TestCamera:
        camera = cls(config.name)
        attributes: Mapping[str, Any] = struct_to_dict(config.attributes)
        width, height = int(attributes.get("width", 64)), int(attributes.get("height", 48))
        color = tuple(int(each) for each in attributes.get("color", (200, 30, 30)))
        camera.picture = _filled(_jpeg(width, height, color), int(attributes.get("bytes", 0)))
        return camera

    @classmethod
    def validate_config(cls, config: ComponentConfig) -> tuple[Sequence[str], Sequence[str]]:
        attributes: Mapping[str, Any] = struct_to_dict(config.attributes)
        for name in ("width", "height"):
            if attributes.get(name, 1) <= 0:
                raise ValueError(f'"{name}" must be above 0')
        return [], []

    picture: bytes

    async def get_images(
        self, *, filter_source_names: Sequence[str] | None = None, **_: Any
    ) -> tuple[Sequence[NamedImage], ResponseMetadata]:
        metadata = ResponseMetadata()
        metadata.captured_at.GetCurrentTime()
        if filter_source_names and "color" not in filter_source_names:
            return [], metadata
        return [NamedImage("color", self.picture, CameraMimeType.JPEG)], metadata

    async def get_point_cloud(self, **_: Any) -> tuple[bytes, str]:
        raise NotSupportedError(f'camera "{self.name}" has no point clouds')

    async def get_properties(self, **_: Any) -> Camera.Properties:
        return Camera.Properties(supports_pcd=False, mime_types=[CameraMimeType.JPEG])


def _jpeg(width: int, height: int, color: tuple[int, ...]) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", (width, height), color).save(written, "JPEG")
    return written.getvalue()


def _filled(jpeg: bytes, size: int) -> bytes:
    """With comments, right behind its first two bytes."""
    comments = b""
    while (missing := size - len(jpeg) - len(comments)) > 0:
        length = max(min(missing - 4, 65533), 0)
        comments += b"\xff\xfe" + (length + 2).to_bytes(2, "big") + bytes(length)
    return jpeg[:2] + comments + jpeg[2:]


if __name__ == "__main__":
    asyncio.run(Module.run_from_registry())

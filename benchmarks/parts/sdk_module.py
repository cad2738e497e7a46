"""The same module as `quick_module`, written with the SDK."""

# The SDK's own classes are not all typed.
# mypy: disable-error-code="no-untyped-call,misc"

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from viam.components.camera import Camera
from viam.components.generic import Generic
from viam.media.video import CameraMimeType, NamedImage
from viam.module.module import Module
from viam.proto.common import Pose, ResponseMetadata
from viam.resource.easy_resource import EasyResource
from viam.services.slam import SLAM

MODEL = f"acme:bench:{os.environ['VIAM_MODULE_NAME']}"
PICTURE = os.urandom(1_000_000)


class BenchGeneric(Generic, EasyResource):
    MODEL: ClassVar[Any] = MODEL

    async def do_command(self, *_: Any, **__: Any) -> Mapping[str, Any]:
        return {"answer": 42}


class BenchCamera(Camera, EasyResource):
    MODEL: ClassVar[Any] = MODEL

    async def get_images(self, **_: Any) -> tuple[Sequence[NamedImage], ResponseMetadata]:
        return [NamedImage("color", PICTURE, CameraMimeType.JPEG)], ResponseMetadata()

    async def get_point_cloud(self, **_: Any) -> tuple[bytes, str]:
        raise NotImplementedError

    async def get_properties(self, **_: Any) -> Camera.Properties:
        return Camera.Properties(supports_pcd=False)


class BenchMap(SLAM, EasyResource):
    MODEL: ClassVar[Any] = MODEL

    async def get_point_cloud_map(self, *_: Any, **__: Any) -> list[bytes]:
        size, total = self.name.split("-")[1:]
        piece = os.urandom(int(size) * 1024)
        return [piece] * (int(total) * 1_000_000 // len(piece))

    async def get_internal_state(self, **_: Any) -> list[bytes]:
        raise NotImplementedError

    async def get_position(self, **_: Any) -> Pose:
        raise NotImplementedError

    async def get_properties(self, **_: Any) -> SLAM.Properties:
        return SLAM.Properties()


if __name__ == "__main__":
    asyncio.run(Module.run_from_registry())

"""The contract of cameras."""

from __future__ import annotations

import asyncio
import time
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.camera.client import CameraClient
from viam.media.video import CameraMimeType, NamedImage

from cogwork.contracts.contract import Contract
from cogwork.media.image_header import peek_size

_IMAGE_TYPES = (CameraMimeType.JPEG, CameraMimeType.PNG)


class CameraContract(Contract):
    api = "rdk:component:camera"
    client = CameraClient

    intrinsics: ClassVar[bool] = False
    """Whether the camera is configured with intrinsics."""

    async def test_images_match_their_metadata(self, resource: Any) -> None:
        images, metadata = await resource.get_images()
        assert images, "the camera returned no images"
        for image in images:
            assert image.data, f'image "{image.name}" is empty'
            if image.mime_type in _IMAGE_TYPES:
                assert peek_size(image.data) == (image.width, image.height)
        assert abs(metadata.captured_at.seconds - time.time()) < 60

    async def test_source_can_be_selected_by_name(self, resource: Any) -> None:
        (first, *_), _ = await resource.get_images()
        (only,), _ = await resource.get_images(filter_source_names=[first.name])
        assert only.name == first.name
        with pytest.raises(GRPCError) as refused:
            await resource.get_images(filter_source_names=["no such source"])
        assert refused.value.status in (Status.INVALID_ARGUMENT, Status.NOT_FOUND)

    async def test_point_clouds_match_properties(self, resource: Any) -> None:
        properties = await resource.get_properties()
        if properties.supports_pcd:
            cloud, kind = await resource.get_point_cloud()
            assert kind == CameraMimeType.PCD
            assert b"DATA" in cloud[:1000]
        else:
            with pytest.raises(GRPCError) as refused:
                await resource.get_point_cloud()
            assert refused.value.status is Status.UNIMPLEMENTED

    async def test_intrinsics_match_image_size(self, resource: Any) -> None:
        if self.intrinsics:
            properties = await resource.get_properties()
            (image, *_), _ = await resource.get_images()
            assert properties.intrinsic_parameters.width_px == _width(image)

    async def test_serves_concurrent_callers(self, resource: Any) -> None:
        looks = await asyncio.gather(*(resource.get_images() for _ in range(8)))
        assert all(images for images, _ in looks)


def _width(image: NamedImage) -> int | None:
    return image.width

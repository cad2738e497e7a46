"""The contract of vision services."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.services.vision.client import VisionClient

from cogwork.contracts.contract import Contract, allow_refusal


class VisionContract(Contract):
    """The contract of vision services. `other_resources` must contain a camera."""

    api = "rdk:service:vision"
    client = VisionClient

    camera: ClassVar[str]
    """Name of the camera to use."""

    async def test_detections(self, resource: Any) -> None:
        if not (await resource.get_properties()).detections_supported:
            await _assert_unimplemented(resource.get_detections_from_camera(self.camera))
            return
        captured = await resource.capture_all_from_camera(
            self.camera, return_image=True, return_detections=True
        )
        for detection in captured.detections:
            assert 0 <= detection.confidence <= 1
            assert 0 <= detection.x_min <= detection.x_max <= captured.image.width
            assert 0 <= detection.y_min <= detection.y_max <= captured.image.height
        assert isinstance(await resource.get_detections_from_camera(self.camera), list)
        assert isinstance(await resource.get_detections(captured.image), list)

    async def test_classifications(self, resource: Any) -> None:
        if not (await resource.get_properties()).classifications_supported:
            await _assert_unimplemented(resource.get_classifications_from_camera(self.camera, 3))
            return
        captured = await resource.capture_all_from_camera(
            self.camera, return_image=True, return_classifications=True
        )
        scores = [each.confidence for each in captured.classifications]
        assert scores == sorted(scores, reverse=True)
        assert len(await resource.get_classifications_from_camera(self.camera, 1)) <= 1
        assert len(await resource.get_classifications(captured.image, 1)) <= 1

    async def test_objects(self, resource: Any) -> None:
        if not (await resource.get_properties()).object_point_clouds_supported:
            await _assert_unimplemented(resource.get_object_point_clouds(self.camera))
            return
        # Allow errors: the camera may not support depth, which is not a fault of the vision
        # service.
        with allow_refusal("GetObjectPointClouds"):
            assert isinstance(await resource.get_object_point_clouds(self.camera), list)
        with allow_refusal("GetDetections3D"):
            assert isinstance(await resource.get_detections_3d(self.camera), list)

    async def test_unknown_camera_is_refused(self, resource: Any) -> None:
        with pytest.raises(GRPCError) as refused:
            await resource.get_detections_from_camera("no such camera")
        assert refused.value.status in (Status.NOT_FOUND, Status.UNIMPLEMENTED)


async def _assert_unimplemented(call: Any) -> None:
    with pytest.raises(GRPCError) as refused:
        await call
    assert refused.value.status is Status.UNIMPLEMENTED

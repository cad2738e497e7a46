from __future__ import annotations

import pytest

from cogwork.contracts.camera import CameraContract

pytest.importorskip("cv2")


class TestFake(CameraContract):
    model = "fake"
    attributes = {"width": 320, "height": 240, "scene": "conveyor"}
    intrinsics = True


class TestTransform(CameraContract):
    model = "transform"
    unsupported_methods = ("GetPointCloud",)
    other_resources = (
        {
            "name": "belt",
            "api": "rdk:component:camera",
            "model": "fake",
            "attributes": {"width": 320, "height": 240},
        },
    )
    attributes = {
        "source": "belt",
        "pipeline": [{"type": "resize", "attributes": {"width_px": 160, "height_px": 120}}],
    }

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from tests.support.machine.served import Serve
from tests.support.media.pictures import encode_pixels
from tests.support.models.vision_models import CAMERA, VISION, Still, solid

from cogwork.drivers.vision.attributes import FakeVisionAttributes
from cogwork.drivers.vision.fake import FakeVision
from cogwork.graph.name import ResourceName
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.media.video import CameraMimeType, ViamImage  # noqa: E402
from viam.services.vision import VisionClient  # noqa: E402

PICTURE = ViamImage(encode_pixels(".png", solid(1, 2, 3, 101, 201)), CameraMimeType.PNG)
FOUND: dict[str, Any] = {
    "detections": [
        {"label": "nut", "confidence": 0.4},
        {"label": "gear", "confidence": 0.9, "box": [0, 0.1, 0.5, 1]},
    ],
    "classifications": [
        {"label": "empty", "confidence": 0.2},
        {"label": "full", "confidence": 0.7},
        {"label": "odd", "confidence": 0.1},
    ],
}


async def create_vision(*cameras: Any, **attributes: Any) -> FakeVision:
    wanted = FakeVisionAttributes.model_validate(attributes)
    dependencies = {ResourceName(CAMERA, each.name): each for each in cameras}
    return await FakeVision.new(ResourceName(VISION, "v"), wanted, dependencies)


async def test_configured_results_are_returned(serve: Serve) -> None:
    fake = await create_vision(**FOUND)
    async with serve(fake) as channel:
        client = VisionClient("v", channel)
        gear, nut = await client.get_detections(PICTURE)
        assert (gear.class_name, nut.class_name) == ("gear", "nut")
        assert gear.confidence == pytest.approx(0.9)
        assert (gear.x_min, gear.y_min, gear.x_max, gear.y_max) == (0, 20, 50, 200)
        assert (nut.x_min, nut.y_min, nut.x_max, nut.y_max) == (25, 50, 75, 150)
        found = await client.get_classifications(PICTURE, 2)
        assert [each.class_name for each in found] == ["full", "empty"]
    await fake.close()


async def test_default_results_are_one_thing(serve: Serve) -> None:
    fake = await create_vision()
    async with serve(fake) as channel:
        client = VisionClient("v", channel)
        assert [each.class_name for each in await client.get_detections(PICTURE)] == ["thing"]
        found = await client.get_classifications(PICTURE, 0)
        assert [(each.class_name, each.confidence) for each in found] == [("thing", 1.0)]
        known = await client.get_properties()
        assert known.detections_supported
        assert known.classifications_supported
    await fake.close()


async def test_configured_empty_results_are_returned(serve: Serve) -> None:
    fake = await create_vision(detections=[], classifications=[])
    async with serve(fake) as channel:
        client = VisionClient("v", channel)
        assert await client.get_detections(PICTURE) == []
        assert await client.get_classifications(PICTURE, 3) == []
    await fake.close()


async def test_results_from_its_camera(serve: Serve) -> None:
    eye = Still(color=solid(1, 2, 3, 40, 40))
    fake = await create_vision(eye, camera_name="eye")
    async with serve(fake, eye) as channel:
        client = VisionClient("v", channel)
        (found,) = await client.get_detections_from_camera("")
        assert (found.x_min, found.x_max) == (9, 29)
        got = await client.capture_all_from_camera(
            "eye", return_image=True, return_detections=True, return_classifications=True
        )
        assert got.image is not None
        assert (got.detections, len(got.classifications or ())) == ([found], 1)
    await fake.close()
    await eye.close()


@pytest.mark.parametrize(
    "wrong",
    [
        {"detections": [{"confidence": 1}]},
        {"detections": [{"label": "x", "box": [0, 0, 2, 1]}]},
        {"detections": [{"label": "x", "box": [0, 0, 1]}]},
        {"classifications": [{"label": "x", "confidence": 1.1}]},
    ],
    ids=str,
)
def test_invalid_attributes_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FakeVisionAttributes.model_validate(wrong)

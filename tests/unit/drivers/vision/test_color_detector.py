from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.support.machine.served import refused, served
from tests.support.media.pictures import encode_pixels
from tests.support.models.vision_models import CAMERA, VISION, Still, solid

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.vision.attributes import ColorDetectorAttributes
from cogwork.drivers.vision.color_detector import ColorDetector
from cogwork.graph.name import ResourceName
from cogwork.media.image import Pixels
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.media.video import CameraMimeType, ViamImage  # noqa: E402
from viam.proto.service.vision import Detection  # noqa: E402
from viam.services.vision import VisionClient  # noqa: E402

RED, GREEN, BLUE, PINK = (0, 0, 255), (0, 255, 0), (255, 0, 0), (128, 0, 255)


def scene(*patches: tuple[tuple[int, int, int], int, int, int, int]) -> Pixels:
    """Gray, with rectangles given as color, left, top, width, height."""
    pixels = np.full((100, 200, 3), 128, np.uint8)
    for color, left, top, width, height in patches:
        pixels[top : top + height, left : left + width] = color
    return pixels


async def create_detector(*cameras: Any, **attributes: Any) -> ColorDetector:
    wanted = ColorDetectorAttributes.model_validate({"detect_color": "#ff0000", **attributes})
    dependencies = {ResourceName(CAMERA, each.name): each for each in cameras}
    return await ColorDetector.new(ResourceName(VISION, "v"), wanted, dependencies)


async def find(pixels: Pixels, **attributes: Any) -> list[Detection]:
    detector = await create_detector(**attributes)
    try:
        async with served(detector) as channel:
            image = ViamImage(encode_pixels(".png", pixels), CameraMimeType.PNG)
            return await VisionClient("v", channel).get_detections(image)
    finally:
        await detector.close()


async def test_each_patch_has_a_box() -> None:
    found = await find(scene((RED, 20, 10, 40, 20), (RED, 100, 50, 50, 30), (BLUE, 0, 60, 50, 40)))
    boxes = sorted((each.x_min, each.y_min, each.x_max, each.y_max) for each in found)
    for box, exact in zip(boxes, [(20, 10, 60, 30), (100, 50, 150, 80)], strict=True):
        assert np.abs(np.subtract(box, exact)).max() <= 1
    assert {(each.class_name, each.confidence) for each in found} == {("red", 1.0)}
    assert found[0].x_min_normalized == found[0].x_min / 200


async def test_confidence_is_the_filled_share_of_the_box() -> None:
    pixels = scene((RED, 0, 0, 60, 20), (RED, 0, 0, 20, 60))
    (found,) = await find(pixels)
    assert found.confidence == pytest.approx((60 * 20 + 20 * 40) / 3600)


@pytest.mark.parametrize(
    ("attributes", "count"),
    [
        ({}, 1),
        ({"segment_size_px": 800}, 1),
        ({"segment_size_px": 801}, 0),
        ({"detect_color": "#00ff00"}, 0),
        ({"detect_color": "#FF0080"}, 0),
        ({"detect_color": "#FF0080", "hue_tolerance_pct": 0.1}, 1),
    ],
)
async def test_minimum_size_color_and_tolerance_are_applied(
    attributes: dict[str, Any], count: int
) -> None:
    assert len(await find(scene((RED, 20, 10, 40, 20)), **attributes)) == count


async def test_hue_is_circular() -> None:
    """Red is at both ends of the hue scale."""
    bluish = (20, 0, 255)
    assert len(await find(scene((bluish, 20, 10, 40, 20)))) == 1
    assert len(await find(scene((RED, 20, 10, 40, 20)), detect_color="#ff0014")) == 1


async def test_pale_and_dark_colors_do_not_match() -> None:
    pale, dark = (220, 220, 255), (0, 0, 60)
    pixels = scene((pale, 0, 0, 40, 40), (dark, 100, 0, 40, 40))
    assert await find(pixels) == []
    assert len(await find(pixels, saturation_cutoff_pct=0.1)) == 1
    assert len(await find(pixels, value_cutoff_pct=0.1)) == 1


@pytest.mark.parametrize(
    ("color", "pixel", "name"),
    [
        ("#ff0000", RED, "red"),
        ("#00ff00", GREEN, "green"),
        ("#0000ff", BLUE, "blue"),
        ("#ff0080", PINK, "pink"),
    ],
)
async def test_label_is_the_name_of_the_color_or_configured(
    color: str, pixel: tuple[int, int, int], name: str
) -> None:
    pixels = scene((pixel, 20, 10, 40, 20))
    assert [each.class_name for each in await find(pixels, detect_color=color)] == [name]
    named = await find(pixels, detect_color=color, label="part")
    assert [each.class_name for each in named] == ["part"]


@pytest.mark.parametrize("gray", ["#000000", "#808080", "#ffffff"])
async def test_gray_is_refused_because_it_has_no_hue(gray: str) -> None:
    with pytest.raises(InvalidRequest, match=f"{gray}, a shade of gray"):
        await create_detector(detect_color=gray)


@pytest.mark.parametrize("wrong", ["red", "#ff00", "ff0000", "#ff00000"])
def test_invalid_color_is_refused(wrong: str) -> None:
    with pytest.raises(ValidationError):
        ColorDetectorAttributes(detect_color=wrong)


async def test_detection_from_camera_and_unsupported_calls() -> None:
    eye = Still(color=scene((RED, 20, 10, 40, 20)))
    detector = await create_detector(eye, camera_name="eye")
    try:
        async with served(detector, eye) as channel:
            client = VisionClient("v", channel)
            assert len(await client.get_detections_from_camera("")) == 1
            known = await client.get_properties()
            assert (known.detections_supported, known.classifications_supported) == (True, False)
            with refused() as told:
                await client.get_classifications_from_camera("", 1)
            assert told.status is Status.UNIMPLEMENTED
            assert told.words.endswith("a color_detector is not a classifier")
            depth = encode_pixels(".png", np.ones((4, 4), np.uint16))
            with refused() as told:
                await client.get_detections(ViamImage(depth, CameraMimeType.PNG))
            assert told.status is Status.INVALID_ARGUMENT
            assert "color images" in told.words
    finally:
        await detector.close()
        await eye.close()


async def test_number_of_detections_is_limited_in_an_image_of_specks() -> None:
    """Only the most confident detections are returned."""
    pixels = np.full((1000, 1000, 3), 128, np.uint8)
    pixels[::4, ::4] = RED
    assert len(await find(pixels, segment_size_px=1)) == 10_000


async def test_image_of_one_color() -> None:
    assert await find(solid(0, 0, 255)) == []
    (found,) = await find(solid(255, 0, 0, 64, 32))
    assert (found.x_min, found.y_min, found.x_max, found.y_max) == (0, 0, 63, 31)

"""Transform cameras that draw the results of a vision service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.machine.served import served
from tests.support.models.vision_models import VISION, Workshop, solid, workshop

from cogwork.drivers.vision.attributes import FakeVisionAttributes
from cogwork.drivers.vision.fake import FakeVision
from cogwork.graph.name import ResourceName
from cogwork.media.image import Pixels, decode
from cogwork.media.image_header import PNG
from cogwork.resource.overlay import draw_boxes, draw_labels, label_color
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.camera.client import CameraClient  # noqa: E402
from viam.media.video import ViamImage  # noqa: E402
from viam.proto.service.vision import Classification, Detection  # noqa: E402
from viam.services.vision import Vision  # noqa: E402

SIZE = 480
BOX = [0.25, 0.5, 0.75, 0.875]


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Workshop]:
    async with workshop(tmp_path) as made:
        yield made


def gray_image(width: int = SIZE, height: int = SIZE) -> Pixels:
    return solid(90, 90, 90, width, height)


async def create_vision(shop: Workshop, **attributes: Any) -> FakeVision:
    given = {
        "detections": [
            {"label": "gear", "confidence": 0.9, "box": BOX},
            {"label": "nut", "confidence": 0.4, "box": [0.05, 0.2, 0.2, 0.4]},
        ],
        "classifications": [
            {"label": "full", "confidence": 0.7},
            {"label": "odd", "confidence": 0.2},
        ],
    }
    wanted = FakeVisionAttributes.model_validate(given | attributes)
    return shop.close_later(await FakeVision.new(ResourceName(VISION, "v"), wanted, {}))


async def draw(
    shop: Workshop, source: Any, service: Any, kind: str = "detections", **by: Any
) -> NDArray[np.uint8]:
    """Return the lossless image that a client gets."""
    name = "detector_name" if kind == "detections" else "classifier_name"
    step = {"type": kind, "attributes": {name: "v", **by}}
    camera = await shop.transform("drawn", source, step, services=[service])
    async with served(camera) as channel:
        images, _ = await CameraClient("drawn", channel).get_images(
            extra={"mime_type": PNG}, filter_source_names=["color"]
        )
    pixels: NDArray[np.uint8] = decode(images[0].data)
    return pixels


def changed_pixels(pixels: NDArray[Any]) -> NDArray[np.bool_]:
    differs: NDArray[np.bool_] = (pixels != 90).any(axis=2)
    return differs


def contains_color_of(pixels: NDArray[Any], label: str) -> bool:
    """Return whether any pixel has the color of the label."""
    return bool((pixels == label_color(label)).all(axis=2).any())


async def test_boxes_are_drawn_at_the_detections(shop: Workshop) -> None:
    eye = shop.still(color=gray_image())
    before = eye.pictures["color"].pixels.copy()
    pixels = await draw(shop, eye, await create_vision(shop))
    left, top, right, bottom = (round(edge * (SIZE - 1)) for edge in BOX)
    for edge in (
        pixels[bottom, left + 5 : right - 5],
        pixels[top + 5 : bottom - 5, left],
        pixels[top + 5 : bottom - 5, right],
    ):
        assert np.abs(edge.astype(int) - label_color("gear")).max() <= 60
    inside = changed_pixels(pixels)[top + 30 : bottom - 5, left + 5 : right - 5]
    assert not inside.any()
    assert contains_color_of(pixels, "gear")
    assert contains_color_of(pixels, "nut")
    assert np.array_equal(eye.pictures["color"].pixels, before)  # drawn on a copy


async def test_detections_below_the_confidence_threshold_are_not_drawn(shop: Workshop) -> None:
    pixels = await draw(
        shop, shop.still(color=gray_image()), await create_vision(shop), confidence_threshold=0.5
    )
    assert (contains_color_of(pixels, "gear"), contains_color_of(pixels, "nut")) == (True, False)


async def test_only_valid_labels_are_drawn(shop: Workshop) -> None:
    pixels = await draw(
        shop, shop.still(color=gray_image()), await create_vision(shop), valid_labels=["NUT"]
    )
    assert (contains_color_of(pixels, "gear"), contains_color_of(pixels, "nut")) == (False, True)


@pytest.mark.parametrize(
    ("by", "wanted"),
    [
        ({}, {"full"}),
        ({"max_classifications": 2}, {"full", "odd"}),
        ({"max_classifications": 2, "confidence_threshold": 0.5}, {"full"}),
        ({"max_classifications": 2, "valid_labels": ["Odd"]}, {"odd"}),
        ({"confidence_threshold": 0.8}, set()),
    ],
    ids=["usual", "two", "sure", "valid", "none"],
)
async def test_classification_labels_are_drawn(
    shop: Workshop, by: dict[str, Any], wanted: set[str]
) -> None:
    eye = shop.still(color=gray_image())
    pixels = await draw(shop, eye, await create_vision(shop), "classifications", **by)
    assert {label for label in ("full", "odd") if contains_color_of(pixels, label)} == wanted
    assert changed_pixels(pixels).any() == bool(wanted)
    assert not changed_pixels(pixels)[SIZE // 2 :].any()


async def test_depth_image_is_unchanged(shop: Workshop) -> None:
    depth = np.full((SIZE, SIZE), 700, np.uint16)
    eye = shop.still(color=gray_image(), depth=depth.copy())
    step = {"type": "detections", "attributes": {"detector_name": "v"}}
    camera = await shop.transform("drawn", eye, step, services=[await create_vision(shop)])
    color, seen = await camera.frames()
    assert np.array_equal(seen.pixels, depth)
    assert changed_pixels(color.pixels).any()
    assert color.captured_at == eye.clock.time()


async def test_each_frame_is_annotated_once(shop: Workshop) -> None:
    eye = shop.still(color=gray_image())
    step = {"type": "detections", "attributes": {"detector_name": "v"}}
    camera = await shop.transform("drawn", eye, step, services=[await create_vision(shop)])
    (first,), (second,) = await camera.frames(), await camera.frames()
    assert first.image is second.image
    eye.show(gray_image())
    (third,) = await camera.frames()
    assert third.image is not first.image


class ForeignVision(Vision):
    """A vision service of a module; some return boxes outside of the image."""

    def __init__(self, *boxes: tuple[int, int, int, int], label: str = "gear") -> None:
        super().__init__("v")
        self.boxes = boxes
        self.label = label
        self.given: list[ViamImage] = []

    async def get_detections(self, image: ViamImage, **_: Any) -> list[Detection]:
        self.given.append(image)
        names = ("x_min", "y_min", "x_max", "y_max")
        return [
            Detection(class_name=self.label, confidence=1, **dict(zip(names, box, strict=True)))
            for box in self.boxes
        ]

    async def get_classifications(
        self, image: ViamImage, count: int, **_: Any
    ) -> list[Classification]:
        self.given.append(image)
        return [Classification(class_name=self.label, confidence=count)]

    async def get_detections_from_camera(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    get_classifications_from_camera = get_detections_from_camera
    get_object_point_clouds = get_detections_from_camera
    get_detections_3d = get_detections_from_camera
    get_properties = get_detections_from_camera
    capture_all_from_camera = get_detections_from_camera


async def test_foreign_service_gets_an_encoded_image(shop: Workshop) -> None:
    theirs = ForeignVision((100, 200, 300, 400))
    pixels = await draw(shop, shop.still(color=gray_image()), theirs)
    assert contains_color_of(pixels, "gear")
    assert changed_pixels(pixels)[400, 200]
    (image,) = theirs.given
    assert (image.width, image.height) == (SIZE, SIZE)
    assert np.abs(decode(image.data).astype(int) - 90).max() <= 2
    pixels = await draw(shop, shop.still(color=gray_image()), theirs, "classifications")
    assert contains_color_of(pixels, "gear")


@pytest.mark.parametrize(
    "box",
    [
        (-(1 << 62), -(1 << 62), 1 << 62, 1 << 62),
        (300, 300, 100, 100),
        (900, 900, 1000, 1000),
        (0, 0, 0, 0),
    ],
    ids=str,
)
async def test_boxes_outside_the_image_and_inverted_boxes_are_drawn(
    shop: Workshop, box: tuple[int, int, int, int]
) -> None:
    pixels = await draw(
        shop, shop.still(color=gray_image()), ForeignVision(box, label="x" * 1_000_000)
    )
    assert pixels.shape == (SIZE, SIZE, 3)
    assert changed_pixels(pixels).any()


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (17, 4000)])
def test_images_of_any_size_can_be_annotated(size: tuple[int, int]) -> None:
    pixels = gray_image(*size)
    pixels.setflags(write=False)
    boxes = [
        Detection(class_name="gear", confidence=0.5, x_max=5, y_max=5),
        Detection(class_name="\0ü", confidence=float("nan"), x_min=1, y_min=1),
    ]
    assert draw_boxes(pixels, boxes).shape == pixels.shape
    gear = Classification(class_name="gear", confidence=1.0)
    assert draw_labels(pixels, [gear] * 9).shape == pixels.shape
    assert (pixels == 90).all()


def test_no_results_leave_the_image_unchanged() -> None:
    assert np.array_equal(draw_boxes(gray_image(), []), gray_image())
    assert np.array_equal(draw_labels(gray_image(), []), gray_image())


def test_labels_are_readable_at_1280x720() -> None:
    """The text is tall enough to be read at half size, and contrasts with every color."""
    labels = [f"label {number}" for number in range(40)]
    colors = {label_color(label): label for label in labels}
    assert len(colors) == 8
    for color, label in colors.items():
        box = Detection(
            class_name=label, confidence=0.5, x_min=100, y_min=200, x_max=900, y_max=600
        )
        pixels = draw_boxes(gray_image(720, 1280), [box])[:200]
        tag = (pixels != 90).any(axis=2)
        text = tag & (np.abs(pixels.astype(int) - color).max(axis=2) > 60)
        rows = np.flatnonzero(text.any(axis=1))
        assert rows[-1] - rows[0] >= 18
        darkest = pixels[text].reshape(-1, 3).min(axis=0)
        assert contrast(darkest, color) >= 4.5


def contrast(first: Sequence[int], second: Sequence[int]) -> float:
    """The contrast ratio of the Web Content Accessibility Guidelines."""
    low, high = sorted(map(luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


def luminance(color: Sequence[int]) -> float:
    blue, green, red = (
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4
        for c in (int(each) / 255 for each in color)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

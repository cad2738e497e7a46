"""Transform cameras that draw what a vision service finds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.served import served
from tests.vision_models import VISION, Workshop, solid, workshop

from cogwork.drivers.vision.attributes import FakeVisionAttributes
from cogwork.drivers.vision.fake import FakeVision
from cogwork.graph.name import ResourceName
from cogwork.resource import sdk
from cogwork.resource.image import Pixels, decode
from cogwork.resource.image_header import PNG
from cogwork.resource.overlay import draw_boxes, draw_labels, label_color

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


def grey(width: int = SIZE, height: int = SIZE) -> Pixels:
    return solid(90, 90, 90, width, height)


async def fake(shop: Workshop, **attributes: Any) -> FakeVision:
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
    return shop.kept(await FakeVision.new(ResourceName(VISION, "v"), wanted, {}))


async def drawn(
    shop: Workshop, source: Any, service: Any, kind: str = "detections", **by: Any
) -> NDArray[np.uint8]:
    """What a client sees, without loss."""
    name = "detector_name" if kind == "detections" else "classifier_name"
    step = {"type": kind, "attributes": {name: "v", **by}}
    camera = await shop.transform("drawn", source, step, services=[service])
    async with served(camera) as channel:
        images, _ = await CameraClient("drawn", channel).get_images(
            extra={"mime_type": PNG}, filter_source_names=["color"]
        )
    pixels: NDArray[np.uint8] = decode(images[0].data)
    return pixels


def changed(pixels: NDArray[Any]) -> NDArray[np.bool_]:
    differs: NDArray[np.bool_] = (pixels != 90).any(axis=2)
    return differs


def has(pixels: NDArray[Any], label: str) -> bool:
    """Whether anything of the label's colour is in it."""
    return bool((pixels == label_color(label)).all(axis=2).any())


async def test_boxes_are_where_the_things_are(shop: Workshop) -> None:
    eye = shop.still(color=grey())
    before = eye.pictures["color"].pixels.copy()
    pixels = await drawn(shop, eye, await fake(shop))
    left, top, right, bottom = (round(edge * (SIZE - 1)) for edge in BOX)
    for edge in (
        pixels[bottom, left + 5 : right - 5],
        pixels[top + 5 : bottom - 5, left],
        pixels[top + 5 : bottom - 5, right],
    ):
        assert np.abs(edge.astype(int) - label_color("gear")).max() <= 60
    inside = changed(pixels)[top + 30 : bottom - 5, left + 5 : right - 5]
    assert not inside.any()
    assert has(pixels, "gear")
    assert has(pixels, "nut")
    assert np.array_equal(eye.pictures["color"].pixels, before)  # drawn on a copy


async def test_unsure_ones_are_not_drawn(shop: Workshop) -> None:
    pixels = await drawn(shop, shop.still(color=grey()), await fake(shop), confidence_threshold=0.5)
    assert (has(pixels, "gear"), has(pixels, "nut")) == (True, False)


async def test_only_those_wanted_are_drawn(shop: Workshop) -> None:
    pixels = await drawn(shop, shop.still(color=grey()), await fake(shop), valid_labels=["NUT"])
    assert (has(pixels, "gear"), has(pixels, "nut")) == (False, True)


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
async def test_labels_are_written(shop: Workshop, by: dict[str, Any], wanted: set[str]) -> None:
    eye = shop.still(color=grey())
    pixels = await drawn(shop, eye, await fake(shop), "classifications", **by)
    assert {label for label in ("full", "odd") if has(pixels, label)} == wanted
    assert changed(pixels).any() == bool(wanted)
    assert not changed(pixels)[SIZE // 2 :].any()


async def test_depth_stays_what_it_is(shop: Workshop) -> None:
    depth = np.full((SIZE, SIZE), 700, np.uint16)
    eye = shop.still(color=grey(), depth=depth.copy())
    step = {"type": "detections", "attributes": {"detector_name": "v"}}
    camera = await shop.transform("drawn", eye, step, services=[await fake(shop)])
    color, seen = await camera.frames()
    assert np.array_equal(seen.pixels, depth)
    assert changed(color.pixels).any()
    assert color.captured_at == eye.clock.time()


async def test_a_picture_is_drawn_once(shop: Workshop) -> None:
    eye = shop.still(color=grey())
    step = {"type": "detections", "attributes": {"detector_name": "v"}}
    camera = await shop.transform("drawn", eye, step, services=[await fake(shop)])
    (first,), (second,) = await camera.frames(), await camera.frames()
    assert first.image is second.image
    eye.show(grey())
    (third,) = await camera.frames()
    assert third.image is not first.image


class Theirs(Vision):
    """As others write them; some give numbers that no picture has."""

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


async def test_a_service_of_others_gets_an_encoded_picture(shop: Workshop) -> None:
    theirs = Theirs((100, 200, 300, 400))
    pixels = await drawn(shop, shop.still(color=grey()), theirs)
    assert has(pixels, "gear")
    assert changed(pixels)[400, 200]
    (image,) = theirs.given
    assert (image.width, image.height) == (SIZE, SIZE)
    assert np.abs(decode(image.data).astype(int) - 90).max() <= 2
    pixels = await drawn(shop, shop.still(color=grey()), theirs, "classifications")
    assert has(pixels, "gear")


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
async def test_boxes_outside_and_inside_out(shop: Workshop, box: tuple[int, int, int, int]) -> None:
    pixels = await drawn(shop, shop.still(color=grey()), Theirs(box, label="x" * 1_000_000))
    assert pixels.shape == (SIZE, SIZE, 3)
    assert changed(pixels).any()


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (17, 4000)])
def test_pictures_of_any_size(size: tuple[int, int]) -> None:
    pixels = grey(*size)
    pixels.setflags(write=False)
    boxes = [
        Detection(class_name="gear", confidence=0.5, x_max=5, y_max=5),
        Detection(class_name="\0ü", confidence=float("nan"), x_min=1, y_min=1),
    ]
    assert draw_boxes(pixels, boxes).shape == pixels.shape
    gear = Classification(class_name="gear", confidence=1.0)
    assert draw_labels(pixels, [gear] * 9).shape == pixels.shape
    assert (pixels == 90).all()


def test_nothing_found_is_the_same_picture() -> None:
    assert np.array_equal(draw_boxes(grey(), []), grey())
    assert np.array_equal(draw_labels(grey(), []), grey())

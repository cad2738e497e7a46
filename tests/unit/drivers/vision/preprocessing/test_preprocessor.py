from __future__ import annotations

import threading
import tracemalloc
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.unit.drivers.vision.looking import photo, settings

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.mlmodel.model_info import DYNAMIC, Quantization, TensorSpec
from cogwork.drivers.vision.candidates import Candidates, ImageFit, stretch_fit
from cogwork.drivers.vision.decoding.decoder import DetectorDecoder, Mismatch, ModelView
from cogwork.drivers.vision.preprocessing.input_plan import InputPlan, blank_image, plan_input
from cogwork.drivers.vision.preprocessing.preprocessor import Preprocessor

Image = NDArray[np.uint8]

FLOAT, BYTE = np.dtype(np.float32), np.dtype(np.uint8)


def tensor(
    *shape: int | None,
    name: str = "image",
    dtype: str = "float32",
    quantisation: Quantization | None = None,
) -> TensorSpec:
    return TensorSpec(name, np.dtype(dtype), shape, quantization=quantisation)  # type: ignore[arg-type]


def decided(
    *inputs: TensorSpec,
    notes: dict[str, Any] | None = None,
    reading: DetectorDecoder | None = None,
    **attributes: Any,
) -> InputPlan | Mismatch:
    return plan_input(ModelView(inputs, (), properties=notes), settings(**attributes), reading)


def plan_of(*inputs: TensorSpec, **others: Any) -> InputPlan:
    plan = decided(*inputs, **others)
    assert isinstance(plan, InputPlan), plan
    return plan


def refused(*inputs: TensorSpec, **others: Any) -> str:
    refusal = decided(*inputs, **others)
    assert isinstance(refusal, Mismatch), refusal
    return " ".join(refusal.reasons)


def used_to(**habits: Any) -> DetectorDecoder:
    def read(tensors: Any, fit: Any) -> Candidates:
        raise AssertionError("nothing is read here")

    return DetectorDecoder("family", (), read, **habits)


def plan(width: int | None, height: int | None, layout: Any = "NHWC", **others: Any) -> InputPlan:
    return InputPlan("image", others.pop("dtype", BYTE), layout, width, height, **others)


def prepared(plan: InputPlan, pixels: Image) -> NDArray[Any]:
    return Preprocessor(plan).prepare(pixels)[0]


def colour(blue: int, green: int, red: int, width: int = 8, height: int = 6) -> Image:
    return np.full((height, width, 3), (blue, green, red), np.uint8)


def noise(width: int, height: int, seed: int = 0) -> Image:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


@pytest.mark.parametrize(
    ("shape", "layout", "channels", "height", "width"),
    [
        ((1, 3, 480, 640), "NCHW", 3, 480, 640),
        ((1, 480, 640, 3), "NHWC", 3, 480, 640),
        ((DYNAMIC, 3, DYNAMIC, DYNAMIC), "NCHW", 3, None, None),
        ((0, -1, None, 3), "NHWC", 3, None, None),
        ((1, 1, 28, 20), "NCHW", 1, 28, 20),
        ((1, 28, 20, 1), "NHWC", 1, 28, 20),
        ((3, 48, 64), "NCHW", 3, 48, 64),
        ((48, 64, 3), "NHWC", 3, 48, 64),
        ((1, 3, 3, 3), "NCHW", 3, 3, 3),
        ((1, 3, 32, DYNAMIC), "NCHW", 3, 32, None),
    ],
)
def test_the_channels_tell_the_layout(
    shape: tuple[int | None, ...],
    layout: str,
    channels: int,
    height: int | None,
    width: int | None,
) -> None:
    found = plan_of(tensor(*shape))
    assert (found.layout, found.channels) == (layout, channels)
    assert (found.height, found.width) == (height, width)
    assert found.batched == (len(shape) == 4)
    assert not found.assumptions


@pytest.mark.parametrize(
    ("shape", "layout"),
    [
        ((DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC), "NCHW"),
        ((1, 224, 224, DYNAMIC), "NHWC"),
        ((), "NCHW"),
    ],
)
def test_open_channels_are_taken_to_be_three(shape: tuple[int, ...], layout: str) -> None:
    found = plan_of(tensor(*shape))
    assert (found.layout, found.channels) == (layout, 3)
    assert found.assumptions


def test_a_model_that_tells_nothing_of_its_input_is_taken_to_be_like_most() -> None:
    found = plan_of(TensorSpec("x", FLOAT, None))
    assert (found.name, found.layout, found.batched) == ("x", "NCHW", True)
    assert prepared(found, colour(1, 2, 3)).shape == (1, 3, 32, 32)


@pytest.mark.parametrize(
    ("shape", "dtype", "words"),
    [
        ((1, 10), "float32", "4 dimensions"),
        ((1, 4, 64, 64), "float32", "3 for color"),
        ((8, 3, 64, 64), "float32", "batch size of 8"),
        ((1, 3, 64, 64), "int64", "does not accept pixels"),
        ((1, 3, 64, 64), "bool", "does not accept pixels"),
        ((1, 3, 10_000, 64), "float32", "8192"),
    ],
)
def test_what_is_no_picture_is_refused(shape: tuple[int, ...], dtype: str, words: str) -> None:
    assert words in refused(tensor(*shape, dtype=dtype))


def test_a_deviation_of_nothing_is_refused() -> None:
    words = refused(tensor(1, 3, 8, 8), input_image_std_dev=[0.5, 0, 0.5])
    assert "input_image_std_dev" in words


def test_the_only_input_may_have_any_name() -> None:
    assert plan_of(tensor(1, 3, 8, 8, name="images")).name == "images"


def test_of_several_inputs_the_mapped_one_counts_then_the_one_called_image_then_a_picture() -> None:
    size, first, other = (
        tensor(1, 2, name="size"),
        tensor(1, 3, 8, 8, name="first"),
        tensor(1, 3, 16, 16, name="other"),
    )
    image = tensor(1, 3, 32, 32)
    mapped = {"other": "image"}
    assert plan_of(size, first, other, image, remap_input_names=mapped).name == "other"
    assert plan_of(size, first, other, image).name == "image"
    assert plan_of(size, first, other).name == "first"
    assert "no image input" in refused(size, tensor(1, 9, name="more"))


def test_a_misspelt_mapping_is_refused_with_a_guess() -> None:
    words = refused(tensor(1, 3, 8, 8, name="images"), remap_input_names={"imagse": "image"})
    assert 'maps "imagse" to "image"' in words
    assert '"images" (float32 1x3x8x8)' in words
    assert 'did you mean "images"?' in words


def test_a_model_without_inputs_is_refused() -> None:
    assert "has none" in refused()


def test_a_family_has_its_habits_and_the_settings_count_more() -> None:
    reading = used_to(letterbox=True, align_top_left=True, normalization="0..1", bgr=True)
    found = plan_of(tensor(1, 3, 8, 8), reading=reading)
    assert (found.letterbox, found.align_top_left, found.bgr) == (True, True, True)
    assert (found.mean, found.std) == ((0, 0, 0), (1, 1, 1))
    told = {"letterbox": False, "input_image_bgr": False, "input_image_mean_value": [0.1, 0.2, 0.3]}
    found = plan_of(tensor(1, 3, 8, 8), reading=reading, **told)
    assert (found.letterbox, found.bgr) == (False, False)
    assert (found.mean, found.std) == ((0.1, 0.2, 0.3), (0.5, 0.5, 0.5))


def test_the_means_of_photos_are_in_the_order_of_the_channels() -> None:
    rgb = plan_of(tensor(1, 3, 8, 8), reading=used_to(normalization="imagenet"))
    bgr = plan_of(tensor(1, 3, 8, 8), reading=used_to(normalization="imagenet", bgr=True))
    assert rgb.mean == (0.485, 0.456, 0.406)
    assert (bgr.mean, bgr.std) == (rgb.mean[::-1], rgb.std[::-1])


def test_open_sides_are_those_of_the_picture_up_to_the_next_multiple() -> None:
    found = plan_of(tensor(1, 3, DYNAMIC, DYNAMIC))
    assert prepared(found, colour(1, 2, 3, 1280, 720)).shape == (1, 3, 736, 1280)
    found = plan_of(tensor(1, 3, DYNAMIC, DYNAMIC), notes={"stride": 16.0})
    assert prepared(found, colour(1, 2, 3, 1280, 720)).shape == (1, 3, 720, 1280)
    assert blank_image(found).shape == (320, 320, 3)


def test_open_sides_are_those_of_the_training_if_the_file_says_so() -> None:
    found = plan_of(tensor(1, 3, DYNAMIC, DYNAMIC), notes={"imgsz": [384, 640], "stride": 32})
    assert (found.height, found.width) == (384, 640)
    assert blank_image(found).shape == (384, 640, 3)
    assert plan_of(tensor(1, 3, DYNAMIC, DYNAMIC), notes={"imgsz": 640.0}).width == 640
    for unusable in (
        "large",
        [1, 2, 3],
        [],
        None,
        -4,
        float("nan"),
        float("inf"),
        [640, None],
        1e9,
    ):
        assert plan_of(tensor(1, 3, DYNAMIC, DYNAMIC), notes={"imgsz": unusable}).width is None


def test_bytes_stay_what_they_are_whatever_the_settings() -> None:
    told = {"input_image_mean_value": [1, 2, 3], "input_image_std_dev": [4, 5, 6]}
    found = plan_of(
        tensor(1, 6, 8, 3, dtype="uint8", quantisation=Quantization(0.0078125, 128)), **told
    )
    assert prepared(found, colour(10, 20, 30))[0, 0, 0].tolist() == [30, 20, 10]


def test_floats_are_normalised_channel_by_channel_as_they_are_emitted() -> None:
    told = {"input_image_mean_value": [0.1, 0.2, 0.3], "input_image_std_dev": [0.5, 1, 2]}
    rgb = prepared(plan_of(tensor(1, 3, 6, 8), **told), colour(51, 102, 204))
    # 204 / 255 = 0.8, 102 / 255 = 0.4, 51 / 255 = 0.2
    assert rgb[0, :, 0, 0].tolist() == pytest.approx([1.4, 0.2, -0.05], abs=1e-6)
    bgr = prepared(plan_of(tensor(1, 3, 6, 8), input_image_bgr=True, **told), colour(51, 102, 204))
    assert bgr[0, :, 0, 0].tolist() == pytest.approx([0.2, 0.2, 0.25], abs=1e-6)


def test_floats_are_from_minus_one_to_one_by_default() -> None:
    found = prepared(plan_of(tensor(1, 6, 8, 3)), colour(0, 255, 51))
    assert found[0, 0, 0].tolist() == pytest.approx([-0.6, 1, -1], abs=1e-6)


@pytest.mark.parametrize(
    ("pixels", "value"),
    [("0..1", 0.4), ("0..255", 102), ("imagenet", (0.4 - 0.485) / 0.229)],
)
def test_floats_are_what_a_family_is_used_to(pixels: Any, value: float) -> None:
    found = plan_of(tensor(1, 3, 6, 8), reading=used_to(normalization=pixels))
    assert prepared(found, colour(0, 0, 102))[0, 0, 0, 0] == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("int8", -26), ("int16", 102), ("uint16", 102), ("int32", 102), ("float64", -0.2)],
)
def test_other_numbers_are_the_nearest_thing(dtype: str, value: float) -> None:
    for shape in ((1, 3, 6, 8), (1, 6, 8, 3)):
        found = prepared(plan_of(tensor(*shape, dtype=dtype)), colour(102, 102, 102))
        assert found.dtype == np.dtype(dtype)
        assert found.ravel()[0] == pytest.approx(value)


def test_half_floats_are_sent_as_floats() -> None:
    assert plan_of(tensor(1, 3, 8, 8, dtype="float16")).dtype == FLOAT


@pytest.mark.parametrize(
    ("quantisation", "value"),
    [
        (Quantization(1 / 255, -128), -26),  # 0.4 of 0..1
        (Quantization(1.0, -128), -26),  # 102 of 0..255
        (Quantization(1 / 127.5, -1), -26),  # -0.2 of -1..1: -25.5 and -1, to the even
        (Quantization(0.1, 10), 8),  # -0.2
        (Quantization(0.0, 0), -26),  # nobody knows
    ],
)
def test_quantised_inputs_get_what_stands_for_the_value(
    quantisation: Quantization, value: int
) -> None:
    found = plan_of(tensor(1, 6, 8, 3, dtype="int8", quantisation=quantisation))
    assert prepared(found, colour(102, 102, 102)).ravel()[0] == pytest.approx(value, abs=1)


def test_told_values_are_what_is_quantised() -> None:
    told = {"input_image_mean_value": [0, 0, 0], "input_image_std_dev": [0.5, 0.5, 0.5]}
    quantised = tensor(1, 6, 8, 3, dtype="int8", quantisation=Quantization(1 / 100, 0))
    assert prepared(plan_of(quantised, **told), colour(102, 102, 102)).ravel()[0] == 80
    assert prepared(plan_of(quantised, **told), colour(255, 255, 255)).ravel()[0] == 127


@pytest.mark.parametrize("dtype", [FLOAT, BYTE])
@pytest.mark.parametrize("bgr", [False, True])
def test_both_layouts_hold_the_same(dtype: np.dtype[Any], bgr: bool) -> None:
    pixels = noise(40, 30)
    others = {"dtype": dtype, "bgr": bgr, "mean": (0.1, 0.2, 0.3), "std": (1.0, 2.0, 3.0)}
    first = prepared(plan(40, 30, "NCHW", **others), pixels)
    last = prepared(plan(40, 30, "NHWC", **others), pixels)
    np.testing.assert_array_equal(first[0].transpose(1, 2, 0), last[0])
    expected = pixels if bgr else pixels[:, :, ::-1]
    if dtype == BYTE:
        np.testing.assert_array_equal(last[0], expected)
    else:
        formula = (expected / 255 - np.array(others["mean"])) / np.array(others["std"])
        np.testing.assert_array_equal(last[0], formula.astype(np.float32))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", [FLOAT, BYTE])
def test_grey_models_get_the_brightness(layout: Any, dtype: np.dtype[Any]) -> None:
    found = prepared(plan(8, 6, layout, channels=1, dtype=dtype), colour(0, 0, 255))
    assert found.shape == ((1, 1, 6, 8) if layout == "NCHW" else (1, 6, 8, 1))
    value = 76  # 0.299 x 255
    expected = value if dtype == BYTE else (value / 255 - 0.5) / 0.5
    assert np.unique(found).tolist() == pytest.approx([expected])


def test_a_model_without_a_batch_gets_none() -> None:
    assert prepared(plan_of(tensor(6, 8, 3)), colour(1, 2, 3)).shape == (6, 8, 3)
    assert prepared(plan_of(tensor(3, 6, 8)), colour(1, 2, 3)).shape == (3, 6, 8)


def test_a_stretched_picture_covers_the_input() -> None:
    _, fit = Preprocessor(plan(32, 16)).prepare(colour(1, 2, 3, 100, 100))
    assert fit == stretch_fit(32, 16)


def letterboxed(pixels: Image, width: int, height: int) -> tuple[Image, tuple[int, int, int, int]]:
    """As Ultralytics has it, with the edges as left, top, right, bottom."""
    own_height, own_width = pixels.shape[:2]
    ratio = min(height / own_height, width / own_width)
    new = round(own_width * ratio), round(own_height * ratio)
    across, down = (width - new[0]) / 2, (height - new[1]) / 2
    small = cv2.resize(pixels, new) if new != (own_width, own_height) else pixels
    top, bottom = round(down - 0.1), round(down + 0.1)
    left, right = round(across - 0.1), round(across + 0.1)
    framed = cv2.copyMakeBorder(
        small, top, bottom, left, right, cv2.BORDER_CONSTANT, value=(114, 114, 114)
    )
    return framed.astype(np.uint8), (left, top, right, bottom)


@pytest.mark.parametrize(
    ("width", "height"), [(40, 30), (30, 40), (37, 23), (23, 37), (64, 61), (57, 64), (20, 20)]
)
def test_a_letterboxed_picture_lies_where_ultralytics_puts_it(width: int, height: int) -> None:
    pixels = colour(10, 200, 30, width, height)
    expected, (left, top, right, bottom) = letterboxed(pixels, 64, 64)
    found, fit = Preprocessor(plan(64, 64, letterbox=True, bgr=True)).prepare(pixels)
    np.testing.assert_array_equal(found[0], expected)
    assert (fit.offset_x, fit.offset_y) == (left, top)
    assert (fit.scale_x, fit.scale_y) == (64 - left - right, 64 - top - bottom)


@given(st.integers(1, 500), st.integers(1, 500))
def test_a_letterbox_never_leaves_the_input(width: int, height: int) -> None:
    pixels = np.broadcast_to(np.zeros((1, 1, 3), np.uint8), (height, width, 3))
    _, fit = Preprocessor(plan(48, 64, letterbox=True)).prepare(pixels)
    assert 0 <= fit.offset_x <= fit.offset_x + fit.scale_x <= 48
    assert 0 <= fit.offset_y <= fit.offset_y + fit.scale_y <= 64
    ratio = min(48 / width, 64 / height)
    assert abs(fit.scale_x - width * ratio) <= 1
    assert abs(fit.scale_y - height * ratio) <= 1


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("channels", [1, 3])
def test_edges_are_grey_before_they_are_normalised(layout: Any, channels: int) -> None:
    others = {"letterbox": True, "channels": channels, "mean": (0.0, 0.1, 0.2), "dtype": FLOAT}
    preparer = Preprocessor(plan(8, 8, layout, **others))
    white = colour(255, 255, 255, 8, 4)
    preparer.release(preparer.prepare(white.transpose(1, 0, 2))[0])
    found = preparer.prepare(white)[0][0]
    found = found if layout == "NCHW" else found.transpose(2, 0, 1)
    for channel, mean in zip(found, (0.0, 0.1, 0.2), strict=False):
        assert channel[[0, 1, 6, 7]].ravel().tolist() == pytest.approx(
            [(114 / 255 - mean) * 2] * 32
        )
        assert channel[2:6].ravel().tolist() == pytest.approx([(1 - mean) * 2] * 32)


def test_a_picture_may_lie_in_the_corner() -> None:
    found, fit = Preprocessor(plan(8, 8, letterbox=True, align_top_left=True)).prepare(
        colour(9, 9, 9, 8, 4)
    )
    assert fit == ImageFit(8, 8, 8, 4)
    assert found[0, :, 0, 0].tolist() == [9] * 4 + [114] * 4


def test_an_open_letterbox_is_filled_up_to_the_multiple() -> None:
    wide = replace(plan(None, None, letterbox=True), stride=32)
    found, fit = Preprocessor(wide).prepare(colour(9, 9, 9, 64, 40))
    assert found.shape == (1, 64, 64, 3)
    assert fit == ImageFit(64, 64, 64, 40, 0, 12)
    high = replace(wide, height=80)
    assert Preprocessor(high).prepare(colour(9, 9, 9, 64, 40))[1] == ImageFit(128, 80, 128, 80)


def _like_pil(pixels: Image, width: int, height: int) -> NDArray[np.float64]:
    """Bilinear with a kernel that widens as a picture shrinks, as in Pillow."""
    across, down = _weights(pixels.shape[1], width), _weights(pixels.shape[0], height)
    rows = np.rint(np.tensordot(down, pixels, 1))
    return np.rint(np.tensordot(rows, across, (1, 1))).transpose(0, 2, 1).clip(0, 255)


def _weights(side: int, to_side: int) -> NDArray[np.float64]:
    scale = side / to_side
    centres = (np.arange(to_side)[:, np.newaxis] + 0.5) * scale
    apart = np.abs(np.arange(side) + 0.5 - centres) / max(scale, 1)
    weights = np.maximum(0, 1 - apart)
    normalised: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return normalised


@pytest.mark.parametrize(
    ("width", "height"),
    [
        (640, 640),
        (640, 360),
        (416, 416),
        (320, 320),
        (320, 180),
        (300, 300),
        (224, 224),
        (160, 160),
    ],
)
def test_smaller_pictures_differ_from_the_exact_ones_by_less_than_a_grey_level(
    width: int, height: int
) -> None:
    pixels = photo("collage_1280x720.jpg")
    found = prepared(plan(width, height, bgr=True), pixels)[0].astype(np.float64)
    mean = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA)
    differences = [np.abs(found - each).mean() for each in (mean, _like_pil(pixels, width, height))]
    assert min(differences) < 0.9
    assert max(differences) < 2
    aliased = cv2.resize(pixels, (width, height)).astype(np.float64)
    assert np.abs(found - mean).mean() <= np.abs(aliased - mean).mean()


@pytest.mark.parametrize("size", [(1, 1), (1280, 4), (4, 720), (100, 700), (33, 17), (1279, 719)])
@pytest.mark.parametrize("own", [(1280, 720), (641, 479), (3, 2), (1, 500)])
def test_every_size_becomes_every_other(own: tuple[int, int], size: tuple[int, int]) -> None:
    found = prepared(plan(*size, bgr=True), colour(10, 20, 30, *own))
    assert found.shape == (1, size[1], size[0], 3)
    assert (found == np.array([10, 20, 30])).all()


def test_fine_stripes_become_grey_instead_of_coarse_stripes() -> None:
    """What linear interpolation alone makes of them."""
    stripes = np.zeros((720, 1280, 3), np.uint8)
    stripes[:, ::2] = 255
    for size in ((300, 300), (224, 224), (96, 96), (32, 32)):
        found = prepared(plan(*size), stripes).astype(np.int64)
        assert np.abs(found - 127).max() < 40, size
    assert np.abs(cv2.resize(stripes, (300, 300)).astype(np.int64) - 127).max() > 100


@pytest.mark.parametrize(
    "view",
    [
        lambda pixels: pixels[:, ::-1],
        lambda pixels: pixels[::-1],
        lambda pixels: pixels[::2, ::2],
        lambda pixels: pixels[3:40, 5:50],
        lambda pixels: pixels[:, :, ::-1],
        np.asfortranarray,
    ],
)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("shrunk", [False, True])
def test_views_of_pictures_are_pictures(view: Any, layout: Any, shrunk: bool) -> None:
    pixels = view(noise(64, 48))
    pixels.setflags(write=False)
    width, height = (20, 20) if shrunk else (pixels.shape[1], pixels.shape[0])
    for dtype in (FLOAT, BYTE):
        of_view = prepared(plan(width, height, layout, dtype=dtype), pixels)
        of_copy = prepared(plan(width, height, layout, dtype=dtype), np.ascontiguousarray(pixels))
        np.testing.assert_array_equal(of_view, of_copy)


@pytest.mark.parametrize(
    "pixels",
    [
        np.zeros((4, 4), np.uint16),
        np.zeros((4, 4, 4), np.uint8),
        np.zeros((0, 4, 3), np.uint8),
        np.zeros((4, 4, 3), np.float32),
    ],
)
def test_what_is_no_picture_in_colour_is_told(pixels: NDArray[Any]) -> None:
    with pytest.raises(InvalidRequest, match="color images"):
        Preprocessor(plan(8, 8)).prepare(pixels)


@pytest.mark.parametrize(
    "given_plan",
    [
        plan(640, 640, "NCHW", dtype=FLOAT),
        plan(640, 640, "NCHW", dtype=FLOAT, letterbox=True),
        plan(320, 320, "NHWC", dtype=FLOAT),
        plan(320, 320, "NHWC", dtype=FLOAT, mean=(0.1, 0.2, 0.3)),
        plan(300, 300, "NHWC"),
        plan(300, 300, "NCHW"),
        plan(300, 300, "NCHW", channels=1, dtype=FLOAT),
        plan(128, 128, "NHWC", bgr=True, letterbox=True),
    ],
)
def test_memory_is_used_again(given_plan: InputPlan) -> None:
    preparer, pixels = Preprocessor(given_plan), noise(1280, 720)
    for _ in range(2):
        with preparer.prepared(pixels):
            pass
    tracemalloc.start()
    try:
        with preparer.prepared(pixels):
            pass
        assert tracemalloc.get_traced_memory()[1] < 50_000
    finally:
        tracemalloc.stop()


def test_a_tensor_is_nobody_elses_until_it_is_released() -> None:
    preparer = Preprocessor(plan(8, 6))
    first, _ = preparer.prepare(colour(1, 1, 1))
    second, _ = preparer.prepare(colour(2, 2, 2))
    assert (first == 1).all()
    assert (second == 2).all()
    preparer.release(first)
    preparer.release(first)
    third, fourth = preparer.prepare(colour(3, 3, 3))[0], preparer.prepare(colour(4, 4, 4))[0]
    assert third is first
    assert (third == 3).all()
    assert (second == 2).all()
    assert (fourth == 4).all()


def test_threads_do_not_see_each_others_pictures() -> None:
    preparer = Preprocessor(plan(64, 64, "NCHW", dtype=FLOAT, letterbox=True))
    wrong = list[int]()

    def prepare(value: int) -> None:
        expected = prepared(preparer.plan, colour(value, value, value, 200, 100 + value))
        for _ in range(100):
            with preparer.prepared(colour(value, value, value, 200, 100 + value)) as (found, _):
                if not np.array_equal(found, expected):
                    wrong.append(value)

    threads = [threading.Thread(target=prepare, args=(value,)) for value in (3, 60, 120, 250)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@given(
    shape=st.none() | st.lists(st.sampled_from([-1, 0, 1, 2, 3, 4, 17, 9000]), max_size=6),
    dtype=st.sampled_from(["uint8", "int8", "float16", "float32", "float64", "int64", "bool"]),
    width=st.integers(1, 70),
    height=st.integers(1, 70),
    letterbox=st.booleans(),
)
def test_every_shape_is_filled_or_refused(
    shape: list[int] | None, dtype: str, width: int, height: int, letterbox: bool
) -> None:
    facts = TensorSpec("x", np.dtype(dtype), None if shape is None else tuple(shape))
    found = decided(facts, letterbox=letterbox)
    if isinstance(found, Mismatch):
        assert found.reasons
        return
    made, fit = Preprocessor(found).prepare(noise(width, height))
    assert made.dtype == found.dtype
    declared = shape or [-1, 3, -1, -1]
    assert made.ndim == len(declared)
    assert all(extent in (-1, 0, own) for extent, own in zip(declared, made.shape, strict=True))
    assert np.isfinite(made.astype(np.float64)).all()
    assert fit.input_width * fit.input_height * found.channels == made.size

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
    quantization: Quantization | None = None,
) -> TensorSpec:
    return TensorSpec(name, np.dtype(dtype), shape, quantization=quantization)  # type: ignore[arg-type]


def plan_or_mismatch(
    *inputs: TensorSpec,
    notes: dict[str, Any] | None = None,
    reading: DetectorDecoder | None = None,
    **attributes: Any,
) -> InputPlan | Mismatch:
    return plan_input(ModelView(inputs, (), properties=notes), settings(**attributes), reading)


def create_plan(*inputs: TensorSpec, **others: Any) -> InputPlan:
    plan = plan_or_mismatch(*inputs, **others)
    assert isinstance(plan, InputPlan), plan
    return plan


def refusal_text(*inputs: TensorSpec, **others: Any) -> str:
    refusal = plan_or_mismatch(*inputs, **others)
    assert isinstance(refusal, Mismatch), refusal
    return " ".join(refusal.reasons)


def decoder_with_defaults(**habits: Any) -> DetectorDecoder:
    def read(tensors: Any, fit: Any) -> Candidates:
        raise AssertionError("nothing is read here")

    return DetectorDecoder("family", (), read, **habits)


def plan(width: int | None, height: int | None, layout: Any = "NHWC", **others: Any) -> InputPlan:
    return InputPlan("image", others.pop("dtype", BYTE), layout, width, height, **others)


def prepare(plan: InputPlan, pixels: Image) -> NDArray[Any]:
    return Preprocessor(plan).prepare(pixels)[0]


def solid_color(blue: int, green: int, red: int, width: int = 8, height: int = 6) -> Image:
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
def test_layout_is_derived_from_the_channels(
    shape: tuple[int | None, ...],
    layout: str,
    channels: int,
    height: int | None,
    width: int | None,
) -> None:
    found = create_plan(tensor(*shape))
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
def test_unknown_channels_are_taken_as_3(shape: tuple[int, ...], layout: str) -> None:
    found = create_plan(tensor(*shape))
    assert (found.layout, found.channels) == (layout, 3)
    assert found.assumptions


def test_input_without_a_shape_is_taken_as_nchw() -> None:
    found = create_plan(TensorSpec("x", FLOAT, None))
    assert (found.name, found.layout, found.batched) == ("x", "NCHW", True)
    assert prepare(found, solid_color(1, 2, 3)).shape == (1, 3, 32, 32)


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
def test_input_that_is_not_an_image_is_refused(
    shape: tuple[int, ...], dtype: str, words: str
) -> None:
    assert words in refusal_text(tensor(*shape, dtype=dtype))


def test_standard_deviation_of_0_is_refused() -> None:
    words = refusal_text(tensor(1, 3, 8, 8), input_image_std_dev=[0.5, 0, 0.5])
    assert "input_image_std_dev" in words


def test_only_input_may_have_any_name() -> None:
    assert create_plan(tensor(1, 3, 8, 8, name="images")).name == "images"


def test_input_is_chosen_by_remapping_then_name_then_shape() -> None:
    size, first, other = (
        tensor(1, 2, name="size"),
        tensor(1, 3, 8, 8, name="first"),
        tensor(1, 3, 16, 16, name="other"),
    )
    image = tensor(1, 3, 32, 32)
    mapped = {"other": "image"}
    assert create_plan(size, first, other, image, remap_input_names=mapped).name == "other"
    assert create_plan(size, first, other, image).name == "image"
    assert create_plan(size, first, other).name == "first"
    assert "no image input" in refusal_text(size, tensor(1, 9, name="more"))


def test_misspelled_remapping_is_refused_with_a_suggestion() -> None:
    words = refusal_text(tensor(1, 3, 8, 8, name="images"), remap_input_names={"imagse": "image"})
    assert 'maps "imagse" to "image"' in words
    assert '"images" (float32 1x3x8x8)' in words
    assert 'did you mean "images"?' in words


def test_model_without_inputs_is_refused() -> None:
    assert "has none" in refusal_text()


def test_settings_override_the_defaults_of_the_family() -> None:
    reading = decoder_with_defaults(
        letterbox=True, align_top_left=True, normalization="0..1", bgr=True
    )
    found = create_plan(tensor(1, 3, 8, 8), reading=reading)
    assert (found.letterbox, found.align_top_left, found.bgr) == (True, True, True)
    assert (found.mean, found.std) == ((0, 0, 0), (1, 1, 1))
    told = {"letterbox": False, "input_image_bgr": False, "input_image_mean_value": [0.1, 0.2, 0.3]}
    found = create_plan(tensor(1, 3, 8, 8), reading=reading, **told)
    assert (found.letterbox, found.bgr) == (False, False)
    assert (found.mean, found.std) == ((0.1, 0.2, 0.3), (1, 1, 1))
    found = create_plan(tensor(1, 3, 8, 8), reading=reading, input_image_std_dev=[0.1, 0.2, 0.3])
    assert (found.mean, found.std) == ((0, 0, 0), (0.1, 0.2, 0.3))


def test_imagenet_means_follow_the_channel_order() -> None:
    rgb = create_plan(tensor(1, 3, 8, 8), reading=decoder_with_defaults(normalization="imagenet"))
    bgr = create_plan(
        tensor(1, 3, 8, 8), reading=decoder_with_defaults(normalization="imagenet", bgr=True)
    )
    assert rgb.mean == (0.485, 0.456, 0.406)
    assert (bgr.mean, bgr.std) == (rgb.mean[::-1], rgb.std[::-1])


def test_dynamic_size_is_the_image_size_rounded_up_to_the_stride() -> None:
    found = create_plan(tensor(1, 3, DYNAMIC, DYNAMIC))
    assert prepare(found, solid_color(1, 2, 3, 1280, 720)).shape == (1, 3, 736, 1280)
    found = create_plan(tensor(1, 3, DYNAMIC, DYNAMIC), notes={"stride": 16.0})
    assert prepare(found, solid_color(1, 2, 3, 1280, 720)).shape == (1, 3, 720, 1280)
    assert blank_image(found).shape == (320, 320, 3)


def test_dynamic_size_is_the_training_size_from_the_metadata() -> None:
    found = create_plan(tensor(1, 3, DYNAMIC, DYNAMIC), notes={"imgsz": [384, 640], "stride": 32})
    assert (found.height, found.width) == (384, 640)
    assert blank_image(found).shape == (384, 640, 3)
    assert create_plan(tensor(1, 3, DYNAMIC, DYNAMIC), notes={"imgsz": 640.0}).width == 640
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
        assert create_plan(tensor(1, 3, DYNAMIC, DYNAMIC), notes={"imgsz": unusable}).width is None


def test_bytes_are_not_normalized() -> None:
    told = {"input_image_mean_value": [1, 2, 3], "input_image_std_dev": [4, 5, 6]}
    found = create_plan(
        tensor(1, 6, 8, 3, dtype="uint8", quantization=Quantization(0.0078125, 128)), **told
    )
    assert prepare(found, solid_color(10, 20, 30))[0, 0, 0].tolist() == [30, 20, 10]


def test_floats_are_normalized_per_emitted_channel() -> None:
    told = {"input_image_mean_value": [0.1, 0.2, 0.3], "input_image_std_dev": [0.5, 1, 2]}
    rgb = prepare(create_plan(tensor(1, 3, 6, 8), **told), solid_color(51, 102, 204))
    # 204 / 255 = 0.8, 102 / 255 = 0.4, 51 / 255 = 0.2
    assert rgb[0, :, 0, 0].tolist() == pytest.approx([1.4, 0.2, -0.05], abs=1e-6)
    bgr = prepare(
        create_plan(tensor(1, 3, 6, 8), input_image_bgr=True, **told), solid_color(51, 102, 204)
    )
    assert bgr[0, :, 0, 0].tolist() == pytest.approx([0.2, 0.2, 0.25], abs=1e-6)


def test_floats_range_from_minus_1_to_1_by_default() -> None:
    found = prepare(create_plan(tensor(1, 6, 8, 3)), solid_color(0, 255, 51))
    assert found[0, 0, 0].tolist() == pytest.approx([-0.6, 1, -1], abs=1e-6)


@pytest.mark.parametrize(
    ("pixels", "value"),
    [("0..1", 0.4), ("0..255", 102), ("imagenet", (0.4 - 0.485) / 0.229)],
)
def test_floats_are_normalized_as_the_family_expects(pixels: Any, value: float) -> None:
    found = create_plan(tensor(1, 3, 6, 8), reading=decoder_with_defaults(normalization=pixels))
    assert prepare(found, solid_color(0, 0, 102))[0, 0, 0, 0] == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("int8", -26), ("int16", 102), ("uint16", 102), ("int32", 102), ("float64", -0.2)],
)
def test_other_integer_types_are_scaled(dtype: str, value: float) -> None:
    for shape in ((1, 3, 6, 8), (1, 6, 8, 3)):
        found = prepare(create_plan(tensor(*shape, dtype=dtype)), solid_color(102, 102, 102))
        assert found.dtype == np.dtype(dtype)
        assert found.ravel()[0] == pytest.approx(value)


def test_float16_inputs_are_sent_as_float32() -> None:
    assert create_plan(tensor(1, 3, 8, 8, dtype="float16")).dtype == FLOAT


@pytest.mark.parametrize(
    ("quantization", "value"),
    [
        (Quantization(1 / 255, -128), -26),  # 0.4 of 0..1
        (Quantization(1.0, -128), -26),  # 102 of 0..255
        (Quantization(1 / 127.5, -1), -26),  # -0.2 of -1..1: -25.5 and -1, to the even
        (Quantization(0.1, 10), 8),  # -0.2
        (Quantization(0.0, 0), -26),  # nobody knows
    ],
)
def test_quantized_inputs_are_quantized(quantization: Quantization, value: int) -> None:
    found = create_plan(tensor(1, 6, 8, 3, dtype="int8", quantization=quantization))
    assert prepare(found, solid_color(102, 102, 102)).ravel()[0] == pytest.approx(value, abs=1)


def test_configured_normalization_is_applied_before_quantization() -> None:
    told = {"input_image_mean_value": [0, 0, 0], "input_image_std_dev": [0.5, 0.5, 0.5]}
    quantized = tensor(1, 6, 8, 3, dtype="int8", quantization=Quantization(1 / 100, 0))
    assert prepare(create_plan(quantized, **told), solid_color(102, 102, 102)).ravel()[0] == 80
    assert prepare(create_plan(quantized, **told), solid_color(255, 255, 255)).ravel()[0] == 127


@pytest.mark.parametrize("dtype", [FLOAT, BYTE])
@pytest.mark.parametrize("bgr", [False, True])
def test_both_layouts_contain_the_same_values(dtype: np.dtype[Any], bgr: bool) -> None:
    pixels = noise(40, 30)
    others = {"dtype": dtype, "bgr": bgr, "mean": (0.1, 0.2, 0.3), "std": (1.0, 2.0, 3.0)}
    first = prepare(plan(40, 30, "NCHW", **others), pixels)
    last = prepare(plan(40, 30, "NHWC", **others), pixels)
    np.testing.assert_array_equal(first[0].transpose(1, 2, 0), last[0])
    expected = pixels if bgr else pixels[:, :, ::-1]
    if dtype == BYTE:
        np.testing.assert_array_equal(last[0], expected)
    else:
        formula = (expected / 255 - np.array(others["mean"])) / np.array(others["std"])
        np.testing.assert_array_equal(last[0], formula.astype(np.float32))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", [FLOAT, BYTE])
def test_grayscale_models_get_the_brightness(layout: Any, dtype: np.dtype[Any]) -> None:
    found = prepare(plan(8, 6, layout, channels=1, dtype=dtype), solid_color(0, 0, 255))
    assert found.shape == ((1, 1, 6, 8) if layout == "NCHW" else (1, 6, 8, 1))
    value = 76  # 0.299 x 255
    expected = value if dtype == BYTE else (value / 255 - 0.5) / 0.5
    assert np.unique(found).tolist() == pytest.approx([expected])


def test_model_without_a_batch_dimension_gets_none() -> None:
    assert prepare(create_plan(tensor(6, 8, 3)), solid_color(1, 2, 3)).shape == (6, 8, 3)
    assert prepare(create_plan(tensor(3, 6, 8)), solid_color(1, 2, 3)).shape == (3, 6, 8)


def test_stretched_image_covers_the_input() -> None:
    _, fit = Preprocessor(plan(32, 16)).prepare(solid_color(1, 2, 3, 100, 100))
    assert fit == stretch_fit(32, 16)


def letterbox_like_ultralytics(
    pixels: Image, width: int, height: int
) -> tuple[Image, tuple[int, int, int, int]]:
    """Return the letterboxed image and its left, top, right and bottom edges."""
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
def test_letterbox_matches_ultralytics(width: int, height: int) -> None:
    pixels = solid_color(10, 200, 30, width, height)
    expected, (left, top, right, bottom) = letterbox_like_ultralytics(pixels, 64, 64)
    found, fit = Preprocessor(plan(64, 64, letterbox=True, bgr=True)).prepare(pixels)
    np.testing.assert_array_equal(found[0], expected)
    assert (fit.offset_x, fit.offset_y) == (left, top)
    assert (fit.scale_x, fit.scale_y) == (64 - left - right, 64 - top - bottom)


@given(st.integers(1, 500), st.integers(1, 500))
def test_letterbox_stays_inside_the_input(width: int, height: int) -> None:
    pixels = np.broadcast_to(np.zeros((1, 1, 3), np.uint8), (height, width, 3))
    _, fit = Preprocessor(plan(48, 64, letterbox=True)).prepare(pixels)
    assert 0 <= fit.offset_x <= fit.offset_x + fit.scale_x <= 48
    assert 0 <= fit.offset_y <= fit.offset_y + fit.scale_y <= 64
    ratio = min(48 / width, 64 / height)
    assert abs(fit.scale_x - width * ratio) <= 1
    assert abs(fit.scale_y - height * ratio) <= 1


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("channels", [1, 3])
def test_letterbox_edges_are_gray_before_normalization(layout: Any, channels: int) -> None:
    others = {"letterbox": True, "channels": channels, "mean": (0.0, 0.1, 0.2), "dtype": FLOAT}
    preparer = Preprocessor(plan(8, 8, layout, **others))
    white = solid_color(255, 255, 255, 8, 4)
    preparer.release(preparer.prepare(white.transpose(1, 0, 2))[0])
    found = preparer.prepare(white)[0][0]
    found = found if layout == "NCHW" else found.transpose(2, 0, 1)
    for channel, mean in zip(found, (0.0, 0.1, 0.2), strict=False):
        assert channel[[0, 1, 6, 7]].ravel().tolist() == pytest.approx(
            [(114 / 255 - mean) * 2] * 32
        )
        assert channel[2:6].ravel().tolist() == pytest.approx([(1 - mean) * 2] * 32)


def test_image_can_be_aligned_to_the_top_left() -> None:
    found, fit = Preprocessor(plan(8, 8, letterbox=True, align_top_left=True)).prepare(
        solid_color(9, 9, 9, 8, 4)
    )
    assert fit == ImageFit(8, 8, 8, 4)
    assert found[0, :, 0, 0].tolist() == [9] * 4 + [114] * 4


def test_dynamic_letterbox_is_padded_to_the_stride() -> None:
    wide = replace(plan(None, None, letterbox=True), stride=32)
    found, fit = Preprocessor(wide).prepare(solid_color(9, 9, 9, 64, 40))
    assert found.shape == (1, 64, 64, 3)
    assert fit == ImageFit(64, 64, 64, 40, 0, 12)
    high = replace(wide, height=80)
    assert Preprocessor(high).prepare(solid_color(9, 9, 9, 64, 40))[1] == ImageFit(128, 80, 128, 80)


def _resize_like_pil(pixels: Image, width: int, height: int) -> NDArray[np.float64]:
    """Resize bilinearly with a kernel that widens as the image shrinks, as Pillow does."""
    across, down = _weights(pixels.shape[1], width), _weights(pixels.shape[0], height)
    rows = np.rint(np.tensordot(down, pixels, 1))
    return np.rint(np.tensordot(rows, across, (1, 1))).transpose(0, 2, 1).clip(0, 255)


def _weights(side: int, to_side: int) -> NDArray[np.float64]:
    scale = side / to_side
    centers = (np.arange(to_side)[:, np.newaxis] + 0.5) * scale
    apart = np.abs(np.arange(side) + 0.5 - centers) / max(scale, 1)
    weights = np.maximum(0, 1 - apart)
    normalized: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return normalized


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
def test_resized_image_differs_from_references_by_less_than_a_gray_level(
    width: int, height: int
) -> None:
    pixels = photo("collage_1280x720.jpg")
    found = prepare(plan(width, height, bgr=True), pixels)[0].astype(np.float64)
    mean = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA)
    differences = [
        np.abs(found - each).mean() for each in (mean, _resize_like_pil(pixels, width, height))
    ]
    assert min(differences) < 0.9
    assert max(differences) < 2
    aliased = cv2.resize(pixels, (width, height)).astype(np.float64)
    assert np.abs(found - mean).mean() <= np.abs(aliased - mean).mean()


@pytest.mark.parametrize("size", [(1, 1), (1280, 4), (4, 720), (100, 700), (33, 17), (1279, 719)])
@pytest.mark.parametrize("own", [(1280, 720), (641, 479), (3, 2), (1, 500)])
def test_any_size_can_be_resized_to_any_other(own: tuple[int, int], size: tuple[int, int]) -> None:
    found = prepare(plan(*size, bgr=True), solid_color(10, 20, 30, *own))
    assert found.shape == (1, size[1], size[0], 3)
    assert (found == np.array([10, 20, 30])).all()


def test_fine_stripes_are_averaged_without_aliasing() -> None:
    """Linear interpolation alone turns them into coarse stripes."""
    stripes = np.zeros((720, 1280, 3), np.uint8)
    stripes[:, ::2] = 255
    for size in ((300, 300), (224, 224), (96, 96), (32, 32)):
        found = prepare(plan(*size), stripes).astype(np.int64)
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
def test_array_views_are_accepted(view: Any, layout: Any, shrunk: bool) -> None:
    pixels = view(noise(64, 48))
    pixels.setflags(write=False)
    width, height = (20, 20) if shrunk else (pixels.shape[1], pixels.shape[0])
    for dtype in (FLOAT, BYTE):
        of_view = prepare(plan(width, height, layout, dtype=dtype), pixels)
        of_copy = prepare(plan(width, height, layout, dtype=dtype), np.ascontiguousarray(pixels))
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
def test_image_that_is_not_color_is_refused(pixels: NDArray[Any]) -> None:
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
def test_buffers_are_reused(given_plan: InputPlan) -> None:
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


def test_tensor_is_not_shared_until_it_is_released() -> None:
    preparer = Preprocessor(plan(8, 6))
    first, _ = preparer.prepare(solid_color(1, 1, 1))
    second, _ = preparer.prepare(solid_color(2, 2, 2))
    assert (first == 1).all()
    assert (second == 2).all()
    preparer.release(first)
    preparer.release(first)
    third, fourth = (
        preparer.prepare(solid_color(3, 3, 3))[0],
        preparer.prepare(solid_color(4, 4, 4))[0],
    )
    assert third is first
    assert (third == 3).all()
    assert (second == 2).all()
    assert (fourth == 4).all()


def test_threads_do_not_share_tensors() -> None:
    preparer = Preprocessor(plan(64, 64, "NCHW", dtype=FLOAT, letterbox=True))
    wrong = list[int]()

    def prepare_repeatedly(value: int) -> None:
        expected = prepare(preparer.plan, solid_color(value, value, value, 200, 100 + value))
        for _ in range(100):
            with preparer.prepared(solid_color(value, value, value, 200, 100 + value)) as (
                found,
                _,
            ):
                if not np.array_equal(found, expected):
                    wrong.append(value)

    threads = [
        threading.Thread(target=prepare_repeatedly, args=(value,)) for value in (3, 60, 120, 250)
    ]
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
def test_any_shape_is_filled_or_refused(
    shape: list[int] | None, dtype: str, width: int, height: int, letterbox: bool
) -> None:
    facts = TensorSpec("x", np.dtype(dtype), None if shape is None else tuple(shape))
    found = plan_or_mismatch(facts, letterbox=letterbox)
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

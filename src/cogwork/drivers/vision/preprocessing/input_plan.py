"""Deduction of the input format of a model from its description. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cogwork.config.check.diagnostics import did_you_mean
from cogwork.drivers.mlmodel.model_info import Quantization, TensorSpec
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.decoding.decoder import (
    DetectorDecoder,
    Mismatch,
    ModelView,
    Normalization,
)

TensorLayout = Literal["NCHW", "NHWC"]
Triple = tuple[float, float, float]
Uint8Image = NDArray[np.uint8]

IMAGE = "image"
_HALF: Triple = (0.5, 0.5, 0.5)
_NORMALIZATIONS: dict[Normalization, tuple[Triple, Triple]] = {
    "default": (_HALF, _HALF),
    "0..1": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    "0..255": ((0.0, 0.0, 0.0), (1 / 255, 1 / 255, 1 / 255)),
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}
"""Mean and standard deviation of each channel: red, green and blue."""
_INPUT_DTYPES = ("uint8", "int8", "int16", "uint16", "int32", "float16", "float32", "float64")
_DEFAULT_STRIDE = 32
"""Downsampling factor of most models. Sides of dynamic size must be multiples of this factor."""
_MIN_STD = 1e-9
_MAX_SIDE = 8192
"""Maximum side of a model's input, in pixels."""
_PROBE_SIDE = 320


@dataclass(frozen=True, slots=True)
class InputPlan:
    name: str
    """The model's own name of the input."""
    dtype: np.dtype[Any]
    layout: TensorLayout
    width: int | None
    """None if dynamic. The input then has the width of the image, rounded up to a multiple of
    `stride`."""
    height: int | None
    channels: int = 3
    """Number of channels, which is 1 for grayscale models."""
    bgr: bool = False
    mean: Triple = _HALF
    """The mean of each channel. `mean` and `std` are in the channel order of the model."""
    std: Triple = _HALF
    letterbox: bool = False
    """Whether to keep the aspect ratio and pad with gray."""
    align_top_left: bool = False
    """Whether a letterboxed image is at the top left instead of centered."""
    stride: int = 1
    batched: bool = True
    """Whether the tensor has a batch axis."""
    quantization: Quantization | None = None
    """Quantization of models with integer input."""
    assumptions: tuple[str, ...] = ()
    """Facts that were inferred rather than configured, in sentences."""

    def __str__(self) -> str:
        fit = "letterbox" if self.letterbox else "stretched"
        size = f"{self.width or '?'}x{self.height or '?'}"
        words = [size, fit, self.layout, "BGR" if self.bgr else "RGB"]
        if self.dtype.kind == "f":
            words.append(f"mean {_format_triple(self.mean)}, std {_format_triple(self.std)}")
        return ", ".join(words)


def plan_input(
    view: ModelView, settings: MlmodelVisionAttributes, decoder: DetectorDecoder | None = None
) -> InputPlan | Mismatch:
    """Return the input format. Settings that are not configured have the defaults of the
    decoder's family."""
    tensor = _find_image_input(view.inputs, settings.remap_input_names)
    if isinstance(tensor, Mismatch):
        return tensor
    input_shape = _parse_input_shape(tensor)
    if isinstance(input_shape, Mismatch):
        return input_shape
    if min(map(abs, settings.input_image_std_dev or _HALF)) < _MIN_STD:
        return Mismatch(
            ("input_image_std_dev contains 0, but values are divided by it: use other values",)
        )
    bgr, letterbox = settings.input_image_bgr, settings.letterbox
    if bgr is None:
        bgr = decoder is not None and decoder.bgr
    if letterbox is None:
        letterbox = decoder is not None and decoder.letterbox
    pixels = decoder.normalization if decoder is not None else "default"
    mean, std, assumed = _choose_normalization(tensor, settings, pixels, bgr)
    size = _exported_size(view)
    return InputPlan(
        tensor.name,
        np.dtype(np.float32) if tensor.dtype.name == "float16" else tensor.dtype,
        input_shape.layout,
        input_shape.width or size[1],
        input_shape.height or size[0],
        input_shape.channels,
        bgr,
        mean,
        std,
        letterbox,
        align_top_left=decoder is not None and decoder.align_top_left,
        stride=1 if input_shape.width and input_shape.height else _exported_stride(view),
        batched=len(tensor.shape or _BATCHED_DIMENSIONS) == len(_BATCHED_DIMENSIONS),
        quantization=_input_quantization(tensor),
        assumptions=(*input_shape.assumptions, *assumed),
    )


def blank_image(plan: InputPlan) -> Uint8Image:
    """Return a black image to probe a model with."""
    return np.zeros((plan.height or _PROBE_SIDE, plan.width or _PROBE_SIDE, 3), np.uint8)


_BATCHED_DIMENSIONS = ("image", "height", "width", "channel")
"""Axes of an NHWC input. In an NCHW input, the channel is the second axis."""


def _find_image_input(inputs: Sequence[TensorSpec], remap: dict[str, str]) -> TensorSpec | Mismatch:
    by_name = {each.name: each for each in inputs}
    for name in (name for name, required in remap.items() if required == IMAGE):
        if name not in by_name:
            guess = did_you_mean(name, by_name)
            return Mismatch(
                (
                    f'remap_input_names maps "{name}" to "{IMAGE}", but the model has no such '
                    f"input; it has {_format_tensors(inputs)}{f': {guess}' if guess else ''}",
                )
            )
        return by_name[name]
    if IMAGE in by_name:
        return by_name[IMAGE]
    image_inputs = [each for each in inputs if isinstance(_parse_input_shape(each), _InputShape)]
    if not inputs or (len(inputs) > 1 and not image_inputs):
        return Mismatch((f"the model has no image input; it has {_format_tensors(inputs)}",))
    return image_inputs[0] if image_inputs else inputs[0]


def _format_tensors(tensors: Sequence[TensorSpec]) -> str:
    return ", ".join(map(str, tensors)) or "none"


class _InputShape(NamedTuple):
    layout: TensorLayout
    channels: int
    height: int | None
    width: int | None
    assumptions: tuple[str, ...] = ()


def _parse_input_shape(tensor: TensorSpec) -> _InputShape | Mismatch:
    if tensor.dtype.name not in _INPUT_DTYPES:
        return Mismatch(
            (f"the input {tensor} does not accept pixels: export the model with uint8 or float32",)
        )
    if not tensor.shape:
        return _InputShape("NCHW", 3, None, None, (f"the input {tensor} is assumed to be NCHW",))
    shape = [extent if extent and extent > 0 else None for extent in tensor.shape]
    if len(shape) == len(_BATCHED_DIMENSIONS) - 1:
        shape.insert(0, 1)
    if len(shape) != len(_BATCHED_DIMENSIONS):
        reason = f"an image input has 4 dimensions (or 3), but the input {tensor} has {len(shape)}"
    elif shape[0] not in (None, 1):
        reason = f"the input {tensor} has a batch size of {shape[0]}: export the model with 1"
    elif (input_shape := _detect_layout(shape)) is None:
        reason = f"the input {tensor} has no dimension of 3 for color or 1 for grayscale"
    elif max(input_shape.height or 1, input_shape.width or 1) > _MAX_SIDE:
        reason = f"the input {tensor} has a side of more than {_MAX_SIDE} pixels"
    else:
        return input_shape
    return Mismatch((reason,))


def _detect_layout(shape: Sequence[int | None]) -> _InputShape | None:
    """Determine the layout from the position of the channel axis."""
    _, first, middle, last = shape
    for channels in (3, 1):
        if first == channels:
            return _InputShape("NCHW", channels, middle, last)
        if last == channels:
            return _InputShape("NHWC", channels, first, middle)
    assumed = ("the model does not declare its number of channels: assuming 3",)
    if first is None:
        return _InputShape("NCHW", 3, middle, last, assumed)
    if last is None:
        return _InputShape("NHWC", 3, first, middle, assumed)
    return None


def _choose_normalization(
    tensor: TensorSpec, settings: MlmodelVisionAttributes, pixels: Normalization, bgr: bool
) -> tuple[Triple, Triple, tuple[str, ...]]:
    """Return mean, standard deviation and assumptions.

    A configured mean or standard deviation takes precedence. If only one of the two is configured,
    the other is the default for the model's family or for its quantization.
    """
    assumed: tuple[str, ...] = ()
    if pixels == "default" and (quantization := _input_quantization(tensor)) is not None:
        pixels = _quantized_range(quantization)
        if pixels != "default":
            assumed = (f"its input is quantized for values of {pixels}",)
    mean, std = _NORMALIZATIONS[pixels]
    if bgr:
        mean, std = mean[::-1], std[::-1]
    if settings.input_image_mean_value is not None:
        mean = _to_triple(settings.input_image_mean_value)
    if settings.input_image_std_dev is not None:
        std = _to_triple(settings.input_image_std_dev)
    return mean, std, assumed


def _format_triple(values: Triple) -> str:
    return f"[{', '.join(f'{each:.4g}' for each in values)}]"


def _to_triple(values: Sequence[float]) -> Triple:
    first, second, third = values
    return first, second, third


def _input_quantization(tensor: TensorSpec) -> Quantization | None:
    """Return the quantization of an int8 input. Inputs of uint8 take raw pixels, regardless of
    their quantization."""
    is_known = tensor.quantization is not None and tensor.quantization.scale > 0
    return tensor.quantization if is_known and tensor.dtype.name == "int8" else None


def _quantized_range(quantization: Quantization) -> Normalization:
    """Return the value range that a quantized input covers."""
    low = quantization.scale * (-128 - quantization.zero_point)
    high = quantization.scale * (127 - quantization.zero_point)
    if high <= 0 or abs(low) > 0.02 * high:
        return "default"
    return "0..255" if high > 100 else "0..1"


def _exported_size(view: ModelView) -> tuple[int, int] | tuple[None, None]:
    """Return the height and width that a model with dynamic size was trained with, if known."""
    sides = _read_pixel_counts(view, "imgsz")
    return (sides[0], sides[-1]) if sides is not None else (None, None)


def _exported_stride(view: ModelView) -> int:
    stride = _read_pixel_counts(view, "stride")
    return stride[0] if stride is not None else _DEFAULT_STRIDE


def _read_pixel_counts(view: ModelView, key: str) -> list[int] | None:
    """Return the one or two sizes in pixels that the metadata has under the key, if they are
    valid."""
    value = (view.properties or {}).get(key)
    numbers = value if isinstance(value, list | tuple) else [value]
    sides = [
        int(each) for each in numbers if isinstance(each, int | float) and 0 < each <= _MAX_SIDE
    ]
    return sides if sides and len(sides) == len(numbers) <= 2 and min(sides) > 0 else None

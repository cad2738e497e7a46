"""How a model wants its pictures, found out from what is known of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cogwork.config.diagnose import did_you_mean
from cogwork.drivers.mlmodel.facts import Quantisation, TensorFacts
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.reading import DetectorReading, ModelView, Pixels, Refusal

Layout = Literal["NCHW", "NHWC"]
Triple = tuple[float, float, float]
Bytes = NDArray[np.uint8]

_IMAGE = "image"
_HALF: Triple = (0.5, 0.5, 0.5)
_NORMALISATIONS: dict[Pixels, tuple[Triple, Triple]] = {
    "default": (_HALF, _HALF),
    "0..1": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    "0..255": ((0.0, 0.0, 0.0), (1 / 255, 1 / 255, 1 / 255)),
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}
"""The mean, and the deviation, of red, green and blue."""
_TAKEN = ("uint8", "int8", "int16", "uint16", "int32", "float16", "float32", "float64")
_COARSEST = 32
"""How much smaller than their input most models look at a picture: sides that are open have to
be whole multiples of it."""
_LEAST_DEVIATION = 1e-9
_LARGEST = 8192
"""Pixels of a side that a model may ask for."""
_PROBED = 320


@dataclass(frozen=True, slots=True)
class InputPlan:
    name: str
    """The model's own."""
    dtype: np.dtype[Any]
    layout: Layout
    width: int | None
    """None where the model leaves it open: the picture's own, up to the next `multiple`."""
    height: int | None
    channels: int = 3
    """1 for a model that takes shades of grey."""
    bgr: bool = False
    mean: Triple = _HALF
    """In the order of the channels as the model gets them, as is `std`."""
    std: Triple = _HALF
    letterbox: bool = False
    """Whether a picture keeps its shape, with grey edges."""
    corner: bool = False
    """Whether such a picture lies in the upper left corner instead of the middle."""
    multiple: int = 1
    batched: bool = True
    """Whether the tensor has a first dimension of one picture."""
    quantisation: Quantisation | None = None
    """Of models that take small whole numbers for the values."""
    assumed: tuple[str, ...] = ()
    """What nobody said and was found out, in sentences."""


def input_plan(
    view: ModelView, settings: MlmodelVisionAttributes, reading: DetectorReading | None = None
) -> InputPlan | Refusal:
    """What the settings leave out is done as models with that reading are used to it."""
    tensor = _picture_input(view.inputs, settings.remap_input_names)
    if isinstance(tensor, Refusal):
        return tensor
    form = _form(tensor)
    if isinstance(form, Refusal):
        return form
    if min(map(abs, settings.input_image_std_dev)) < _LEAST_DEVIATION:
        return Refusal(("input_image_std_dev holds a 0: values are divided by it; write another",))
    bgr, letterbox = settings.input_image_bgr, settings.letterbox
    if "input_image_bgr" not in settings.model_fields_set:
        bgr = reading is not None and reading.bgr
    if letterbox is None:
        letterbox = reading is not None and reading.letterbox
    pixels = reading.pixels if reading is not None else "default"
    mean, std, assumed = _normalisation(tensor, settings, pixels, bgr)
    size = _noted_size(view)
    return InputPlan(
        tensor.name,
        np.dtype(np.float32) if tensor.dtype.name == "float16" else tensor.dtype,
        form.layout,
        form.width or size[1],
        form.height or size[0],
        form.channels,
        bgr,
        mean,
        std,
        letterbox,
        corner=reading is not None and reading.corner,
        multiple=1 if form.width and form.height else _noted_stride(view),
        batched=len(tensor.shape or _BATCHED) == len(_BATCHED),
        quantisation=_quantisation(tensor),
        assumed=(*form.assumed, *assumed),
    )


def blank(plan: InputPlan) -> Bytes:
    """A picture to try a model with."""
    return np.zeros((plan.height or _PROBED, plan.width or _PROBED, 3), np.uint8)


_BATCHED = ("picture", "height", "width", "channel")
"""Or channel, height, width."""


def _picture_input(inputs: Sequence[TensorFacts], remap: dict[str, str]) -> TensorFacts | Refusal:
    by_name = {each.name: each for each in inputs}
    for name in (name for name, required in remap.items() if required == _IMAGE):
        if name not in by_name:
            guess = did_you_mean(name, by_name)
            return Refusal(
                (
                    f'remap_input_names maps "{name}" to "{_IMAGE}", and the model has no such '
                    f"input; it has {_listed(inputs)}{f': {guess}' if guess else ''}",
                )
            )
        return by_name[name]
    if _IMAGE in by_name:
        return by_name[_IMAGE]
    pictures = [each for each in inputs if isinstance(_form(each), _Form)]
    if not inputs or (len(inputs) > 1 and not pictures):
        return Refusal((f"the model has no input for a picture; it has {_listed(inputs)}",))
    return pictures[0] if pictures else inputs[0]


def _listed(tensors: Sequence[TensorFacts]) -> str:
    return ", ".join(map(str, tensors)) or "none"


class _Form(NamedTuple):
    layout: Layout
    channels: int
    height: int | None
    width: int | None
    assumed: tuple[str, ...] = ()


def _form(tensor: TensorFacts) -> _Form | Refusal:
    if tensor.dtype.name not in _TAKEN:
        return Refusal(
            (f"the input {tensor} takes no pixels: export the model with uint8 or float32",)
        )
    if not tensor.shape:
        return _Form("NCHW", 3, None, None, (f"the input {tensor} is taken to be NCHW",))
    shape = [extent if extent and extent > 0 else None for extent in tensor.shape]
    if len(shape) == len(_BATCHED) - 1:
        shape.insert(0, 1)
    if len(shape) != len(_BATCHED):
        reason = f"a picture has 4 dimensions (or 3), and the input {tensor} has {len(shape)}"
    elif shape[0] not in (None, 1):
        reason = f"the input {tensor} takes {shape[0]} pictures at a time: export the model with 1"
    elif (form := _laid_out(shape)) is None:
        reason = f"none of the dimensions of the input {tensor} is 3 for colours, or 1 for grey"
    elif max(form.height or 1, form.width or 1) > _LARGEST:
        reason = f"the input {tensor} has a side of more than {_LARGEST} pixels"
    else:
        return form
    return Refusal((reason,))


def _laid_out(shape: Sequence[int | None]) -> _Form | None:
    """By where the channels are."""
    _, first, middle, last = shape
    for channels in (3, 1):
        if first == channels:
            return _Form("NCHW", channels, middle, last)
        if last == channels:
            return _Form("NHWC", channels, first, middle)
    assumed = ("the model leaves open how many channels it takes: taken to be 3",)
    if first is None:
        return _Form("NCHW", 3, middle, last, assumed)
    if last is None:
        return _Form("NHWC", 3, first, middle, assumed)
    return None


def _normalisation(
    tensor: TensorFacts, settings: MlmodelVisionAttributes, pixels: Pixels, bgr: bool
) -> tuple[Triple, Triple, tuple[str, ...]]:
    """What somebody wrote counts most."""
    if {"input_image_mean_value", "input_image_std_dev"} & settings.model_fields_set:
        red, green, blue = settings.input_image_mean_value
        mean = red, green, blue
        red, green, blue = settings.input_image_std_dev
        return mean, (red, green, blue), ()
    assumed: tuple[str, ...] = ()
    if pixels == "default" and (quantisation := _quantisation(tensor)) is not None:
        pixels = _range_of(quantisation)
        if pixels != "default":
            assumed = (f"its input is quantised for values of {pixels}",)
    mean_of, std_of = _NORMALISATIONS[pixels]
    return (mean_of[::-1], std_of[::-1], assumed) if bgr else (mean_of, std_of, assumed)


def _quantisation(tensor: TensorFacts) -> Quantisation | None:
    """Inputs of unsigned bytes take pixels as they are, whatever they stand for."""
    is_known = tensor.quantisation is not None and tensor.quantisation.scale > 0
    return tensor.quantisation if is_known and tensor.dtype.name == "int8" else None


def _range_of(quantisation: Quantisation) -> Pixels:
    """What a quantised input has room for, from the smallest of its numbers to the largest."""
    least = quantisation.scale * (-128 - quantisation.zero_point)
    most = quantisation.scale * (127 - quantisation.zero_point)
    if most <= 0 or abs(least) > 0.02 * most:
        return "default"
    return "0..255" if most > 100 else "0..1"


def _noted_size(view: ModelView) -> tuple[int, int] | tuple[None, None]:
    """The height and width that a model with open sides was trained with, if its file says so."""
    sides = _note(view, "imgsz")
    return (sides[0], sides[-1]) if sides is not None else (None, None)


def _noted_stride(view: ModelView) -> int:
    stride = _note(view, "stride")
    return stride[0] if stride is not None else _COARSEST


def _note(view: ModelView, key: str) -> list[int] | None:
    """One or two numbers of pixels."""
    value = (view.notes or {}).get(key)
    numbers = value if isinstance(value, list | tuple) else [value]
    sides = [
        int(each) for each in numbers if isinstance(each, int | float) and 0 < each <= _LARGEST
    ]
    return sides if sides and len(sides) == len(numbers) <= 2 and min(sides) > 0 else None

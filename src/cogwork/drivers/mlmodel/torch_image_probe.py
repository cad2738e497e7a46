"""Discovery of the outputs of a torch model that declares no shapes, by test runs on black
images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.mlmodel.engine import RunFailed
from cogwork.drivers.mlmodel.model_info import DYNAMIC, TensorSpec

TensorSpecs = tuple[TensorSpec, ...]
Run = Callable[[NDArray[np.float32]], TensorSpecs]
"""A function that runs the model and describes its outputs, or raises RunFailed."""

_SIDES = (224, 320, 640, 416, 512, 256, 384, 299, 128, 96, 64, 32)
"""Usual sizes of square images, the most frequent first."""


@dataclass(frozen=True, slots=True)
class ImageProbe:
    outputs: TensorSpecs = ()
    """The outputs of a run. Empty if the model does not accept images in the layout NCHW."""
    side: int | None = None
    """The width and height of the only images that the model accepts; None if it accepts several
    sizes, or if no size was found."""


def probe_with_images(run: Run) -> ImageProbe:
    anything = _try_shape(run, (1, 7))
    if anything is not None:
        # A model that accepts any tensor reveals nothing about its shapes.
        return ImageProbe(tuple(replace(each, shape=None) for each in anything))
    accepted = _accepted_sides(run)
    first = next(accepted, None)
    if first is None:
        return ImageProbe()
    side, outputs = first
    second = next(accepted, None)
    if second is None:
        return ImageProbe(outputs, side)
    return ImageProbe(tuple(map(merge_specs, outputs, second[1])))


def merge_specs(one: TensorSpec, other: TensorSpec) -> TensorSpec:
    """Return a description that fits the outputs of both runs."""
    if one.shape is None or other.shape is None or len(one.shape) != len(other.shape):
        return TensorSpec(one.name, one.dtype, None)
    extents = zip(one.shape, other.shape, strict=True)
    return TensorSpec(one.name, one.dtype, tuple(a if a == b else DYNAMIC for a, b in extents))


def _accepted_sides(run: Run) -> Iterator[tuple[int, TensorSpecs]]:
    for side in _SIDES:
        outputs = _try_shape(run, (1, 3, side, side))
        if outputs is not None:
            yield side, outputs


def _try_shape(run: Run, shape: tuple[int, ...]) -> TensorSpecs | None:
    try:
        return run(np.zeros(shape, np.float32))
    except RunFailed:
        return None

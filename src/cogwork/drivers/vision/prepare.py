"""From a picture to the tensor that a model takes. Takes time: call it in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.vision.candidates import Fit
from cogwork.drivers.vision.input_plan import Bytes, InputPlan
from cogwork.drivers.vision.shrink import steps

_PADDING = 114
"""The grey that models with pictures in their own shape are trained with."""


class Preparer:
    """Makes tensors by a plan, in memory that it uses again. Several threads may, at a time."""

    def __init__(self, plan: InputPlan) -> None:
        self.plan = plan
        self._tables = _tables(plan)
        self._uniform = self._tables is not None and bool((self._tables == self._tables[0]).all())
        self._memory = _Memory()

    @contextmanager
    def prepared(self, pixels: Bytes) -> Iterator[tuple[NDArray[Any], Fit]]:
        """The tensor is good until the end of the block: read what the model gave out in it, since
        that may share its memory."""
        tensor, fit = self.prepare(pixels)
        try:
            yield tensor, fit
        finally:
            self.release(tensor)

    def prepare(self, pixels: Bytes) -> tuple[NDArray[Any], Fit]:
        """The tensor, and how the picture lies in it. `release` it when it is no longer needed; one
        that is not released is only not used again."""
        _check(pixels)
        place = _place(self.plan, pixels.shape[1], pixels.shape[0])
        image = self._resized(pixels, place.inner_width, place.inner_height)
        tensor = self._memory.take(self._shape(place), self.plan.dtype)
        self._fill(tensor, image, place)
        self._give_back(image, pixels)
        return tensor, place.fit

    def release(self, tensor: NDArray[Any]) -> None:
        self._memory.give(tensor)

    def _shape(self, place: _Place) -> tuple[int, ...]:
        plan = self.plan
        sides = (place.height, place.width)
        shape = (plan.channels, *sides) if plan.layout == "NCHW" else (*sides, plan.channels)
        return (1, *shape) if plan.batched else shape

    def _resized(self, pixels: Bytes, width: int, height: int) -> Bytes:
        image = pixels
        for step in steps(pixels.shape[1], pixels.shape[0], width, height):
            smaller = self._memory.take((step.height, step.width, 3), _BYTE)
            cv2.resize(
                image, (step.width, step.height), dst=smaller, interpolation=step.interpolation
            )
            self._give_back(image, pixels)
            image = smaller
        return image

    def _fill(self, tensor: NDArray[Any], image: Bytes, place: _Place) -> None:
        body = tensor[0] if self.plan.batched else tensor
        channels_first = body if self.plan.layout == "NCHW" else body.transpose(2, 0, 1)
        self._pad(channels_first, place)
        inner = channels_first[:, place.rows, place.columns]
        if self.plan.channels == 1:
            self._fill_grey(inner[0], image)
        elif self.plan.layout == "NCHW":
            self._fill_planes(list(inner), image)
        else:
            self._fill_pixels(body, image, place)

    def _pad(self, body: NDArray[Any], place: _Place) -> None:
        if (place.inner_width, place.inner_height) == (place.width, place.height):
            return
        grey: NDArray[Any] = np.array([_PADDING], self.plan.dtype)
        if self._tables is not None:
            grey = self._tables[:, _PADDING]
        rows, columns, colour = place.rows, place.columns, grey[:, np.newaxis, np.newaxis]
        body[:, : rows.start] = colour
        body[:, rows.stop :] = colour
        body[:, rows, : columns.start] = colour
        body[:, rows, columns.stop :] = colour

    def _fill_grey(self, plane: NDArray[Any], image: Bytes) -> None:
        if self._tables is None:
            cv2.cvtColor(image, cv2.COLOR_BGR2GRAY, dst=plane)
            return
        grey = self._memory.take(image.shape[:2], _BYTE)
        cv2.cvtColor(image, cv2.COLOR_BGR2GRAY, dst=grey)
        cv2.LUT(grey, self._tables[0], dst=plane)
        self._memory.give(grey)

    def _fill_planes(self, planes: list[NDArray[Any]], image: Bytes) -> None:
        if self._tables is None:
            cv2.split(image, planes if self.plan.bgr else planes[::-1])
            return
        split = self._memory.take((3, *image.shape[:2]), _BYTE)
        cv2.split(image, list(split if self.plan.bgr else split[::-1]))
        for source, table, plane in zip(split, self._tables, planes, strict=True):
            cv2.LUT(source, table, dst=plane)
        self._memory.give(split)

    def _fill_pixels(self, body: NDArray[Any], image: Bytes, place: _Place) -> None:
        inner = body[place.rows, place.columns]
        if self._tables is None:
            self._ordered(image, inner)
            return
        ordered = self._memory.take(image.shape, _BYTE)
        self._ordered(image, ordered)
        if self._uniform:
            # OpenCV is twice as quick with one table for all as with three that are the same.
            lines = body.reshape(place.height, -1)
            columns = slice(3 * place.columns.start, 3 * place.columns.stop)
            cv2.LUT(
                ordered.reshape(len(ordered), -1),
                self._tables[0],
                dst=lines[place.rows, columns],
            )
        else:
            cv2.LUT(ordered, np.ascontiguousarray(self._tables.T)[np.newaxis], dst=inner)
        self._memory.give(ordered)

    def _ordered(self, image: Bytes, target: Bytes) -> None:
        if self.plan.bgr:
            np.copyto(target, image)
        else:
            cv2.cvtColor(image, cv2.COLOR_BGR2RGB, dst=target)

    def _give_back(self, image: Bytes, pixels: Bytes) -> None:
        """Unless it is the caller's."""
        if image is not pixels:
            self._memory.give(image)


def _check(pixels: NDArray[Any]) -> None:
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8 or not pixels.size:
        extents = "x".join(map(str, pixels.shape))
        raise InvalidRequest(
            f"a model looks at pictures in colour, and this is {pixels.dtype} {extents}"
        )


def _tables(plan: InputPlan) -> NDArray[Any] | None:
    """What each of the 256 values of each channel becomes; None where it stays what it is."""
    if plan.dtype == np.uint8:
        return None
    values = np.tile(np.arange(256.0), (plan.channels, 1))
    if plan.dtype.kind != "f" and plan.quantisation is None:
        stored: NDArray[Any] = values - 128 if plan.dtype == np.int8 else values
        return stored.astype(plan.dtype)
    mean, std = (np.array(each[: plan.channels])[:, np.newaxis] for each in (plan.mean, plan.std))
    values = (values / 255 - mean) / std
    if plan.quantisation is not None:
        values = np.rint(values / plan.quantisation.scale) + plan.quantisation.zero_point
        values = values.clip(-128, 127)
    normalised: NDArray[Any] = values.astype(plan.dtype)
    return normalised


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in an input a picture lies, in pixels."""

    width: int
    height: int
    inner_width: int
    inner_height: int
    left: int = 0
    top: int = 0

    @property
    def rows(self) -> slice:
        return slice(self.top, self.top + self.inner_height)

    @property
    def columns(self) -> slice:
        return slice(self.left, self.left + self.inner_width)

    @property
    def fit(self) -> Fit:
        return Fit(
            self.width,
            self.height,
            float(self.inner_width),
            float(self.inner_height),
            float(self.left),
            float(self.top),
        )


@lru_cache(maxsize=64)
def _place(plan: InputPlan, width: int, height: int) -> _Place:
    """Rounded as Ultralytics rounds, whose models are the ones with pictures in their own shape."""
    if not plan.letterbox:
        full = (plan.width or _up(width, plan.multiple), plan.height or _up(height, plan.multiple))
        return _Place(*full, *full)
    ratios = [given / own for given, own in ((plan.width, width), (plan.height, height)) if given]
    ratio = min(ratios, default=1.0)
    inner_width, inner_height = max(1, round(width * ratio)), max(1, round(height * ratio))
    full_width = plan.width or _up(inner_width, plan.multiple)
    full_height = plan.height or _up(inner_height, plan.multiple)
    left, top = (
        (0, 0)
        if plan.corner
        else (_margin(full_width - inner_width), _margin(full_height - inner_height))
    )
    return _Place(full_width, full_height, inner_width, inner_height, left, top)


def _margin(room: int) -> int:
    return round(room / 2 - 0.1)


def _up(side: int, multiple: int) -> int:
    return -(-side // multiple) * multiple


_BYTE: np.dtype[Any] = np.dtype(np.uint8)
_KEPT = 16
"""Arrays of all sizes: what two threads need at a time."""


class _Memory:
    """Arrays to use again. Fresh ones cost more than what is done in them: the system clears each
    of their pages first."""

    def __init__(self) -> None:
        self._free: list[NDArray[Any]] = []
        self._lock = threading.Lock()

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        with self._lock:
            for index, array in enumerate(self._free):
                if array.shape == shape and array.dtype == dtype:
                    return self._free.pop(index)
        return np.empty(shape, dtype)

    def give(self, array: NDArray[Any]) -> None:
        with self._lock:
            if not any(each is array for each in self._free):
                self._free.append(array)
                del self._free[:-_KEPT]

"""Conversion of images to input tensors. Slow: call it in a thread."""

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
from cogwork.drivers.vision.candidates import ImageFit
from cogwork.drivers.vision.preprocessing.fast_resize import plan_resize
from cogwork.drivers.vision.preprocessing.input_plan import InputPlan, Uint8Image

_PADDING = 114
"""Gray level of the padding that letterbox models are trained with."""


class Preprocessor:
    """Converts images to tensors in reused memory. Thread-safe."""

    def __init__(self, plan: InputPlan) -> None:
        self.plan = plan
        self._lookup_tables = _build_lookup_tables(plan)
        self._is_uniform = self._lookup_tables is not None and bool(
            (self._lookup_tables == self._lookup_tables[0]).all()
        )
        self._pool = _ArrayPool()

    @contextmanager
    def prepared(self, pixels: Uint8Image) -> Iterator[tuple[NDArray[Any], ImageFit]]:
        """Yield the tensor and the placement of the image, and release the tensor afterwards.
        Decode the outputs of the model within the block: they may share memory with the tensor."""
        tensor, fit = self.prepare(pixels)
        try:
            yield tensor, fit
        finally:
            self.release(tensor)

    def prepare(self, pixels: Uint8Image) -> tuple[NDArray[Any], ImageFit]:
        """Return the tensor and the placement of the image. Call `release` after use; otherwise its
        memory is not reused."""
        _check_color_image(pixels)
        placement = _compute_placement(self.plan, pixels.shape[1], pixels.shape[0])
        image = self._resize(pixels, placement.inner_width, placement.inner_height)
        tensor = self._pool.acquire(self._tensor_shape(placement), self.plan.dtype)
        self._fill(tensor, image, placement)
        self._recycle(image, pixels)
        return tensor, placement.fit

    def release(self, tensor: NDArray[Any]) -> None:
        self._pool.release(tensor)

    def _tensor_shape(self, placement: _Placement) -> tuple[int, ...]:
        plan = self.plan
        sides = (placement.height, placement.width)
        shape = (plan.channels, *sides) if plan.layout == "NCHW" else (*sides, plan.channels)
        return (1, *shape) if plan.batched else shape

    def _resize(self, pixels: Uint8Image, width: int, height: int) -> Uint8Image:
        image = pixels
        for step in plan_resize(pixels.shape[1], pixels.shape[0], width, height):
            smaller = self._pool.acquire((step.height, step.width, 3), _UINT8)
            cv2.resize(
                image, (step.width, step.height), dst=smaller, interpolation=step.interpolation
            )
            self._recycle(image, pixels)
            image = smaller
        return image

    def _fill(self, tensor: NDArray[Any], image: Uint8Image, placement: _Placement) -> None:
        body = tensor[0] if self.plan.batched else tensor
        channels_first = body if self.plan.layout == "NCHW" else body.transpose(2, 0, 1)
        self._pad(channels_first, placement)
        inner = channels_first[:, placement.rows, placement.columns]
        if self.plan.channels == 1:
            self._fill_gray(inner[0], image)
        elif self.plan.layout == "NCHW":
            self._fill_planes(list(inner), image)
        else:
            self._fill_pixels(body, image, placement)

    def _pad(self, body: NDArray[Any], placement: _Placement) -> None:
        if (placement.inner_width, placement.inner_height) == (placement.width, placement.height):
            return
        gray: NDArray[Any] = np.array([_PADDING], self.plan.dtype)
        if self._lookup_tables is not None:
            gray = self._lookup_tables[:, _PADDING]
        rows, columns, color = placement.rows, placement.columns, gray[:, np.newaxis, np.newaxis]
        body[:, : rows.start] = color
        body[:, rows.stop :] = color
        body[:, rows, : columns.start] = color
        body[:, rows, columns.stop :] = color

    def _fill_gray(self, plane: NDArray[Any], image: Uint8Image) -> None:
        if self._lookup_tables is None:
            cv2.cvtColor(image, cv2.COLOR_BGR2GRAY, dst=plane)
            return
        gray = self._pool.acquire(image.shape[:2], _UINT8)
        cv2.cvtColor(image, cv2.COLOR_BGR2GRAY, dst=gray)
        cv2.LUT(gray, self._lookup_tables[0], dst=plane)
        self._pool.release(gray)

    def _fill_planes(self, planes: list[NDArray[Any]], image: Uint8Image) -> None:
        if self._lookup_tables is None:
            cv2.split(image, planes if self.plan.bgr else planes[::-1])
            return
        split = self._pool.acquire((3, *image.shape[:2]), _UINT8)
        cv2.split(image, list(split if self.plan.bgr else split[::-1]))
        for source, table, plane in zip(split, self._lookup_tables, planes, strict=True):
            cv2.LUT(source, table, dst=plane)
        self._pool.release(split)

    def _fill_pixels(self, body: NDArray[Any], image: Uint8Image, placement: _Placement) -> None:
        inner = body[placement.rows, placement.columns]
        if self._lookup_tables is None:
            self._reorder_channels(image, inner)
            return
        ordered = self._pool.acquire(image.shape, _UINT8)
        self._reorder_channels(image, ordered)
        if self._is_uniform:
            # A single lookup table is twice as fast in OpenCV as three equal ones.
            lines = body.reshape(placement.height, -1)
            columns = slice(3 * placement.columns.start, 3 * placement.columns.stop)
            cv2.LUT(
                ordered.reshape(len(ordered), -1),
                self._lookup_tables[0],
                dst=lines[placement.rows, columns],
            )
        else:
            cv2.LUT(ordered, np.ascontiguousarray(self._lookup_tables.T)[np.newaxis], dst=inner)
        self._pool.release(ordered)

    def _reorder_channels(self, image: Uint8Image, target: Uint8Image) -> None:
        if self.plan.bgr:
            np.copyto(target, image)
        else:
            cv2.cvtColor(image, cv2.COLOR_BGR2RGB, dst=target)

    def _recycle(self, image: Uint8Image, pixels: Uint8Image) -> None:
        """Release the image, unless it is the caller's own image."""
        if image is not pixels:
            self._pool.release(image)


def _check_color_image(pixels: NDArray[Any]) -> None:
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8 or not pixels.size:
        extents = "x".join(map(str, pixels.shape))
        raise InvalidRequest(
            f"the model needs color images, but this image is {pixels.dtype} {extents}"
        )


def _build_lookup_tables(plan: InputPlan) -> NDArray[Any] | None:
    """Return a lookup table from bytes to converted values for each channel, or None if the values
    stay unchanged."""
    if plan.dtype == np.uint8:
        return None
    values = np.tile(np.arange(256.0), (plan.channels, 1))
    if plan.dtype.kind != "f" and plan.quantization is None:
        stored: NDArray[Any] = values - 128 if plan.dtype == np.int8 else values
        return stored.astype(plan.dtype)
    mean, std = (np.array(each[: plan.channels])[:, np.newaxis] for each in (plan.mean, plan.std))
    values = (values / 255 - mean) / std
    if plan.quantization is not None:
        values = np.rint(values / plan.quantization.scale) + plan.quantization.zero_point
        values = values.clip(-128, 127)
    normalized: NDArray[Any] = values.astype(plan.dtype)
    return normalized


@dataclass(frozen=True, slots=True)
class _Placement:
    """The placement of an image in the input, in pixels."""

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
    def fit(self) -> ImageFit:
        return ImageFit(
            self.width,
            self.height,
            float(self.inner_width),
            float(self.inner_height),
            float(self.left),
            float(self.top),
        )


@lru_cache(maxsize=64)
def _compute_placement(plan: InputPlan, width: int, height: int) -> _Placement:
    """Compute the placement, rounded like Ultralytics, whose models use letterboxing."""
    if not plan.letterbox:
        full = (
            plan.width or _round_up(width, plan.stride),
            plan.height or _round_up(height, plan.stride),
        )
        return _Placement(*full, *full)
    ratios = [given / own for given, own in ((plan.width, width), (plan.height, height)) if given]
    ratio = min(ratios, default=1.0)
    inner_width, inner_height = max(1, round(width * ratio)), max(1, round(height * ratio))
    full_width = plan.width or _round_up(inner_width, plan.stride)
    full_height = plan.height or _round_up(inner_height, plan.stride)
    left, top = (
        (0, 0)
        if plan.align_top_left
        else (_center_offset(full_width - inner_width), _center_offset(full_height - inner_height))
    )
    return _Placement(full_width, full_height, inner_width, inner_height, left, top)


def _center_offset(room: int) -> int:
    return round(room / 2 - 0.1)


def _round_up(side: int, multiple: int) -> int:
    return -(-side // multiple) * multiple


_UINT8: np.dtype[Any] = np.dtype(np.uint8)
_POOL_SIZE = 16
"""Maximum number of arrays in the pool, regardless of their size; enough for two threads."""


class _ArrayPool:
    """A pool of reusable arrays. New arrays cost more than the work done in them, because the
    system zeroes their pages first."""

    def __init__(self) -> None:
        self._free: list[NDArray[Any]] = []
        self._lock = threading.Lock()

    def acquire(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        with self._lock:
            for index, array in enumerate(self._free):
                if array.shape == shape and array.dtype == dtype:
                    return self._free.pop(index)
        return np.empty(shape, dtype)

    def release(self, array: NDArray[Any]) -> None:
        with self._lock:
            if not any(each is array for each in self._free):
                self._free.append(array)
                del self._free[:-_POOL_SIZE]

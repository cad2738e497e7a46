"""A vision service that detects blobs of one color."""

from __future__ import annotations

import colorsys
from typing import NamedTuple

import cv2
import numpy as np

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.vision.attributes import ColorDetectorAttributes
from cogwork.drivers.vision.candidates import Candidates
from cogwork.drivers.vision.frame_vision import VisionResult
from cogwork.drivers.vision.model_free_detector import ModelFreeDetector
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.media.image import Pixels
from cogwork.resource.frame import Frame
from cogwork.resource.labels import Labels

_HUE_STEPS = 180
"""Number of hue steps of the full color wheel in OpenCV."""
_COLOR_NAMES = ("red", "orange", "yellow", "green", "cyan", "blue", "purple", "pink")
_COLOR_HUES = (0, 30, 60, 120, 180, 240, 280, 330)


class _ColorRange(NamedTuple):
    """Limits that a pixel must meet. All values are from 0 to 1."""

    hue: float
    tolerance: float
    min_saturation: float
    min_value: float


class ColorDetector(ModelFreeDetector):
    def __init__(
        self, name: ResourceName, attributes: ColorDetectorAttributes, dependencies: Dependencies
    ) -> None:
        super().__init__(name, attributes, dependencies)
        hue = _parse_hue(attributes.detect_color)
        if hue is None:
            raise InvalidRequest(
                f'"detect_color" is {attributes.detect_color}, a shade of gray without a hue; '
                "choose a color, because blobs are detected by hue"
            )
        self._color_range = _ColorRange(
            hue,
            attributes.hue_tolerance_pct,
            attributes.saturation_cutoff_pct,
            attributes.value_cutoff_pct,
        )
        self._min_size = attributes.segment_size_px
        self.labels = Labels({0: attributes.label or _nearest_color_name(hue)})

    @property
    def is_classifier(self) -> bool:
        return False

    def explain_unsupported(self, role: str) -> str:
        return f"a color_detector is not a {role}"

    async def analyze_frame(self, frame: Frame) -> VisionResult:
        if frame.is_depth:
            raise InvalidRequest("blobs are detected in color images, not in depth images")
        found = await self.workers.run(_find_blobs, frame.pixels, self._color_range, self._min_size)
        return VisionResult(self.to_detections(found, frame))


def _parse_hue(text: str) -> float | None:
    """Return the hue of `#rrggbb`, or None for a shade of gray."""
    red, green, blue = (int(text[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return colorsys.rgb_to_hsv(red, green, blue)[0] if len({red, green, blue}) > 1 else None


def _nearest_color_name(hue: float) -> str:
    degrees = hue * 360
    distances = [min(abs(degrees - each), 360 - abs(degrees - each)) for each in _COLOR_HUES]
    return _COLOR_NAMES[int(np.argmin(distances))]


def _find_blobs(pixels: Pixels, color: _ColorRange, min_size: int) -> Candidates:
    """Return a bounding box per blob; the score is the fraction of the box that the blob fills.
    Pure, but slow: run it in a thread."""
    hsv = cv2.cvtColor(pixels, cv2.COLOR_BGR2HSV)
    # Hue is circular: 179 and 0 are neighbors.
    distance = np.abs(hsv[..., 0].astype(np.int16) - round(color.hue * _HUE_STEPS) % _HUE_STEPS)
    matches_hue = np.minimum(distance, _HUE_STEPS - distance) <= color.tolerance * _HUE_STEPS
    is_saturated = hsv[..., 1] >= color.min_saturation * 255
    is_bright = hsv[..., 2] >= color.min_value * 255
    mask = (matches_hue & is_saturated & is_bright).astype(np.uint8)
    _, _, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    found = stats[1:]  # the first component is the background
    found = found[found[:, cv2.CC_STAT_AREA] >= min_size]
    left, top, wide, high, area = (found[:, column].astype(np.float32) for column in range(5))
    height, width = pixels.shape[:2]
    boxes = np.stack(
        (left / width, top / height, (left + wide) / width, (top + high) / height), axis=1
    )
    scores = area / (wide * high)
    order = np.argsort(-area, kind="stable")
    return Candidates(
        boxes[order].astype(np.float32),
        scores[order].astype(np.float32),
        np.zeros(len(order), np.int64),
    )

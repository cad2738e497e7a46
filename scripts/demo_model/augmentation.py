"""Data augmentation."""

from __future__ import annotations

from typing import cast

import cv2
import numpy as np
from scripts.demo_model.data import GroundTruth, Image, Sample, jpeg_roundtrip


def augment(sample: Sample, rng: np.random.Generator) -> Sample:
    flipped = _flip(sample, rng)
    image = _jitter_colors(flipped.image, rng)
    image = _blur(image, rng) if rng.uniform() < 0.35 else image
    image = _add_noise(image, rng) if rng.uniform() < 0.35 else image
    if rng.uniform() < 0.4:
        image = jpeg_roundtrip(image, int(rng.integers(45, 96)))
    return Sample(image, flipped.truth)


def _flip(sample: Sample, rng: np.random.Generator) -> Sample:
    image, boxes = sample.image, sample.truth.boxes
    if rng.uniform() < 0.5:
        image = image[:, ::-1]
        boxes = np.stack([boxes[:, 0], 1 - boxes[:, 3], boxes[:, 2], 1 - boxes[:, 1]], axis=1)
    if rng.uniform() < 0.5:
        image = image[::-1]
        boxes = np.stack([1 - boxes[:, 2], boxes[:, 1], 1 - boxes[:, 0], boxes[:, 3]], axis=1)
    return Sample(np.ascontiguousarray(image), GroundTruth(sample.truth.classes, boxes))


def _jitter_colors(image: Image, rng: np.random.Generator) -> Image:
    """Change brightness, contrast, gamma and color cast with one lookup table per channel."""
    levels = np.linspace(0, 1, 256)[:, None]
    contrast, lift = rng.uniform(0.75, 1.3), rng.uniform(-0.08, 0.08)
    gain = rng.uniform(0.7, 1.35) * rng.uniform(0.88, 1.12, 3)
    curve = np.clip(((levels ** rng.uniform(0.75, 1.35)) - 0.4) * contrast + 0.4 + lift, 0, 1)
    table = np.clip(255 * curve * gain, 0, 255).astype(np.uint8)
    image = cast("Image", cv2.LUT(image, table[:, None, :]))
    if rng.uniform() < 0.2:
        gray = cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
        share = rng.uniform()
        image = cast("Image", cv2.addWeighted(image, share, gray, 1 - share, 0))
    return image


def _blur(image: Image, rng: np.random.Generator) -> Image:
    return cast("Image", cv2.GaussianBlur(image, (0, 0), rng.uniform(0.3, 1.2)))


def _add_noise(image: Image, rng: np.random.Generator) -> Image:
    noise = rng.standard_normal(image.shape, np.float32) * np.float32(rng.uniform(2, 10))
    return np.clip(image + noise, 0, 255).astype(np.uint8)

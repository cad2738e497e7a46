"""Training of the network: targets of each cell, and the loss."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from scripts.demo_model.augmentation import augment
from scripts.demo_model.data import Dataset, GroundTruth, Sample
from scripts.demo_model.layers import COLUMNS, ROWS, Floats, cell_centers
from scripts.demo_model.network import CLASSES, Network
from torch import Tensor
from torch.nn import functional

BATCH = 16
_SIGMA_SHARE = 0.11
"""Standard deviation of the Gaussian around a center, relative to the part's size."""
_PLATEAU_RADIUS = 0.7
"""Radius in cells within which the heat is 1. If a center lies between cells, each of them is
correct. The cells are adjacent, so only one of them is a peak."""
_BOX_LOSS_WEIGHT = 1.0
_REPORT_EVERY = 100


@dataclass(frozen=True, slots=True)
class Batch:
    images: Tensor
    heatmap: Tensor
    """Heat of each class and cell: 1 at a center, decreasing with distance."""
    boxes: Tensor
    """Offset to the center and logarithm of the size, for each cell near a center."""
    box_mask: Tensor
    """The mask: 1 for cells near a center, and 0 for all others."""


def train(pictures: Dataset, steps: int, seed: int, threads: int) -> Network:
    torch.manual_seed(seed)
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    cv2.setNumThreads(1)
    network = Network()
    optimizer = torch.optim.AdamW(network.parameters(), lr=4e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=4e-3, total_steps=steps, pct_start=0.15
    )
    started, mean_loss = time.monotonic(), math.nan
    for step, batch in enumerate(_iter_batches(pictures, steps, seed), 1):
        loss = compute_loss(network(batch.images), batch)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), 10.0)
        optimizer.step()
        schedule.step()
        mean_loss = loss.item() if math.isnan(mean_loss) else 0.98 * mean_loss + 0.02 * loss.item()
        if step % _REPORT_EVERY == 0:
            print(
                f"step {step} of {steps}: loss {mean_loss:.3f}, "
                f"{time.monotonic() - started:.0f}s elapsed",
                flush=True,
            )
    network.eval()
    return network


def compute_loss(outputs: Tensor, batch: Batch) -> Tensor:
    centres = batch.heatmap.eq(1).sum().clamp(min=1)
    boxes = functional.smooth_l1_loss(outputs[:, CLASSES:], batch.boxes, reduction="none", beta=0.1)
    boxes = (boxes * batch.box_mask).sum() / batch.box_mask.sum().clamp(min=1)
    return _focal_loss(outputs[:, :CLASSES], batch.heatmap) / centres + _BOX_LOSS_WEIGHT * boxes


def _focal_loss(logits: Tensor, heat: Tensor) -> Tensor:
    """Return the focal loss, reduced near a center and where the network is already confident."""
    chance = torch.sigmoid(logits)
    at_centre = functional.logsigmoid(logits) * (1 - chance) ** 2 * heat.eq(1)
    elsewhere = functional.logsigmoid(-logits) * chance**2 * (1 - heat) ** 4
    return -(at_centre + elsewhere).sum()


def _iter_batches(pictures: Dataset, steps: int, seed: int) -> Iterator[Batch]:
    """Yield batches and prepare each one during the training step of the previous one."""
    order = _shuffle_order(len(pictures), steps, seed)
    with ThreadPoolExecutor(1) as worker:
        coming = worker.submit(_make_batch, pictures, order[0], (seed, 0))
        for step in range(1, steps):
            batch = coming.result()
            coming = worker.submit(_make_batch, pictures, order[step], (seed, step))
            yield batch
        yield coming.result()


def _shuffle_order(count: int, steps: int, seed: int) -> NDArray[np.int64]:
    """Return an order that uses every image once before it repeats any."""
    rng = np.random.default_rng(seed)
    rounds = math.ceil(steps * BATCH / count)
    order = np.concatenate([rng.permutation(count) for _ in range(rounds)])
    return order[: steps * BATCH].reshape(steps, BATCH)


def _make_batch(pictures: Dataset, chosen: NDArray[np.int64], seed: tuple[int, int]) -> Batch:
    rng = np.random.default_rng(seed)
    samples = [augment(Sample(pictures.images[i], pictures.truths[i]), rng) for i in chosen]
    targets = [_make_target(sample.truth) for sample in samples]
    heat, boxes, near = (torch.from_numpy(np.stack(each)) for each in zip(*targets, strict=True))
    images = torch.from_numpy(np.stack([sample.image for sample in samples]))
    return Batch(images, heat, boxes, near)


def _make_target(truth: GroundTruth) -> tuple[Floats, Floats, Floats]:
    """Return the heat, the boxes and the mask of each cell; see Batch."""
    heat = np.zeros((CLASSES, ROWS, COLUMNS), np.float32)
    boxes = np.zeros((4, ROWS, COLUMNS), np.float32)
    near = np.zeros((1, ROWS, COLUMNS), np.float32)
    cells = cell_centers().reshape(ROWS, COLUMNS, 2)
    scale = np.array([ROWS, COLUMNS], np.float32)
    for kind, box in zip(truth.classes, truth.boxes, strict=True):
        size = (box[2:] - box[:2]) * scale
        center = (box[2:] + box[:2]) / 2 * scale
        row, column = np.minimum(center, scale - 1).astype(int)
        away = np.maximum(np.abs(cells - center) - _PLATEAU_RADIUS, 0) / np.maximum(
            _SIGMA_SHARE * size, 0.5
        )
        hill = np.exp(-0.5 * (away**2).sum(axis=2))
        heat[kind] = np.maximum(heat[kind], hill)
        around = slice(max(row - 1, 0), row + 2), slice(max(column - 1, 0), column + 2)
        boxes[:2][:, *around] = (center - cells[around]).transpose(2, 0, 1)
        boxes[2:][:, *around] = np.log(size)[:, None, None]
        near[:, *around] = 1
    return heat, boxes, near

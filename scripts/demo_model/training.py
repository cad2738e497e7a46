"""How the network learns: what it should say of each cell, and how far off that it is."""

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
from scripts.demo_model.augmentation import augmented
from scripts.demo_model.data import Pictures, Sample, Truth
from scripts.demo_model.layers import COLUMNS, ROWS, Floats, cell_centres
from scripts.demo_model.network import CLASSES, Network
from torch import Tensor
from torch.nn import functional

BATCH = 16
_SPREAD = 0.11
"""Of the hill around a centre, as a share of the part's size."""
_TOP = 0.7
"""Of the hill, in cells from the centre: where it lies between cells, each of them is right. They
touch each other, so that still only one is a peak."""
_WEIGHT_OF_BOXES = 1.0
_REPORT_EVERY = 100


@dataclass(frozen=True, slots=True)
class Batch:
    images: Tensor
    heat: Tensor
    """Of each class and cell; 1 at a centre, and less further away."""
    boxes: Tensor
    """The way to the centre and the logarithm of the size, of each cell near a centre."""
    near: Tensor
    """1 for these cells, and 0 for all others."""


def train(pictures: Pictures, steps: int, seed: int, threads: int) -> Network:
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
    for step, batch in enumerate(_batches(pictures, steps, seed), 1):
        loss = loss_of(network(batch.images), batch)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), 10.0)
        optimizer.step()
        schedule.step()
        mean_loss = loss.item() if math.isnan(mean_loss) else 0.98 * mean_loss + 0.02 * loss.item()
        if step % _REPORT_EVERY == 0:
            print(
                f"step {step} of {steps}: loss {mean_loss:.3f}, "
                f"{time.monotonic() - started:.0f} s so far",
                flush=True,
            )
    network.eval()
    return network


def loss_of(outputs: Tensor, batch: Batch) -> Tensor:
    centres = batch.heat.eq(1).sum().clamp(min=1)
    boxes = functional.smooth_l1_loss(outputs[:, CLASSES:], batch.boxes, reduction="none", beta=0.1)
    boxes = (boxes * batch.near).sum() / batch.near.sum().clamp(min=1)
    return _focal(outputs[:, :CLASSES], batch.heat) / centres + _WEIGHT_OF_BOXES * boxes


def _focal(logits: Tensor, heat: Tensor) -> Tensor:
    """Forgives more the nearer a cell is to a centre, and the surer the network is already."""
    chance = torch.sigmoid(logits)
    at_centre = functional.logsigmoid(logits) * (1 - chance) ** 2 * heat.eq(1)
    elsewhere = functional.logsigmoid(-logits) * chance**2 * (1 - heat) ** 4
    return -(at_centre + elsewhere).sum()


def _batches(pictures: Pictures, steps: int, seed: int) -> Iterator[Batch]:
    """Each is made while the one before it is learnt from."""
    order = _order(len(pictures), steps, seed)
    with ThreadPoolExecutor(1) as worker:
        coming = worker.submit(_batch, pictures, order[0], (seed, 0))
        for step in range(1, steps):
            batch = coming.result()
            coming = worker.submit(_batch, pictures, order[step], (seed, step))
            yield batch
        yield coming.result()


def _order(count: int, steps: int, seed: int) -> NDArray[np.int64]:
    """Every picture once, before any of them twice."""
    rng = np.random.default_rng(seed)
    rounds = math.ceil(steps * BATCH / count)
    order = np.concatenate([rng.permutation(count) for _ in range(rounds)])
    return order[: steps * BATCH].reshape(steps, BATCH)


def _batch(pictures: Pictures, chosen: NDArray[np.int64], seed: tuple[int, int]) -> Batch:
    rng = np.random.default_rng(seed)
    samples = [augmented(Sample(pictures.images[i], pictures.truths[i]), rng) for i in chosen]
    targets = [_target(sample.truth) for sample in samples]
    heat, boxes, near = (torch.from_numpy(np.stack(each)) for each in zip(*targets, strict=True))
    images = torch.from_numpy(np.stack([sample.image for sample in samples]))
    return Batch(images, heat, boxes, near)


def _target(truth: Truth) -> tuple[Floats, Floats, Floats]:
    """The heat, the boxes and the nearness of each cell; see Batch."""
    heat = np.zeros((CLASSES, ROWS, COLUMNS), np.float32)
    boxes = np.zeros((4, ROWS, COLUMNS), np.float32)
    near = np.zeros((1, ROWS, COLUMNS), np.float32)
    cells = cell_centres().reshape(ROWS, COLUMNS, 2)
    scale = np.array([ROWS, COLUMNS], np.float32)
    for kind, box in zip(truth.classes, truth.boxes, strict=True):
        size = (box[2:] - box[:2]) * scale
        centre = (box[2:] + box[:2]) / 2 * scale
        row, column = np.minimum(centre, scale - 1).astype(int)
        away = np.maximum(np.abs(cells - centre) - _TOP, 0) / np.maximum(_SPREAD * size, 0.5)
        hill = np.exp(-0.5 * (away**2).sum(axis=2))
        heat[kind] = np.maximum(heat[kind], hill)
        around = slice(max(row - 1, 0), row + 2), slice(max(column - 1, 0), column + 2)
        boxes[:2][:, *around] = (centre - cells[around]).transpose(2, 0, 1)
        boxes[2:][:, *around] = np.log(size)[:, None, None]
        near[:, *around] = 1
    return heat, boxes, near

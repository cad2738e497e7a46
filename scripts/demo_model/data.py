"""Training images of the conveyor in the network's input format, with their ground truth."""

from __future__ import annotations

import dataclasses
import hashlib
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.camera import conveyor
from cogwork.drivers.camera.conveyor import Conveyor, PartKind, Scene

Image = NDArray[np.uint8]
Boxes = NDArray[np.float32]
"""Rows of ymin, xmin, ymax and xmax, from 0 to 1."""
Classes = NDArray[np.int64]

HEIGHT, WIDTH = 240, 320
LABELS = tuple(kind.value for kind in PartKind)

_SIZES = ((640, 480), (640, 480), (320, 240), (1280, 720), (1280, 720), (800, 600), (640, 360))
_EMPTY_SHARE = 0.04
_MAX_TIME = 3600.0
_JPEG_SHARE = 0.4
_RENDER_PROCESSES = 2


@dataclass(frozen=True, slots=True)
class GroundTruth:
    classes: Classes
    boxes: Boxes


@dataclass(frozen=True, slots=True)
class Sample:
    image: Image
    """RGB image in the network's input size."""
    truth: GroundTruth


@dataclass(frozen=True, slots=True)
class Dataset:
    images: NDArray[np.uint8]
    truths: list[GroundTruth]

    def __len__(self) -> int:
        return len(self.truths)


def make_ground_truth(scene: Scene, width: int, height: int) -> GroundTruth:
    boxes = [
        (part.box.y_min, part.box.x_min, part.box.y_max, part.box.x_max)
        for part in scene.ground_truth
    ]
    classes = [LABELS.index(part.kind) for part in scene.ground_truth]
    sides = np.array([height, width] * 2, np.float32)
    shares = np.array(boxes, np.float32).reshape(-1, 4) / sides
    return GroundTruth(np.array(classes, np.int64), shares)


def to_network_input(picture: Image, interpolation: int = cv2.INTER_AREA) -> Image:
    """Convert a BGR camera image to the network's input, stretched if necessary."""
    small = cv2.resize(picture, (WIDTH, HEIGHT), interpolation=interpolation)
    return cast("Image", cv2.cvtColor(small, cv2.COLOR_BGR2RGB))


def jpeg_roundtrip(picture: Image, quality: int) -> Image:
    coded = cv2.imencode(".jpg", picture, (cv2.IMWRITE_JPEG_QUALITY, quality))[1]
    return cast("Image", cv2.imdecode(coded, cv2.IMREAD_COLOR))


def load_training_data(seeds: int, moments: int) -> Dataset:
    """Render samples at several moments of each seed, and cache them in the temporary directory."""
    path = Path(tempfile.gettempdir()) / f"cogwork-demo-{_fingerprint(seeds, moments)}.npz"
    if not path.exists():
        samples = list(_render_samples(seeds, moments))
        counts = [len(sample.truth.classes) for sample in samples]
        unfinished = path.with_suffix(".unfinished.npz")
        np.savez(
            unfinished,
            images=np.stack([sample.image for sample in samples]),
            classes=np.concatenate([sample.truth.classes for sample in samples]),
            boxes=np.concatenate([sample.truth.boxes for sample in samples]),
            counts=np.array(counts),
        )
        unfinished.rename(path)
    return _load_cache(path)


def _load_cache(path: Path) -> Dataset:
    with np.load(path) as kept:
        ends = np.cumsum(kept["counts"])[:-1]
        pairs = zip(np.split(kept["classes"], ends), np.split(kept["boxes"], ends), strict=True)
        return Dataset(kept["images"], [GroundTruth(*pair) for pair in pairs])


def _fingerprint(seeds: int, moments: int) -> str:
    """Return a hash of everything that affects the images."""
    folder = Path(conveyor.__file__).parent
    sources = [Path(__file__), *sorted(folder.glob("conveyor*.py"))]
    text = b"".join(source.read_bytes() for source in sources)
    return hashlib.sha256(text + f"{seeds}x{moments}".encode()).hexdigest()[:12]


def _render_samples(seeds: int, moments: int) -> Iterator[Sample]:
    with ProcessPoolExecutor(_RENDER_PROCESSES) as pool:
        for done, samples in enumerate(pool.map(_render_seed, range(seeds), [moments] * seeds), 1):
            yield from samples
            if done % 50 == 0:
                print(f"rendered {done} of {seeds} conveyors", flush=True)


def _render_seed(seed: int, moments: int) -> list[Sample]:
    cv2.setNumThreads(1)
    rng = np.random.default_rng((seed, 77))
    width, height = _SIZES[rng.integers(len(_SIZES))]
    belt = Conveyor(seed, width, height)
    return [_render_sample(belt, rng) for _ in range(moments)]


def _render_sample(belt: Conveyor, rng: np.random.Generator) -> Sample:
    scene = belt.scene_at(rng.uniform(0, _MAX_TIME))
    if rng.uniform() < _EMPTY_SHARE:
        scene = dataclasses.replace(scene, parts=())
    picture = belt.render(scene)[0]
    if rng.uniform() < _JPEG_SHARE:
        picture = jpeg_roundtrip(picture, int(rng.integers(50, 96)))
    # Vary the interpolation, because not every client averages when it downsizes an image.
    interpolation = cv2.INTER_AREA if rng.uniform() < 0.75 else cv2.INTER_LINEAR
    view = belt.intrinsics
    return Sample(
        to_network_input(picture, interpolation), make_ground_truth(scene, view.width, view.height)
    )

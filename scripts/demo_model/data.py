"""Pictures of the conveyor as the network takes them, with what is true of each."""

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
from cogwork.drivers.camera.conveyor import Conveyor, Kind, Scene

Image = NDArray[np.uint8]
Boxes = NDArray[np.float32]
"""Rows of ymin, xmin, ymax and xmax, from 0 to 1."""
Classes = NDArray[np.int64]

HEIGHT, WIDTH = 240, 320
LABELS = tuple(kind.value for kind in Kind)

_SIZES = ((640, 480), (640, 480), (320, 240), (1280, 720), (1280, 720), (800, 600), (640, 360))
_EMPTY_BELTS = 0.04
_LONGEST_RUN = 3600.0
_JPEG_AT_SOURCE = 0.4
_RENDERERS = 2


@dataclass(frozen=True, slots=True)
class Truth:
    classes: Classes
    boxes: Boxes


@dataclass(frozen=True, slots=True)
class Sample:
    image: Image
    """As the network takes it: red, green, blue."""
    truth: Truth


@dataclass(frozen=True, slots=True)
class Pictures:
    images: NDArray[np.uint8]
    truths: list[Truth]

    def __len__(self) -> int:
        return len(self.truths)


def truth_of(scene: Scene, width: int, height: int) -> Truth:
    boxes = [
        (part.box.y_min, part.box.x_min, part.box.y_max, part.box.x_max) for part in scene.truth
    ]
    classes = [LABELS.index(part.kind) for part in scene.truth]
    sides = np.array([height, width] * 2, np.float32)
    shares = np.array(boxes, np.float32).reshape(-1, 4) / sides
    return Truth(np.array(classes, np.int64), shares)


def as_input(picture: Image, interpolation: int = cv2.INTER_AREA) -> Image:
    """What a camera gives (blue, green, red) as the network takes it; stretched if need be."""
    small = cv2.resize(picture, (WIDTH, HEIGHT), interpolation=interpolation)
    return cast("Image", cv2.cvtColor(small, cv2.COLOR_BGR2RGB))


def through_jpeg(picture: Image, quality: int) -> Image:
    coded = cv2.imencode(".jpg", picture, (cv2.IMWRITE_JPEG_QUALITY, quality))[1]
    return cast("Image", cv2.imdecode(coded, cv2.IMREAD_COLOR))


def training_pictures(seeds: int, moments: int) -> Pictures:
    """So many moments of each seed; rendered once, and kept in the temporary directory."""
    path = Path(tempfile.gettempdir()) / f"cogwork-demo-{_fingerprint(seeds, moments)}.npz"
    if not path.exists():
        samples = list(_rendered(seeds, moments))
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
    return _kept(path)


def _kept(path: Path) -> Pictures:
    with np.load(path) as kept:
        ends = np.cumsum(kept["counts"])[:-1]
        pairs = zip(np.split(kept["classes"], ends), np.split(kept["boxes"], ends), strict=True)
        return Pictures(kept["images"], [Truth(*pair) for pair in pairs])


def _fingerprint(seeds: int, moments: int) -> str:
    """Changes with whatever changes the pictures."""
    folder = Path(conveyor.__file__).parent
    sources = [Path(__file__), *sorted(folder.glob("conveyor*.py"))]
    text = b"".join(source.read_bytes() for source in sources)
    return hashlib.sha256(text + f"{seeds}x{moments}".encode()).hexdigest()[:12]


def _rendered(seeds: int, moments: int) -> Iterator[Sample]:
    with ProcessPoolExecutor(_RENDERERS) as pool:
        for done, samples in enumerate(pool.map(_of_seed, range(seeds), [moments] * seeds), 1):
            yield from samples
            if done % 50 == 0:
                print(f"rendered {done} of {seeds} conveyors", flush=True)


def _of_seed(seed: int, moments: int) -> list[Sample]:
    cv2.setNumThreads(1)
    rng = np.random.default_rng((seed, 77))
    width, height = _SIZES[rng.integers(len(_SIZES))]
    belt = Conveyor(seed, width, height)
    return [_at(belt, rng) for _ in range(moments)]


def _at(belt: Conveyor, rng: np.random.Generator) -> Sample:
    scene = belt.scene(rng.uniform(0, _LONGEST_RUN))
    if rng.uniform() < _EMPTY_BELTS:
        scene = dataclasses.replace(scene, parts=())
    picture = belt.render(scene)[0]
    if rng.uniform() < _JPEG_AT_SOURCE:
        picture = through_jpeg(picture, int(rng.integers(50, 96)))
    # Not every client averages when it makes a picture smaller.
    interpolation = cv2.INTER_AREA if rng.uniform() < 0.75 else cv2.INTER_LINEAR
    view = belt.intrinsics
    return Sample(as_input(picture, interpolation), truth_of(scene, view.width, view.height))

"""Short generated videos: each frame has one color, which encodes its number."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import av
import numpy as np
from av.video.stream import VideoStream
from numpy.typing import NDArray

PICTURES = 10
RATE = 20
_STEP = 25


def film(
    path: Path,
    *,
    pictures: int = PICTURES,
    rate: Fraction | int = RATE,
    size: tuple[int, int] = (64, 48),
    codec: str = "mpeg4",
    kind: str | None = None,
) -> Path:
    """`kind`: the format, where the suffix does not determine it."""
    width, height = size
    with av.open(str(path), "w", format=kind) as container:
        stream = cast("VideoStream", container.add_stream(codec, rate=rate))
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for number in range(pictures):
            frame = av.VideoFrame.from_ndarray(_picture(number, width, height), format="bgr24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def number_of(pixels: NDArray[Any]) -> int:
    """Return the number of the frame within its film."""
    return round(float(np.mean(pixels)) / _STEP) % PICTURES


def _picture(number: int, width: int, height: int) -> NDArray[np.uint8]:
    return np.full((height, width, 3), number % PICTURES * _STEP, np.uint8)

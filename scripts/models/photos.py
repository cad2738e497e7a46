"""Convert photos to JPEG, and combine photos into a collage."""

from __future__ import annotations

import io

from PIL import Image

QUALITY = 90
WIDTH, HEIGHT, COLUMNS, ROWS = 1280, 720, 2, 2
GRAY = (96, 96, 96)


def convert_to_jpeg(photo: bytes) -> bytes:
    return _encode(_decode(photo))


def make_collage(*photos: bytes) -> bytes:
    """Place a photo in the center of each quadrant, as large as it fits."""
    collage = Image.new("RGB", (WIDTH, HEIGHT), GRAY)
    width, height = WIDTH // COLUMNS, HEIGHT // ROWS
    for number, photo in enumerate(map(_decode, photos)):
        factor = min(width / photo.width, height / photo.height)
        size = round(photo.width * factor), round(photo.height * factor)
        left = number % COLUMNS * width + (width - size[0]) // 2
        upper = number // COLUMNS * height + (height - size[1]) // 2
        collage.paste(photo.resize(size, Image.Resampling.LANCZOS), (left, upper))
    return _encode(collage)


def _decode(photo: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(photo)).convert("RGB")
    image.info.clear()  # releases of Pillow differ in which metadata they write
    return image


def _encode(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=QUALITY)
    return file.getvalue()

"""Parsers of images and point clouds."""

from __future__ import annotations

import numpy as np
from tests.fuzz.target import ContractViolation, Target, allow_errors
from tests.support.media.pictures import (
    chunk,
    color_image,
    depth_image,
    encode_pixels,
    jpeg,
    png,
    progressive,
    with_exif,
)

from cogwork.core.errors import InvalidRequest
from cogwork.media.image import decode, decode_reduced
from cogwork.media.image import encode as encode_image
from cogwork.media.image_header import (
    DEPTH,
    RGBA,
    BadImage,
    peek_size,
    read_header,
)
from cogwork.resource.pcd_transform import transform_cloud
from cogwork.spatial.pose import Pose, Quaternion

_MAX_DECODED_PIXELS = 1 << 20
"""Larger images would only measure OpenCV."""


def target_header(data: bytes) -> None:
    peek_size(data)
    with allow_errors(data, BadImage):
        header = read_header(data)
        if not (0 < header.width <= 65_500 and 0 < header.height <= 65_500):
            raise ContractViolation(f"an image of {header.width}x{header.height}")


def target_pixels(data: bytes) -> None:
    with allow_errors(data, BadImage):
        header = read_header(data)
        if header.width * header.height > _MAX_DECODED_PIXELS:
            return
        pixels = decode(data, header)
        if pixels.shape[:2] != (header.height, header.width):
            raise ContractViolation(f"{pixels.shape} is not {header.width}x{header.height}")
        decode_reduced(data, header, header.width // 8, header.height // 8)


def target_pcd(data: bytes) -> None:
    still = Pose((0.0, 0.0, 0.0), Quaternion.identity())
    with allow_errors(data, InvalidRequest), np.errstate(all="ignore"):
        first = transform_cloud(data, still)
        try:
            second = transform_cloud(first, still)
        except InvalidRequest as error:
            raise ContractViolation("a moved point cloud cannot be read") from error
        if len(second) != len(first):
            raise ContractViolation("a point cloud changes size when it is moved")


def _image_seeds() -> list[bytes]:
    small = color_image(16, 8)
    return [
        encode_pixels(".jpg", small),
        progressive(small),
        with_exif(encode_pixels(".jpg", small), orientation=6, thumbnail=b"\xff\xd8\xff\xd9"),
        jpeg(8, 8, (128,)),
        encode_pixels(".png", small),
        encode_pixels(".png", depth_image(8, 4)),
        png(5, 7, bits=1, kind=3, extra=chunk(b"PLTE", bytes(6)) + chunk(b"tEXt", b"a\0b")),
        png(5, 7, interlaced=True),
        encode_image(small, RGBA),
        encode_image(depth_image(4, 4), DEPTH),
    ]


_FIELDS = (
    b"VERSION .7\nFIELDS x y z rgb\nSIZE 4 4 4 4\nTYPE F F F I\nCOUNT 1 1 1 1\nWIDTH 2\nHEIGHT 1\n"
)


def _cloud_seeds() -> list[bytes]:
    return [
        _FIELDS + b"VIEWPOINT 0 0 0 1 0 0 0\nPOINTS 2\nDATA binary\n" + bytes(32),
        _FIELDS + b"POINTS 2\nDATA ascii\n1 2 3 4\n-1.5 2e3 nan 255\n",
        b"# .PCD\nFIELDS x y z _ n\nSIZE 8 8 8 1 2\nTYPE F F F U U\nCOUNT 1 1 1 4 2\nPOINTS 1\n"
        b"DATA binary\n" + bytes(32),
    ]


_PARTS = (
    "cogwork.media.image_header",
    "cogwork.media.image:decode",
    "cogwork.media.image:decode_reduced",
    "cogwork.media.image:_decode_compressed",
    "cogwork.media.image:_decode_with_cv2",
    "cogwork.media.image:_strip_chunks",
    "cogwork.media.image:_check_compressed_size",
)
_MARKERS = (b"\xff\xd8", b"\xff\xd9", b"\xff\xda", b"\xff\xc0", b"\xff\xc2", b"\xff\xff", b"IHDR",
            b"IDAT", b"IEND", b"\x89PNG\r\n\x1a\n", b"RGBA", b"DEPTHMAP")  # fmt: skip

TARGETS = (
    Target("images.header", target_header, _image_seeds, _PARTS[:1], _MARKERS),
    Target("images.pixels", target_pixels, _image_seeds, _PARTS, _MARKERS),
    Target(
        "images.pcd",
        target_pcd,
        _cloud_seeds,
        ("cogwork.resource.pcd_transform",),
        (b"FIELDS", b"SIZE", b"TYPE", b"COUNT", b"POINTS", b"DATA binary\n", b"DATA ascii\n", b" 8",
         b" U", b" I", b"nan", b"1e400", b"-1", b"99999999999999999999"),
    ),
)  # fmt: skip

from __future__ import annotations

import struct
import sys
import time
import zlib
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.support.media.pictures import (
    chunk,
    color_image,
    depth_image,
    encode_pixels,
    jpeg,
    packed_zeros,
    png,
    progressive,
    with_claimed_size,
    with_exif,
    with_scans,
)
from tests.support.models.real_models import is_here, photo_path, photo_paths
from tests.support.sizes import size

from cogwork.media.image import (
    COLOR_TYPES,
    DEPTH_TYPES,
    NoSuchEncoding,
    decode,
    encode,
    is_depth,
)
from cogwork.media.image_header import DEPTH, JPEG, PNG, RGBA, BadImage, read_header
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # the SDK must be imported first
from viam.media.video import CameraMimeType, ViamImage  # noqa: E402

# Red, green, blue and white; in OpenCV's order.
FOUR_PIXELS = np.array([[[0, 0, 255], [0, 255, 0]], [[255, 0, 0], [255, 255, 255]]], np.uint8)
FOUR_PIXELS_RGBA = bytes.fromhex(
    "52474241 00000002 00000002 ff0000ff 00ff00ff 0000ffff ffffffff".replace(" ", "")
)
DISTANCES = np.array([[0, 1, 258], [65535, 1000, 4660]], np.uint16)
DISTANCES_DEPTH = bytes.fromhex(
    "44455054484d4150 0000000000000003 0000000000000002 000000010102 ffff03e81234".replace(" ", "")
)


def mean_difference(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Return the mean difference of two images."""
    assert one.shape == other.shape
    return float(np.abs(one.astype(int) - other.astype(int)).mean())


class TestMimeTypes:
    def test_rgba_bytes(self) -> None:
        assert encode(FOUR_PIXELS, RGBA) == FOUR_PIXELS_RGBA
        assert np.array_equal(decode(FOUR_PIXELS_RGBA), FOUR_PIXELS)

    def test_depth_bytes(self) -> None:
        assert encode(DISTANCES, DEPTH) == DISTANCES_DEPTH
        found = decode(DISTANCES_DEPTH)
        assert np.array_equal(found, DISTANCES)
        assert found.dtype == np.uint16  # in native byte order

    def test_depth_is_readable_by_the_sdk(self) -> None:
        image = ViamImage(encode(DISTANCES, DEPTH), CameraMimeType.VIAM_RAW_DEPTH)
        assert image.bytes_to_depth_array() == DISTANCES.tolist()
        assert (image.width, image.height) == (3, 2)

    def test_rgba_is_readable_by_the_sdk(self) -> None:
        image = ViamImage(encode(color_image(96, 64), RGBA), CameraMimeType.VIAM_RGBA)
        assert (image.width, image.height) == (96, 64)

    def test_rgba_is_readable_by_the_sdk_with_pillow(self) -> None:
        pytest.importorskip("PIL")
        from viam.media.utils.pil import viam_to_pil_image

        image = viam_to_pil_image(ViamImage(FOUR_PIXELS_RGBA, CameraMimeType.VIAM_RGBA))
        assert np.array_equal(np.asarray(image.convert("RGB"))[..., ::-1], FOUR_PIXELS)

    @pytest.mark.parametrize("mime_type", COLOR_TYPES)
    def test_color_image_survives_a_round_trip(self, mime_type: str) -> None:
        pixels = color_image(97, 63)
        data = encode(pixels, mime_type)
        assert read_header(data).mime_type == mime_type
        found = decode(data)
        assert mean_difference(found, pixels) < (2 if mime_type == JPEG else 1e-9)
        assert (found.dtype.name, is_depth(found)) == ("uint8", False)

    @pytest.mark.parametrize("mime_type", DEPTH_TYPES)
    def test_depth_image_survives_a_round_trip(self, mime_type: str) -> None:
        data = encode(depth_image(97, 63), mime_type)
        assert read_header(data).mime_type == mime_type
        found = decode(data)
        assert np.array_equal(found, depth_image(97, 63))
        assert (found.dtype.name, is_depth(found)) == ("uint16", True)

    @pytest.mark.parametrize("mime_type", [JPEG, PNG])
    def test_encoded_image_decodes_like_opencv(self, mime_type: str) -> None:
        data = encode(color_image(), mime_type)
        opencv_pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
        assert opencv_pixels is not None
        assert np.array_equal(decode(data), opencv_pixels)

    @pytest.mark.parametrize(
        ("pixels", "mime_type", "words"),
        [
            (
                color_image(),
                DEPTH,
                'a color image cannot be encoded as "image/vnd.viam.dep"; request image/jpeg or',
            ),
            (color_image(), "image/webp", 'a color image cannot be encoded as "image/webp"'),
            (color_image(), "", 'a color image cannot be encoded as ""'),
            (
                depth_image(),
                JPEG,
                'a depth image cannot be encoded as "image/jpeg"; request image/vnd.viam.dep or',
            ),
            (depth_image(), RGBA, 'a depth image cannot be encoded as "image/vnd.viam.rgba"'),
        ],
    )
    def test_unsupported_encoding_raises(
        self, pixels: NDArray[Any], mime_type: str, words: str
    ) -> None:
        with pytest.raises(NoSuchEncoding) as error:
            encode(pixels, mime_type)
        assert words in str(error.value)

    def test_slices_of_images_are_encoded(self) -> None:
        part = color_image()[10:40, 20:70]
        assert np.array_equal(decode(encode(part, RGBA)), part)
        assert np.array_equal(decode(encode(depth_image()[::2, 3:], DEPTH)), depth_image()[::2, 3:])


class TestJpegs:
    @pytest.mark.parametrize("pixels", [color_image(), color_image(1, 1), color_image(17, 300)])
    def test_progressive_jpeg_is_decoded(self, pixels: NDArray[Any]) -> None:
        assert mean_difference(decode(progressive(pixels)), pixels) < 6

    @pytest.mark.parametrize("level", [1, 30, 128, 200, 255])
    def test_gray_jpeg_is_decoded(self, level: int) -> None:
        found = decode(jpeg(33, 17, (level,)))
        assert found.shape == (17, 33, 3)
        assert np.abs(found.astype(int) - level).max() <= 1

    def test_cmyk_jpeg_is_decoded(self) -> None:
        # In Adobe's form 255 means no ink: half cyan and magenta, no yellow.
        found = decode(jpeg(33, 17, (128, 128, 255, 255)))
        assert found.shape == (17, 33, 3)
        assert np.abs(found.astype(int) - (255, 128, 128)).max() <= 2

    def test_gray_jpeg_of_opencv_is_decoded(self) -> None:
        gray = cv2.cvtColor(color_image(), cv2.COLOR_BGR2GRAY)
        found = decode(encode_pixels(".jpg", gray))
        assert mean_difference(found, cv2.cvtColor(gray, cv2.COLOR_GRAY2BGR)) < 2

    def test_exif_thumbnail_is_ignored(self) -> None:
        thumbnail = encode_pixels(".jpg", color_image(32, 16, 50))
        data = encode_pixels(".jpg", color_image())
        assert np.array_equal(decode(with_exif(data, thumbnail=thumbnail)), decode(data))

    @pytest.mark.parametrize("orientation", range(1, 9))
    def test_exif_orientation_is_not_applied(self, orientation: int) -> None:
        data = encode_pixels(".jpg", color_image())
        rotated = with_exif(data, orientation=orientation)
        if orientation == 6:  # check that the EXIF orientation is valid
            opencv_pixels = cv2.imdecode(np.frombuffer(rotated, np.uint8), cv2.IMREAD_COLOR)
            assert opencv_pixels is not None
            assert opencv_pixels.shape == (96, 64, 3)
        assert np.array_equal(decode(rotated), decode(data))

    def test_photos_decode_like_opencv(self) -> None:
        for path in photo_paths():
            data = path.read_bytes()
            opencv_pixels = cv2.imread(str(path))
            assert opencv_pixels is not None
            assert np.array_equal(decode(data), opencv_pixels), path.name
            assert mean_difference(decode(encode(opencv_pixels, JPEG)), opencv_pixels) < 4, (
                path.name
            )


def png_rows(pixels: NDArray[Any]) -> bytes:
    """Return PNG rows: each starts with its filter byte, 16-bit numbers are big-endian."""
    big = pixels.astype(pixels.dtype.newbyteorder(">"))
    return b"".join(b"\0" + row.tobytes() for row in big)


class TestPngs:
    def test_16_bit_gray_png_is_a_depth_image(self) -> None:
        found = decode(png(3, 2, 16, 0, rows=png_rows(DISTANCES)))
        assert np.array_equal(found, DISTANCES)
        assert found.dtype == np.uint16

    def test_depth_png_ignores_gamma_and_orientation(self) -> None:
        extra = chunk(b"gAMA", struct.pack(">I", 45455)) + chunk(b"tRNS", b"\0\1")
        extra += chunk(b"eXIf", b"MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0")
        assert np.array_equal(
            decode(png(3, 2, 16, 0, rows=png_rows(DISTANCES), extra=extra)), DISTANCES
        )

    def test_8_bit_gray_png_is_a_color_image(self) -> None:
        gray = np.array([[0, 100], [200, 255]], np.uint8)
        assert np.array_equal(decode(png(2, 2, 8, 0, rows=png_rows(gray))), np.stack([gray] * 3, 2))

    @pytest.mark.parametrize("bits", [1, 2, 4])
    def test_gray_png_of_few_bits_is_decoded(self, bits: int) -> None:
        found = decode(png(8, 1, bits, 0, rows=b"\0" + b"\xff" * bits))
        assert found.tolist() == [[[255] * 3] * 8]

    def test_palette_png_is_decoded(self) -> None:
        palette = chunk(b"PLTE", bytes((255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255)))
        numbers = np.array([[0, 1], [2, 3]], np.uint8)
        assert np.array_equal(
            decode(png(2, 2, 8, 3, rows=png_rows(numbers), extra=palette)), FOUR_PIXELS
        )
        clear = palette + chunk(b"tRNS", bytes((0, 0, 0, 0)))
        assert np.array_equal(
            decode(png(2, 2, 8, 3, rows=png_rows(numbers), extra=clear)), FOUR_PIXELS
        )

    @pytest.mark.parametrize("alpha", [0, 128, 255])
    def test_alpha_channel_is_dropped(self, alpha: int) -> None:
        rgba = np.dstack([FOUR_PIXELS[..., ::-1], np.full((2, 2), alpha, np.uint8)])
        assert np.array_equal(decode(png(2, 2, 8, 6, rows=png_rows(rgba))), FOUR_PIXELS)

    def test_16_bit_color_png_is_decoded(self) -> None:
        rgb = FOUR_PIXELS[..., ::-1].astype(np.uint16) * 257
        assert np.array_equal(decode(png(2, 2, 16, 2, rows=png_rows(rgb))), FOUR_PIXELS)

    def test_gray_alpha_png_is_decoded(self) -> None:
        both = np.array([[[200, 0]]], np.uint16) * 257
        assert decode(png(1, 1, 16, 4, rows=png_rows(both))).tolist() == [[[200] * 3]]

    def test_interlaced_png_is_decoded(self) -> None:
        assert decode(png(33, 17, interlaced=True)).shape == (17, 33, 3)

    def test_first_image_of_an_animation_is_decoded(self) -> None:
        control = struct.pack(">IIIIIHHBB", 0, 2, 2, 0, 0, 1, 10, 0, 0)
        extra = chunk(b"acTL", struct.pack(">II", 2, 0)) + chunk(b"fcTL", control)
        rgb = png_rows(FOUR_PIXELS[..., ::-1])
        assert np.array_equal(decode(png(2, 2, rows=rgb, extra=extra)), FOUR_PIXELS)

    def test_compressed_text_chunks_are_not_unpacked(self) -> None:
        packed = b"key\0\0" + packed_zeros(7_900_000)
        started = time.thread_time()
        decode(png(64, 64, extra=chunk(b"zTXt", packed) * 500))  # 4 GB
        assert time.thread_time() - started < 1

    def test_incompressible_png_is_decoded_fast(self) -> None:
        """All pixels are in one chunk, which is inspected first."""
        noise = np.random.default_rng(7).integers(0, 256, (1200, 1600, 3), np.uint8)
        data = png(1600, 1200, rows=png_rows(noise))
        assert len(data) > 5_000_000
        started = time.thread_time()
        assert np.array_equal(decode(data)[..., ::-1], noise)
        assert time.thread_time() - started < 1

    @pytest.mark.parametrize("side", [8, 640])
    def test_png_decompression_bomb_is_refused(self, side: int) -> None:
        bomb = packed_zeros(10_000_000_000)
        whole = png(side, side)
        begin = whole.index(b"IDAT") - 4
        data = whole[:begin] + chunk(b"IDAT", bomb) + whole[-12:]
        started = time.thread_time()
        with pytest.raises(BadImage, match="more data than its header"):
            decode(data)
        assert time.thread_time() - started < 1


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(png(6000, 6000), id="PNG"),
        pytest.param(png(6000, 6000, 1, 0), id="one bit"),
        pytest.param(jpeg(6000, 6000, (200,)), id="JPEG"),
    ],
)
def test_small_file_may_be_a_large_image(data: bytes) -> None:
    assert len(data) < 300_000
    assert decode(data).shape == (6000, 6000, 3)


def test_large_declared_size_with_little_data_is_fast() -> None:
    started = time.thread_time()
    found = decode_or_error(with_claimed_size(progressive(color_image()), 7680, 4320))
    assert isinstance(found, BadImage) or found.shape == (4320, 7680, 3)
    assert isinstance(
        decode_or_error(with_claimed_size(encode_pixels(".png", color_image()), 7680, 4320)),
        BadImage,
    )
    assert time.thread_time() - started < 4


def test_many_scans_take_bounded_time() -> None:
    data = jpeg(2000, 2000, (200, 128, 128), progressive=True, scans=100)
    started = time.thread_time()
    assert decode(data).shape == (2000, 2000, 3)
    assert time.thread_time() - started < 2


def decode_or_error(data: bytes) -> NDArray[Any] | BadImage:
    try:
        pixels = decode(data)
    except BadImage as error:
        return error
    header = read_header(data)
    assert pixels.shape[:2] == (header.height, header.width)
    assert (pixels.ndim, pixels.dtype.name) == ((2, "uint16") if header.is_depth else (3, "uint8"))
    return pixels


VALID_IMAGES = {
    "JPEG": encode_pixels(".jpg", color_image()),
    "progressive": progressive(color_image()),
    "scans": with_scans(progressive(color_image(32, 32)), 90),
    "exif": with_exif(
        encode_pixels(".jpg", color_image()), thumbnail=encode_pixels(".jpg", color_image(8, 8))
    ),
    "CMYK": jpeg(40, 24, (128, 200, 255, 1)),
    "PNG": encode_pixels(".png", color_image()),
    "depth": encode_pixels(".png", depth_image()),
    "interlaced": png(40, 24, 16, 6, interlaced=True),
    "palette": png(9, 9, 4, 3, extra=chunk(b"PLTE", bytes(48))),
    "RGBA": encode(color_image(8, 4), RGBA),
    "raw depth": encode(depth_image(8, 4), DEPTH),
}
if is_here("photos/chelsea.jpg"):
    VALID_IMAGES["photo"] = photo_path("chelsea.jpg").read_bytes()


@st.composite
def damaged_images(draw: st.DrawFn) -> bytes:
    data = bytearray(VALID_IMAGES[draw(st.sampled_from(sorted(VALID_IMAGES)))])
    # Most important fields are at the beginning.
    places = st.one_of(st.integers(0, min(700, len(data)) - 1), st.integers(0, len(data) - 1))
    for place, value in draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=6)):
        data[place] = value
    for place, new in draw(st.lists(st.tuples(places, st.binary(max_size=9)), max_size=2)):
        data[place:place] = new
    for place, length in draw(st.lists(st.tuples(places, st.integers(0, 99)), max_size=2)):
        del data[place : place + length]
    if draw(st.booleans()):
        del data[draw(places) :]
    return bytes(data)


def fix_checksums(data: bytes) -> bytes:
    """Fix the checksums of a PNG, so that the data behind them is parsed."""
    if not data.startswith(b"\x89PNG\r\n\x1a\n"):
        return data
    at, parts = 8, [data[:8]]
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        if at + 12 + length > len(data):
            break
        parts.append(chunk(data[at + 4 : at + 8], data[at + 8 : at + 8 + length]))
        at += 12 + length
    return b"".join((*parts, data[at:]))


@pytest.mark.parametrize("repair", [bytes, fix_checksums], ids=["damaged", "mended"])
def test_damaged_bytes_are_decoded_or_refused(
    repair: Callable[[bytes], bytes], capfd: pytest.CaptureFixture[str]
) -> None:
    @settings(max_examples=size(250, 5000))
    @given(damaged_images())
    @example(b"")
    def check_damaged(data: bytes) -> None:
        started = time.thread_time()
        decode_or_error(repair(data))
        assert time.thread_time() - started < 1

    check_damaged()


@settings(max_examples=size(100, 2000))
@given(st.binary(max_size=200), st.sampled_from(sorted(VALID_IMAGES)), st.integers(0, 60))
def test_any_bytes_after_a_valid_start_are_decoded_or_refused(
    data: bytes, kind: str, length: int
) -> None:
    decode_or_error(VALID_IMAGES[kind][:length] + data)


@pytest.mark.parametrize("kind", sorted(VALID_IMAGES))
def test_truncated_image_is_refused(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    whole = VALID_IMAGES[kind]
    assert not isinstance(decode_or_error(whole), BadImage)
    for length in range(0, len(whole), max(1, len(whole) // size(50, 2000))):
        assert isinstance(decode_or_error(whole[:length]), BadImage)


class TestLibraryOutput:
    """C libraries must print nothing about damaged images."""

    def stderr_of_decode(self, data: bytes, capfd: pytest.CaptureFixture[str]) -> str:
        sys.stderr.flush()
        capfd.readouterr()
        decode_or_error(data)
        return capfd.readouterr().err

    def test_opencv_prints_nothing(self, capfd: pytest.CaptureFixture[str]) -> None:
        whole = encode_pixels(".png", color_image())
        for length in (20, 33, 60, len(whole) - 20, len(whole) - 2):
            assert self.stderr_of_decode(whole[:length], capfd) == ""
        assert self.stderr_of_decode(encode_pixels(".jpg", color_image())[:-300], capfd) == ""

    def test_invalid_color_profile_prints_nothing(self, capfd: pytest.CaptureFixture[str]) -> None:
        bad = chunk(b"iCCP", b"k\0\0" + zlib.compress(b"no profile"))
        assert self.stderr_of_decode(png(5, 7, extra=bad), capfd) == ""

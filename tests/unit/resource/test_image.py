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
from tests.pictures import (
    chunk,
    claiming,
    colours,
    distances,
    jpeg,
    packed_zeros,
    png,
    progressive,
    with_exif,
    with_scans,
    written,
)
from tests.real_models import is_here, photo_path, photo_paths
from tests.sizes import size

from cogwork.resource import sdk
from cogwork.resource.image import (
    COLOR_TYPES,
    DEPTH_TYPES,
    NoSuchEncoding,
    decode,
    encode,
    is_depth,
)
from cogwork.resource.image_header import DEPTH, JPEG, PNG, RGBA, BadImage, read_header

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.media.video import CameraMimeType, ViamImage  # noqa: E402

# Red, green, blue and white; in OpenCV's order.
FOUR = np.array([[[0, 0, 255], [0, 255, 0]], [[255, 0, 0], [255, 255, 255]]], np.uint8)
RGBA_OF_FOUR = bytes.fromhex(
    "52474241 00000002 00000002 ff0000ff 00ff00ff 0000ffff ffffffff".replace(" ", "")
)
DISTANCES = np.array([[0, 1, 258], [65535, 1000, 4660]], np.uint16)
DEPTH_OF_DISTANCES = bytes.fromhex(
    "44455054484d4150 0000000000000003 0000000000000002 000000010102 ffff03e81234".replace(" ", "")
)


def differ(one: NDArray[Any], other: NDArray[Any]) -> float:
    """How much two pictures do, on average."""
    assert one.shape == other.shape
    return float(np.abs(one.astype(int) - other.astype(int)).mean())


class TestTypes:
    def test_rgba_by_hand(self) -> None:
        assert encode(FOUR, RGBA) == RGBA_OF_FOUR
        assert np.array_equal(decode(RGBA_OF_FOUR), FOUR)

    def test_depth_by_hand(self) -> None:
        assert encode(DISTANCES, DEPTH) == DEPTH_OF_DISTANCES
        found = decode(DEPTH_OF_DISTANCES)
        assert np.array_equal(found, DISTANCES)
        assert found.dtype == np.uint16  # in this computer's own order

    def test_depth_as_the_sdk_reads_it(self) -> None:
        image = ViamImage(encode(DISTANCES, DEPTH), CameraMimeType.VIAM_RAW_DEPTH)
        assert image.bytes_to_depth_array() == DISTANCES.tolist()
        assert (image.width, image.height) == (3, 2)

    def test_rgba_as_the_sdk_reads_it(self) -> None:
        image = ViamImage(encode(colours(96, 64), RGBA), CameraMimeType.VIAM_RGBA)
        assert (image.width, image.height) == (96, 64)

    def test_rgba_as_the_sdk_reads_it_with_pillow(self) -> None:
        pytest.importorskip("PIL")
        from viam.media.utils.pil import viam_to_pil_image

        image = viam_to_pil_image(ViamImage(RGBA_OF_FOUR, CameraMimeType.VIAM_RGBA))
        assert np.array_equal(np.asarray(image.convert("RGB"))[..., ::-1], FOUR)

    @pytest.mark.parametrize("mime_type", COLOR_TYPES)
    def test_colours_there_and_back(self, mime_type: str) -> None:
        pixels = colours(97, 63)
        data = encode(pixels, mime_type)
        assert read_header(data).mime_type == mime_type
        found = decode(data)
        assert differ(found, pixels) < (2 if mime_type == JPEG else 1e-9)
        assert (found.dtype.name, is_depth(found)) == ("uint8", False)

    @pytest.mark.parametrize("mime_type", DEPTH_TYPES)
    def test_distances_there_and_back(self, mime_type: str) -> None:
        data = encode(distances(97, 63), mime_type)
        assert read_header(data).mime_type == mime_type
        found = decode(data)
        assert np.array_equal(found, distances(97, 63))
        assert (found.dtype.name, is_depth(found)) == ("uint16", True)

    @pytest.mark.parametrize("mime_type", [JPEG, PNG])
    def test_opencv_reads_the_same(self, mime_type: str) -> None:
        data = encode(colours(), mime_type)
        theirs = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
        assert theirs is not None
        assert np.array_equal(decode(data), theirs)

    @pytest.mark.parametrize(
        ("pixels", "mime_type", "words"),
        [
            (
                colours(),
                DEPTH,
                'a color image cannot be encoded as "image/vnd.viam.dep"; request image/jpeg or',
            ),
            (colours(), "image/webp", 'a color image cannot be encoded as "image/webp"'),
            (colours(), "", 'a color image cannot be encoded as ""'),
            (
                distances(),
                JPEG,
                'a depth image cannot be encoded as "image/jpeg"; request image/vnd.viam.dep or',
            ),
            (distances(), RGBA, 'a depth image cannot be encoded as "image/vnd.viam.rgba"'),
        ],
    )
    def test_what_cannot_be(self, pixels: NDArray[Any], mime_type: str, words: str) -> None:
        with pytest.raises(NoSuchEncoding) as error:
            encode(pixels, mime_type)
        assert words in str(error.value)

    def test_slices_of_pictures_are_pictures(self) -> None:
        part = colours()[10:40, 20:70]
        assert np.array_equal(decode(encode(part, RGBA)), part)
        assert np.array_equal(decode(encode(distances()[::2, 3:], DEPTH)), distances()[::2, 3:])


class TestJpegs:
    @pytest.mark.parametrize("pixels", [colours(), colours(1, 1), colours(17, 300)])
    def test_progressive(self, pixels: NDArray[Any]) -> None:
        assert differ(decode(progressive(pixels)), pixels) < 6

    @pytest.mark.parametrize("level", [1, 30, 128, 200, 255])
    def test_grey(self, level: int) -> None:
        found = decode(jpeg(33, 17, (level,)))
        assert found.shape == (17, 33, 3)
        assert np.abs(found.astype(int) - level).max() <= 1

    def test_cmyk(self) -> None:
        # As Adobe writes it, 255 is no ink: cyan and magenta in the middle, no yellow.
        found = decode(jpeg(33, 17, (128, 128, 255, 255)))
        assert found.shape == (17, 33, 3)
        assert np.abs(found.astype(int) - (255, 128, 128)).max() <= 2

    def test_as_opencv_writes_it(self) -> None:
        grey = cv2.cvtColor(colours(), cv2.COLOR_BGR2GRAY)
        found = decode(written(".jpg", grey))
        assert differ(found, cv2.cvtColor(grey, cv2.COLOR_GRAY2BGR)) < 2

    def test_a_thumbnail_is_not_the_picture(self) -> None:
        thumbnail = written(".jpg", colours(32, 16, 50))
        data = written(".jpg", colours())
        assert np.array_equal(decode(with_exif(data, thumbnail=thumbnail)), decode(data))

    @pytest.mark.parametrize("orientation", range(1, 9))
    def test_orientation_is_left_to_whoever_shows_it(self, orientation: int) -> None:
        data = written(".jpg", colours())
        turned = with_exif(data, orientation=orientation)
        if orientation == 6:  # the note is a real one
            theirs = cv2.imdecode(np.frombuffer(turned, np.uint8), cv2.IMREAD_COLOR)
            assert theirs is not None
            assert theirs.shape == (96, 64, 3)
        assert np.array_equal(decode(turned), decode(data))

    def test_photos(self) -> None:
        for path in photo_paths():
            data = path.read_bytes()
            theirs = cv2.imread(str(path))
            assert theirs is not None
            assert np.array_equal(decode(data), theirs), path.name
            assert differ(decode(encode(theirs, JPEG)), theirs) < 4, path.name


def rows(pixels: NDArray[Any]) -> bytes:
    """As a PNG has them: each begins with its filter, numbers of 16 bits with the high byte."""
    big = pixels.astype(pixels.dtype.newbyteorder(">"))
    return b"".join(b"\0" + row.tobytes() for row in big)


class TestPngs:
    def test_distances(self) -> None:
        found = decode(png(3, 2, 16, 0, rows=rows(DISTANCES)))
        assert np.array_equal(found, DISTANCES)
        assert found.dtype == np.uint16

    def test_distances_are_not_turned_or_touched(self) -> None:
        extra = chunk(b"gAMA", struct.pack(">I", 45455)) + chunk(b"tRNS", b"\0\1")
        extra += chunk(b"eXIf", b"MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0")
        assert np.array_equal(
            decode(png(3, 2, 16, 0, rows=rows(DISTANCES), extra=extra)), DISTANCES
        )

    def test_grey_of_8_bits_is_a_colour(self) -> None:
        grey = np.array([[0, 100], [200, 255]], np.uint8)
        assert np.array_equal(decode(png(2, 2, 8, 0, rows=rows(grey))), np.stack([grey] * 3, 2))

    @pytest.mark.parametrize("bits", [1, 2, 4])
    def test_grey_of_few_bits(self, bits: int) -> None:
        found = decode(png(8, 1, bits, 0, rows=b"\0" + b"\xff" * bits))
        assert found.tolist() == [[[255] * 3] * 8]

    def test_a_palette(self) -> None:
        palette = chunk(b"PLTE", bytes((255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255)))
        numbers = np.array([[0, 1], [2, 3]], np.uint8)
        assert np.array_equal(decode(png(2, 2, 8, 3, rows=rows(numbers), extra=palette)), FOUR)
        clear = palette + chunk(b"tRNS", bytes((0, 0, 0, 0)))
        assert np.array_equal(decode(png(2, 2, 8, 3, rows=rows(numbers), extra=clear)), FOUR)

    @pytest.mark.parametrize("alpha", [0, 128, 255])
    def test_alpha_is_dropped(self, alpha: int) -> None:
        rgba = np.dstack([FOUR[..., ::-1], np.full((2, 2), alpha, np.uint8)])
        assert np.array_equal(decode(png(2, 2, 8, 6, rows=rows(rgba))), FOUR)

    def test_16_bits_a_colour(self) -> None:
        rgb = FOUR[..., ::-1].astype(np.uint16) * 257
        assert np.array_equal(decode(png(2, 2, 16, 2, rows=rows(rgb))), FOUR)

    def test_grey_and_alpha(self) -> None:
        both = np.array([[[200, 0]]], np.uint16) * 257
        assert decode(png(1, 1, 16, 4, rows=rows(both))).tolist() == [[[200] * 3]]

    def test_interlaced(self) -> None:
        assert decode(png(33, 17, interlaced=True)).shape == (17, 33, 3)

    def test_the_first_picture_of_an_animation(self) -> None:
        control = struct.pack(">IIIIIHHBB", 0, 2, 2, 0, 0, 1, 10, 0, 0)
        extra = chunk(b"acTL", struct.pack(">II", 2, 0)) + chunk(b"fcTL", control)
        rgb = rows(FOUR[..., ::-1])
        assert np.array_equal(decode(png(2, 2, rows=rgb, extra=extra)), FOUR)

    def test_what_packed_texts_hold_is_not_unpacked(self) -> None:
        packed = b"key\0\0" + packed_zeros(7_900_000)
        began = time.thread_time()
        decode(png(64, 64, extra=chunk(b"zTXt", packed) * 500))  # 4 GB
        assert time.thread_time() - began < 1

    def test_pixels_that_cannot_be_packed(self) -> None:
        """All in one chunk, and looked into first."""
        noise = np.random.default_rng(7).integers(0, 256, (1200, 1600, 3), np.uint8)
        data = png(1600, 1200, rows=rows(noise))
        assert len(data) > 5_000_000
        began = time.thread_time()
        assert np.array_equal(decode(data)[..., ::-1], noise)
        assert time.thread_time() - began < 1

    @pytest.mark.parametrize("side", [8, 640])
    def test_more_pixels_than_there_is_room_for(self, side: int) -> None:
        bomb = packed_zeros(10_000_000_000)
        whole = png(side, side)
        begin = whole.index(b"IDAT") - 4
        data = whole[:begin] + chunk(b"IDAT", bomb) + whole[-12:]
        began = time.thread_time()
        with pytest.raises(BadImage, match="more data than its header"):
            decode(data)
        assert time.thread_time() - began < 1


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(png(6000, 6000), id="PNG"),
        pytest.param(png(6000, 6000, 1, 0), id="one bit"),
        pytest.param(jpeg(6000, 6000, (200,)), id="JPEG"),
    ],
)
def test_a_small_file_may_be_a_large_picture(data: bytes) -> None:
    assert len(data) < 300_000
    assert decode(data).shape == (6000, 6000, 3)


def test_a_large_claim_with_little_behind_it() -> None:
    began = time.thread_time()
    found = outcome(claiming(progressive(colours()), 7680, 4320))
    assert isinstance(found, BadImage) or found.shape == (4320, 7680, 3)
    assert isinstance(outcome(claiming(written(".png", colours()), 7680, 4320)), BadImage)
    assert time.thread_time() - began < 4


def test_scans_of_a_large_picture_take_bounded_time() -> None:
    data = jpeg(2000, 2000, (200, 128, 128), progressive=True, scans=100)
    began = time.thread_time()
    assert decode(data).shape == (2000, 2000, 3)
    assert time.thread_time() - began < 2


def outcome(data: bytes) -> NDArray[Any] | BadImage:
    try:
        pixels = decode(data)
    except BadImage as error:
        return error
    header = read_header(data)
    assert pixels.shape[:2] == (header.height, header.width)
    assert (pixels.ndim, pixels.dtype.name) == ((2, "uint16") if header.is_depth else (3, "uint8"))
    return pixels


WHOLE = {
    "JPEG": written(".jpg", colours()),
    "progressive": progressive(colours()),
    "scans": with_scans(progressive(colours(32, 32)), 90),
    "exif": with_exif(written(".jpg", colours()), thumbnail=written(".jpg", colours(8, 8))),
    "CMYK": jpeg(40, 24, (128, 200, 255, 1)),
    "PNG": written(".png", colours()),
    "depth": written(".png", distances()),
    "interlaced": png(40, 24, 16, 6, interlaced=True),
    "palette": png(9, 9, 4, 3, extra=chunk(b"PLTE", bytes(48))),
    "RGBA": encode(colours(8, 4), RGBA),
    "raw depth": encode(distances(8, 4), DEPTH),
}
if is_here("photos/chelsea.jpg"):
    WHOLE["photo"] = photo_path("chelsea.jpg").read_bytes()


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    data = bytearray(WHOLE[draw(st.sampled_from(sorted(WHOLE)))])
    # Most of what matters stands at the beginning.
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


def mended(data: bytes) -> bytes:
    """With the checksums of a PNG made right, so that what is behind them is read."""
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


@pytest.mark.parametrize("repair", [bytes, mended], ids=["damaged", "mended"])
def test_damaged_bytes_are_a_picture_or_refused(
    repair: Callable[[bytes], bytes], capfd: pytest.CaptureFixture[str]
) -> None:
    @settings(max_examples=size(250, 5000))
    @given(damaged())
    @example(b"")
    def whatever_comes(data: bytes) -> None:
        began = time.thread_time()
        outcome(repair(data))
        assert time.thread_time() - began < 1

    whatever_comes()


@settings(max_examples=size(100, 2000))
@given(st.binary(max_size=200), st.sampled_from(sorted(WHOLE)), st.integers(0, 60))
def test_any_bytes_behind_any_beginning(data: bytes, kind: str, length: int) -> None:
    outcome(WHOLE[kind][:length] + data)


@pytest.mark.parametrize("kind", sorted(WHOLE))
def test_every_beginning_of_a_picture(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    whole = WHOLE[kind]
    assert not isinstance(outcome(whole), BadImage)
    for length in range(0, len(whole), max(1, len(whole) // size(50, 2000))):
        assert isinstance(outcome(whole[:length]), BadImage)


class TestNoise:
    """What a damaged picture makes C libraries say reaches nobody's log; there should be little."""

    def said(self, data: bytes, capfd: pytest.CaptureFixture[str]) -> str:
        sys.stderr.flush()
        capfd.readouterr()
        outcome(data)
        return capfd.readouterr().err

    def test_opencv_itself_is_silent(self, capfd: pytest.CaptureFixture[str]) -> None:
        whole = written(".png", colours())
        for length in (20, 33, 60, len(whole) - 20, len(whole) - 2):
            assert self.said(whole[:length], capfd) == ""
        assert self.said(written(".jpg", colours())[:-300], capfd) == ""

    def test_texts_and_profiles_are_not_judged(self, capfd: pytest.CaptureFixture[str]) -> None:
        bad = chunk(b"iCCP", b"k\0\0" + zlib.compress(b"no profile"))
        assert self.said(png(5, 7, extra=bad), capfd) == ""

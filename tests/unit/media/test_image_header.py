from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator

import pytest
from tests.support.media.pictures import (
    chunk,
    color_image,
    depth_image,
    encode_pixels,
    jpeg,
    png,
    progressive,
    segment,
    with_claimed_size,
    with_exif,
    with_scans,
)
from tests.support.models.real_models import photo_paths

from cogwork.media.image import encode
from cogwork.media.image_header import (
    DEPTH,
    JPEG,
    MAX_BYTES,
    MAX_PIXELS,
    PNG,
    RGBA,
    BadImage,
    ImageHeader,
    peek_size,
    read_header,
)
from cogwork.resource.sdk import clean_import as sdk

PHOTO = encode_pixels(".jpg", color_image())
SMALL = encode_pixels(".jpg", color_image(32, 16))
MIB = 1 << 20


@pytest.fixture(autouse=True)
def limit_test_time() -> Iterator[None]:
    started = time.thread_time()
    yield
    assert time.thread_time() - started < 2


def refusal_message(data: bytes) -> str:
    with pytest.raises(BadImage) as error:
        read_header(data)
    return str(error.value)


@pytest.mark.parametrize(
    ("data", "header"),
    [
        pytest.param(PHOTO, ImageHeader(JPEG, 96, 64), id="baseline"),
        pytest.param(progressive(color_image()), ImageHeader(JPEG, 96, 64), id="progressive"),
        pytest.param(jpeg(33, 17, (128,)), ImageHeader(JPEG, 33, 17), id="grey"),
        pytest.param(jpeg(33, 17, (128,) * 4), ImageHeader(JPEG, 33, 17), id="CMYK"),
        pytest.param(with_exif(PHOTO, thumbnail=SMALL), ImageHeader(JPEG, 96, 64), id="thumbnail"),
        pytest.param(with_exif(PHOTO, orientation=6), ImageHeader(JPEG, 96, 64), id="turned"),
        pytest.param(b"\xff\xd8\xff\xff\xff" + PHOTO[2:], ImageHeader(JPEG, 96, 64), id="filling"),
        pytest.param(PHOTO + bytes(3 * MIB), ImageHeader(JPEG, 96, 64), id="zeros behind"),
        pytest.param(png(5, 7), ImageHeader(PNG, 5, 7), id="PNG"),
        pytest.param(png(5, 7, 16, 2), ImageHeader(PNG, 5, 7), id="16 bits of colour"),
        pytest.param(png(5, 7, 16, 4), ImageHeader(PNG, 5, 7), id="16 bits of grey and alpha"),
        pytest.param(png(5, 7, 16, 0), ImageHeader(PNG, 5, 7, is_depth=True), id="16 bits of grey"),
        pytest.param(png(5, 7) + b"more" * 100, ImageHeader(PNG, 5, 7), id="behind a PNG"),
        pytest.param(encode(color_image(), RGBA), ImageHeader(RGBA, 96, 64), id="RGBA"),
        pytest.param(
            encode(depth_image(), DEPTH), ImageHeader(DEPTH, 96, 64, is_depth=True), id="depth"
        ),
    ],
)
def test_header_has_type_and_size(data: bytes, header: ImageHeader) -> None:
    assert read_header(data) == header


def test_photo_headers_have_the_right_size() -> None:
    sizes = {path.name: read_header(path.read_bytes()) for path in photo_paths()}
    # The SDK reads its size as 34008x55340.
    assert sizes["rocket.jpg"] == ImageHeader(JPEG, 640, 427)
    assert sizes["collage_1280x720.jpg"] == ImageHeader(JPEG, 1280, 720)


class TestSizes:
    @pytest.mark.parametrize("small", [PHOTO, png(5, 7)], ids=["JPEG", "PNG"])
    @pytest.mark.parametrize(("width", "height"), [(0, 0), (0, 5), (5, 0)])
    def test_empty_image_is_refused(self, small: bytes, width: int, height: int) -> None:
        assert f"is empty: its header declares {width}x{height}" in refusal_message(
            with_claimed_size(small, width, height)
        )

    @pytest.mark.parametrize(
        "small",
        [PHOTO, progressive(color_image()), png(5, 7), png(5, 7, 16, 0)],
        ids=["JPEG", "progressive", "PNG", "depth"],
    )
    @pytest.mark.parametrize(
        ("width", "height"), [(65_500, 65_500), (65_535, 1), (1, 65_535), (20_000, 20_000)]
    )
    def test_too_large_declared_size_is_refused(
        self, small: bytes, width: int, height: int
    ) -> None:
        message = refusal_message(with_claimed_size(small, width, height))
        assert f"too large: {width}x{height}" in message
        assert "36 million" in message

    @pytest.mark.parametrize("size", [(7680, 4320), (8192, 4320), (4320, 8192), (6000, 6000)])
    def test_8k_image_is_accepted(self, size: tuple[int, int]) -> None:
        for small in (PHOTO, png(5, 7)):
            header = read_header(with_claimed_size(small, *size))
            assert (header.width, header.height) == size

    def test_pixel_limit(self) -> None:
        assert MAX_PIXELS == 6000 * 6000
        read_header(with_claimed_size(PHOTO, 6000, 6000))
        refusal_message(with_claimed_size(PHOTO, 6000, 6001))

    def test_too_many_bytes_are_refused(self) -> None:
        assert "too large" in refusal_message(bytes(MAX_BYTES + 1))

    @pytest.mark.parametrize(
        "whole",
        [encode(color_image(), RGBA), encode(depth_image(), DEPTH)],
        ids=["colour", "depth"],
    )
    @pytest.mark.parametrize("change", [-1, 1, -1000])
    def test_raw_image_with_wrong_length_is_refused(self, whole: bytes, change: int) -> None:
        data = whole[:change] if change < 0 else whole + b"x"
        assert f"but has {len(data)}" in refusal_message(data)

    def test_invalid_raw_headers_are_refused(self) -> None:
        assert "is empty" in refusal_message(b"RGBA" + bytes(8))
        assert "is empty" in refusal_message(b"DEPTHMAP" + bytes(16))
        assert "too large" in refusal_message(struct.pack(">8sQQ", b"DEPTHMAP", 1 << 63, 1 << 63))
        assert "too large" in refusal_message(struct.pack(">4sII", b"RGBA", 0xFFFFFFFF, 0xFFFFFFFF))
        assert "take 52 bytes" in refusal_message(struct.pack(">4sII", b"RGBA", 5, 2))


class TestInvalidImages:
    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (b"", "it has no data"),
            (b"GIF89a" + bytes(100), "appears to be a GIF"),
            (b"RIFF\x10\0\0\0WEBPVP8 ", "appears to be a WebP"),
            (b"%PDF-1.7\n", "appears to be a PDF"),
            (b"BM" + bytes(60), "appears to be a BMP"),
            (b"II*\0" + bytes(60), "appears to be a TIFF"),
            (b"<html></html>", "appears to be text"),
            (b'{"error": "busy"}', "appears to be text"),
            (b"\0\0\0\x1cftypisom", "a video"),
            (b"\0\0\0\1\x67\x42\0\x1f", "a video"),
            (b"hello", "not a JPEG or PNG (the data begins with 68 65 6c 6c)"),
            (b"\xff", "not a JPEG or PNG (the data begins with ff)"),
            (b"\x89PNG", "not a JPEG or PNG (the data begins with 89 50 4e 47)"),
            (b"RGB", "not a JPEG or PNG (the data begins with 52 47 42)"),
        ],
    )
    def test_other_file_types_are_named(self, data: bytes, words: str) -> None:
        assert words in refusal_message(data)

    @pytest.mark.parametrize(
        "whole",
        [
            PHOTO,
            progressive(color_image()),
            with_exif(PHOTO, thumbnail=SMALL),
            png(5, 7),
            encode(color_image(8, 4), RGBA),
            encode(depth_image(8, 4), DEPTH),
        ],
        ids=["JPEG", "progressive", "thumbnail", "PNG", "RGBA", "depth"],
    )
    def test_truncated_image_is_refused(self, whole: bytes) -> None:
        behind_the_end = whole.rfind(b"\xff\xd9") + 2 if whole.startswith(b"\xff") else len(whole)
        for length in range(8, behind_the_end):
            refusal_message(whole[:length])
        assert "truncated" in refusal_message(whole[:10])


class TestHostileJpegs:
    """JPEGs that are small or would keep a simple parser busy."""

    @pytest.mark.parametrize(
        ("start", "again", "times"),
        [
            pytest.param(b"\xff\xd8", b"\xff", 60 * MIB, id="filling"),
            pytest.param(b"\xff\xd8", b"\xff\xd0", 10 * MIB, id="restarts"),
            pytest.param(b"\xff\xd8", b"\xff\xe0\0\2", 10 * MIB, id="empty segments"),
            pytest.param(b"\xff\xd8", b"\xff\xe0\0\0", 10 * MIB, id="segments of no length"),
            pytest.param(b"\xff\xd8", b"\xff\xff\xd0", 10 * MIB, id="filled restarts"),
            pytest.param(PHOTO[:-2], b"\0", 60 * MIB, id="zeros without an end"),
            pytest.param(PHOTO[:-2], b"\xff\xda", 10 * MIB, id="scans"),
            pytest.param(PHOTO[:-2], b"\xff\xfe\0\2", 10 * MIB, id="comments"),
        ],
    )
    def test_hostile_jpeg_is_refused(self, start: bytes, again: bytes, times: int) -> None:
        refusal_message(start + again * times)

    def test_too_many_scans_are_refused(self) -> None:
        many = with_scans(progressive(color_image()), 1000)
        assert many.count(b"\xff\xda") == 1000
        assert "more than 100 scans" in refusal_message(many)
        read_header(with_scans(progressive(color_image()), 100))

    def test_large_image_may_have_fewer_scans(self) -> None:
        usual = progressive(color_image())
        read_header(with_claimed_size(with_scans(usual, 15), 7680, 4320))
        assert "more than 15 scans" in refusal_message(
            with_claimed_size(with_scans(usual, 16), 7680, 4320)
        )

    def test_end_marker_in_a_comment_does_not_hide_scans(self) -> None:
        usual = progressive(color_image())
        at = usual.index(b"\xff\xda")
        commented = usual[:at] + segment(0xFE, b"\xff\xd9") + usual[at:]
        assert "scans" in refusal_message(with_scans(commented, 1000))

    def test_data_after_the_photo_is_ignored(self) -> None:
        """Phones append videos, whose bytes may look like scans."""
        photo = with_claimed_size(PHOTO, 4000, 3000)
        assert read_header(photo + os.urandom(64) + b"\xff\xda" * 500).width == 4000
        assert read_header(photo + os.urandom(8 * MIB)).width == 4000


class TestHostilePngs:
    def test_endless_chunks_are_refused(self) -> None:
        start = png(5, 7)[:33]
        assert "more than 100000 chunks" in refusal_message(start + chunk(b"tEXt", b"") * 1_000_000)
        assert "truncated" in refusal_message(
            start + struct.pack(">I", 0xFFFFFFFF) + b"IDAT" + bytes(100)
        )
        assert "truncated" in refusal_message(start + chunk(b"tEXt", b"IEND") * 10)

    def test_png_without_header_is_refused(self) -> None:
        assert "truncated" in refusal_message(b"\x89PNG\r\n\x1a\n" + chunk(b"IDAT", bytes(50)))


class TestPeekSize:
    """The quick size lookup that the SDK's images use."""

    @pytest.mark.parametrize("kind", [".jpg", ".png"])
    def test_peek_size_returns_the_size(self, kind: str) -> None:
        assert peek_size(encode_pixels(kind, color_image(320, 200))) == (320, 200)

    def test_peek_size_of_invalid_data_is_none(self) -> None:
        for data in (b"", b"\xff\xd8", b"\xff\xd8" + b"\xff" * 50_000_000, b"text", bytes(100)):
            assert peek_size(data) is None

    def test_sdk_images_use_peek_size(self) -> None:
        assert sdk.VERSION
        from viam.media.video import CameraMimeType, ViamImage

        image = ViamImage(encode_pixels(".jpg", color_image(320, 200)), CameraMimeType.JPEG)
        assert (image.width, image.height) == (320, 200)

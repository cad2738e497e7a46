from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator

import pytest
from tests.pictures import (
    chunk,
    claiming,
    colours,
    distances,
    jpeg,
    png,
    progressive,
    segment,
    with_exif,
    with_scans,
    written,
)
from tests.real_models import photo_paths

from cogwork.resource import sdk
from cogwork.resource.image import encode
from cogwork.resource.image_header import (
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

PHOTO = written(".jpg", colours())
SMALL = written(".jpg", colours(32, 16))
MIB = 1 << 20


@pytest.fixture(autouse=True)
def quickly() -> Iterator[None]:
    began = time.thread_time()
    yield
    assert time.thread_time() - began < 2


def refusal(data: bytes) -> str:
    with pytest.raises(BadImage) as error:
        read_header(data)
    return str(error.value)


@pytest.mark.parametrize(
    ("data", "header"),
    [
        pytest.param(PHOTO, ImageHeader(JPEG, 96, 64), id="baseline"),
        pytest.param(progressive(colours()), ImageHeader(JPEG, 96, 64), id="progressive"),
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
        pytest.param(encode(colours(), RGBA), ImageHeader(RGBA, 96, 64), id="RGBA"),
        pytest.param(
            encode(distances(), DEPTH), ImageHeader(DEPTH, 96, 64, is_depth=True), id="depth"
        ),
    ],
)
def test_it_says_what_and_how_large(data: bytes, header: ImageHeader) -> None:
    assert read_header(data) == header


def test_photos() -> None:
    sizes = {path.name: read_header(path.read_bytes()) for path in photo_paths()}
    # The SDK takes it for 34008x55340.
    assert sizes["rocket.jpg"] == ImageHeader(JPEG, 640, 427)
    assert sizes["collage_1280x720.jpg"] == ImageHeader(JPEG, 1280, 720)


class TestSizes:
    @pytest.mark.parametrize("small", [PHOTO, png(5, 7)], ids=["JPEG", "PNG"])
    @pytest.mark.parametrize(("width", "height"), [(0, 0), (0, 5), (5, 0)])
    def test_nothing_to_see(self, small: bytes, width: int, height: int) -> None:
        assert f"is empty: its header declares {width}x{height}" in refusal(
            claiming(small, width, height)
        )

    @pytest.mark.parametrize(
        "small",
        [PHOTO, progressive(colours()), png(5, 7), png(5, 7, 16, 0)],
        ids=["JPEG", "progressive", "PNG", "depth"],
    )
    @pytest.mark.parametrize(
        ("width", "height"), [(65_500, 65_500), (65_535, 1), (1, 65_535), (20_000, 20_000)]
    )
    def test_a_few_bytes_cannot_ask_for_gigabytes(
        self, small: bytes, width: int, height: int
    ) -> None:
        told = refusal(claiming(small, width, height))
        assert f"too large: {width}x{height}" in told
        assert "36 million" in told

    @pytest.mark.parametrize("size", [(7680, 4320), (8192, 4320), (4320, 8192), (6000, 6000)])
    def test_8k_is_not_too_large(self, size: tuple[int, int]) -> None:
        for small in (PHOTO, png(5, 7)):
            header = read_header(claiming(small, *size))
            assert (header.width, header.height) == size

    def test_the_largest(self) -> None:
        assert MAX_PIXELS == 6000 * 6000
        read_header(claiming(PHOTO, 6000, 6000))
        refusal(claiming(PHOTO, 6000, 6001))

    def test_too_many_bytes(self) -> None:
        assert "too large" in refusal(bytes(MAX_BYTES + 1))

    @pytest.mark.parametrize(
        "whole", [encode(colours(), RGBA), encode(distances(), DEPTH)], ids=["colour", "depth"]
    )
    @pytest.mark.parametrize("change", [-1, 1, -1000])
    def test_raw_pixels_are_as_many_as_is_said(self, whole: bytes, change: int) -> None:
        data = whole[:change] if change < 0 else whole + b"x"
        assert f"but has {len(data)}" in refusal(data)

    def test_raw_headers_that_lie(self) -> None:
        assert "is empty" in refusal(b"RGBA" + bytes(8))
        assert "is empty" in refusal(b"DEPTHMAP" + bytes(16))
        assert "too large" in refusal(struct.pack(">8sQQ", b"DEPTHMAP", 1 << 63, 1 << 63))
        assert "too large" in refusal(struct.pack(">4sII", b"RGBA", 0xFFFFFFFF, 0xFFFFFFFF))
        assert "takes 52 bytes" in refusal(struct.pack(">4sII", b"RGBA", 5, 2))


class TestWhatIsNoImage:
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
    def test_other_things_are_named(self, data: bytes, words: str) -> None:
        assert words in refusal(data)

    @pytest.mark.parametrize(
        "whole",
        [
            PHOTO,
            progressive(colours()),
            with_exif(PHOTO, thumbnail=SMALL),
            png(5, 7),
            encode(colours(8, 4), RGBA),
            encode(distances(8, 4), DEPTH),
        ],
        ids=["JPEG", "progressive", "thumbnail", "PNG", "RGBA", "depth"],
    )
    def test_what_is_cut_off(self, whole: bytes) -> None:
        behind_the_end = whole.rfind(b"\xff\xd9") + 2 if whole.startswith(b"\xff") else len(whole)
        for length in range(8, behind_the_end):
            refusal(whole[:length])
        assert "truncated" in refusal(whole[:10])


class TestHostileJpegs:
    """Each is small, or long in a way that would keep a simple reader busy."""

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
    def test_they_are_refused_at_once(self, start: bytes, again: bytes, times: int) -> None:
        refusal(start + again * times)

    def test_more_scans_than_any_camera_makes(self) -> None:
        many = with_scans(progressive(colours()), 1000)
        assert many.count(b"\xff\xda") == 1000
        assert "more than 100 scans" in refusal(many)
        read_header(with_scans(progressive(colours()), 100))

    def test_fewer_scans_where_each_takes_long(self) -> None:
        usual = progressive(colours())
        read_header(claiming(with_scans(usual, 15), 7680, 4320))
        assert "more than 15 scans" in refusal(claiming(with_scans(usual, 16), 7680, 4320))

    def test_an_end_in_a_comment_hides_no_scans(self) -> None:
        usual = progressive(colours())
        at = usual.index(b"\xff\xda")
        commented = usual[:at] + segment(0xFE, b"\xff\xd9") + usual[at:]
        assert "scans" in refusal(with_scans(commented, 1000))

    def test_a_video_behind_a_photo_is_not_of_it(self) -> None:
        """As telephones write it; by chance, bytes of it look like scans."""
        photo = claiming(PHOTO, 4000, 3000)
        assert read_header(photo + os.urandom(64) + b"\xff\xda" * 500).width == 4000
        assert read_header(photo + os.urandom(8 * MIB)).width == 4000


class TestHostilePngs:
    def test_chunks_without_end(self) -> None:
        start = png(5, 7)[:33]
        assert "more than 100000 chunks" in refusal(start + chunk(b"tEXt", b"") * 1_000_000)
        assert "truncated" in refusal(start + struct.pack(">I", 0xFFFFFFFF) + b"IDAT" + bytes(100))
        assert "truncated" in refusal(start + chunk(b"tEXt", b"IEND") * 10)

    def test_no_header(self) -> None:
        assert "truncated" in refusal(b"\x89PNG\r\n\x1a\n" + chunk(b"IDAT", bytes(50)))


class TestAtAGlance:
    """What the SDK's images are told of their size."""

    @pytest.mark.parametrize("kind", [".jpg", ".png"])
    def test_it_is_the_size(self, kind: str) -> None:
        assert peek_size(written(kind, colours(320, 200))) == (320, 200)

    def test_what_is_no_image_has_none(self) -> None:
        for data in (b"", b"\xff\xd8", b"\xff\xd8" + b"\xff" * 50_000_000, b"text", bytes(100)):
            assert peek_size(data) is None

    def test_the_sdks_images_measure_themselves_with_it(self) -> None:
        assert sdk.VERSION
        from viam.media.video import CameraMimeType, ViamImage

        image = ViamImage(written(".jpg", colours(320, 200)), CameraMimeType.JPEG)
        assert (image.width, image.height) == (320, 200)

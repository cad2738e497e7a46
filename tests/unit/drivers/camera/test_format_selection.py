from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.drivers.camera.recorded_formats import (
    C270,
    C920,
    CAMERAS,
    H264_ONLY,
    LAPTOP,
    RASPBERRY_PI,
    REALSENSE_COLOUR,
    REALSENSE_DEPTH,
    REALSENSE_INFRARED,
    Recorded,
)

from cogwork.drivers.camera.format_selection import (
    FormatChoice,
    FormatRequest,
    NoSuchFormat,
    choose_format,
    is_same_rate,
    normalize_fourcc,
)
from cogwork.drivers.camera.v4l2 import FormatOffer, FormatRange, SteppedRange, VideoFormat

ANYTHING = FormatRequest()


def refusal(formats: tuple[FormatOffer, ...], wanted: FormatRequest) -> str:
    with pytest.raises(NoSuchFormat) as told:
        choose_format(formats, wanted)
    return str(told.value)


@pytest.mark.parametrize(
    ("camera", "chosen"),
    [
        (C920, "MJPG 1280x720 at 30"),
        (C270, "MJPG 1280x720 at 30"),
        (RASPBERRY_PI, "MJPG 1280x720 at 30"),
        (REALSENSE_INFRARED, "UYVY 848x480 at 30"),
        (REALSENSE_COLOUR, "YUYV 1280x720 at 30"),
        (LAPTOP, "YUYV 640x480 at 30"),
    ],
)
def test_whoever_asks_for_nothing_gets_the_best(camera: Recorded, chosen: str) -> None:
    assert str(choose_format(camera.offers, ANYTHING)) == chosen


@pytest.mark.parametrize(
    ("camera", "wanted", "chosen"),
    [
        # Raw as long as it is few bytes, JPEG when it is many.
        (C920, FormatRequest(width=640, height=480), "YUYV 640x480 at 30"),
        (C920, FormatRequest(width=1920, height=1080), "MJPG 1920x1080 at 30"),
        (C920, FormatRequest(width=960, height=720), "MJPG 960x720 at 30"),
        (C920, FormatRequest(width=960, height=720, frame_rate=15), "YUYV 960x720 at 15"),
        (C920, FormatRequest(frame_rate=10), "YUYV 1280x720 at 10"),
        # Fluent rather than large.
        (C920, FormatRequest("YUYV"), "YUYV 960x720 at 15"),
        (C920, FormatRequest("YUYV", 1280, 720), "YUYV 1280x720 at 10"),
        (C920, FormatRequest("yuy2", 2304, 1536, 2), "YUYV 2304x1536 at 2"),
        (C920, FormatRequest(height=480, frame_rate=24), "YUYV 864x480 at 24"),
        (C920, FormatRequest("mjpeg", frame_rate=7.5), "MJPG 1280x720 at 7.5"),
        (LAPTOP, FormatRequest(width=1280), "YUYV 1280x720 at 10"),
        (REALSENSE_COLOUR, FormatRequest(frame_rate=60), "YUYV 960x540 at 60"),
        (REALSENSE_INFRARED, FormatRequest("gray8"), "GREY 1280x720 at 30"),
        # Any size there is.
        (RASPBERRY_PI, FormatRequest(width=640), "YUYV 640x360 at 30"),
        (RASPBERRY_PI, FormatRequest(height=1080), "MJPG 1920x1080 at 30"),
        (RASPBERRY_PI, FormatRequest("I420", 3280, 2464, 1), "YU12 3280x2464 at 1"),
        (RASPBERRY_PI, FormatRequest("BGR", frame_rate=60), "BGR3 1280x720 at 60"),
    ],
)
def test_what_is_asked_for_is_exact_and_the_rest_fits_it(
    camera: Recorded, wanted: FormatRequest, chosen: str
) -> None:
    assert str(choose_format(camera.offers, wanted)) == chosen


def test_a_large_size_is_for_those_who_have_no_smaller_one() -> None:
    large = VideoFormat("MJPG", 2560, 1440, (30.0,))
    small = VideoFormat("MJPG", 160, 120, (30.0,))
    assert choose_format([large, small], ANYTHING).width == 160
    assert choose_format([large], ANYTHING).width == 2560


def test_grey_and_unbalanced_colours_are_for_those_who_have_nothing_else() -> None:
    grey = VideoFormat("GREY", 1280, 720, (30.0,))
    bayer = VideoFormat("RGGB", 1280, 720, (30.0,))
    colour = VideoFormat("YUYV", 320, 240, (5.0,))
    assert choose_format([grey, bayer, colour], ANYTHING).fourcc == "YUYV"
    assert choose_format([grey, bayer], ANYTHING).fourcc == "RGGB"
    assert choose_format([grey], ANYTHING).fourcc == "GREY"


def test_television_has_its_own_thirty() -> None:
    offers = [VideoFormat("YUYV", 720, 480, (30000 / 1001,))]
    assert choose_format(offers, FormatRequest(frame_rate=30)).rate == pytest.approx(
        29.97, abs=0.001
    )
    assert "at 29.97" in refusal(tuple(offers), FormatRequest(frame_rate=25))


def test_a_driver_may_keep_its_rates_to_itself() -> None:
    silent = VideoFormat("YUYV", 720, 576, ())
    assert choose_format([silent], ANYTHING) == FormatChoice("YUYV", 720, 576, None)
    assert choose_format([silent], FormatRequest(frame_rate=25)) == FormatChoice(
        "YUYV", 720, 576, 25
    )
    anywhere = FormatRange("YUYV", SteppedRange(48, 720, 4), SteppedRange(32, 576), None)
    assert choose_format([anywhere], ANYTHING) == FormatChoice("YUYV", 720, 405, None)


def test_a_refusal_says_what_there_is_nearest_first() -> None:
    assert refusal(C920.offers, FormatRequest("YUYV", 1920, 1080, 30)) == (
        "the camera does not offer YUYV 1920x1080 at 30. The nearest formats are "
        "MJPG 1920x1080 at 30, 24, 20, 15, 10, 7.5, 5; YUYV 1920x1080 at 5; "
        "YUYV/MJPG 800x448 at 30, 24, 20, 15, 10, 7.5, 5; "
        "YUYV/MJPG 640x480 at 30, 24, 20, 15, 10, 7.5, 5; "
        "YUYV/MJPG 640x360 at 30, 24, 20, 15, 10, 7.5, 5; and 21 more: "
        "request one of these, or omit an attribute"
    )


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (
            FormatRequest(width=1000, height=700),
            "offer images 1000x700. The nearest formats are MJPG 960",
        ),
        (FormatRequest(width=1000), "offer images 1000 wide. The nearest"),
        (
            FormatRequest(height=1000),
            "offer images 1000 high. The nearest formats are MJPG 1920x1080",
        ),
        (FormatRequest(frame_rate=12.5), "offer images at 12.5. The nearest"),
        (FormatRequest("nv12"), "offer NV12. The nearest"),
        (FormatRequest("hevc"), "offer HEVC. The nearest"),
        (FormatRequest("nonsense"), "offer NONSENSE. The nearest"),
    ],
)
def test_a_refusal_says_what_was_asked(wanted: FormatRequest, words: str) -> None:
    assert words in refusal(C920.offers, wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        FormatRequest(width=641),
        FormatRequest(width=30),
        FormatRequest(width=3280, height=3280),
        FormatRequest(frame_rate=120),
        FormatRequest(frame_rate=0.5),
    ],
)
def test_a_range_is_as_exact_as_a_list(wanted: FormatRequest) -> None:
    told = refusal(RASPBERRY_PI.offers, wanted)
    assert "MJPG" in told
    assert "32x32 to 3280x2464 in steps of 2x2 at 1 to 90: request" in told


def test_one_size_at_any_rate_reads_like_one_size() -> None:
    offers = (FormatRange("UYVY", SteppedRange(1920, 1920), SteppedRange(1080, 1080), (1.0, 60.0)),)
    assert choose_format(offers, ANYTHING) == FormatChoice("UYVY", 1920, 1080, 30.0)
    assert "formats are UYVY 1920x1080 at 1 to 60: request" in refusal(
        offers, FormatRequest(width=640)
    )


def test_what_opencv_cannot_decode_is_for_the_ffmpeg_model() -> None:
    assert refusal(H264_ONLY.offers, ANYTHING) == (
        'the camera offers only H264, which the model "webcam" cannot decode: use the model '
        '"ffmpeg", or a module made for this camera'
    )
    assert "offers only Z16" in refusal(REALSENSE_DEPTH.offers, ANYTHING)
    assert refusal(C920.offers, FormatRequest("h.264")) == (
        'the camera offers H264, but the model "webcam" cannot decode it: use the model "ffmpeg", '
        "or request YUYV, MJPG"
    )


def test_a_device_may_offer_nothing() -> None:
    assert "does not offer any format" in refusal((), ANYTHING)


@pytest.mark.parametrize(
    ("name", "fourcc"),
    [
        ("MJPG", "MJPG"),
        ("mjpeg", "MJPG"),
        ("YUYV", "YUYV"),
        (" Yuy2 ", "YUYV"),
        ("i420", "YU12"),
        ("yuv420p", "YU12"),
        ("rgb24", "RGB3"),
        ("gray", "GREY"),
        ("h265", "HEVC"),
        ("z16", "Z16"),
    ],
)
def test_formats_go_by_many_names(name: str, fourcc: str) -> None:
    assert normalize_fourcc(name) == fourcc


parts = st.builds(
    FormatRequest,
    st.none() | st.sampled_from(["MJPG", "YUYV", "GREY", "H264", "NV12"]),
    st.none() | st.sampled_from([33, 640, 960, 1280, 1920, 2304]),
    st.none() | st.sampled_from([35, 360, 480, 720, 1080, 1536]),
    st.none() | st.sampled_from([2.0, 7.5, 15.0, 24.0, 30.0, 60.0]),
)


@given(st.sampled_from(sorted(CAMERAS)), parts)
def test_a_choice_is_always_something_that_is_there(camera: str, wanted: FormatRequest) -> None:
    offers = CAMERAS[camera].offers
    try:
        choice = choose_format(offers, wanted)
    except NoSuchFormat:
        return
    assert not choice.count_unmet(wanted)
    assert any(_is_of(choice, offer) for offer in offers)


def _is_of(choice: FormatChoice, offer: FormatOffer) -> bool:
    if choice.fourcc != offer.fourcc or choice.rate is None:
        return False
    if isinstance(offer, VideoFormat):
        size = (offer.width, offer.height) == (choice.width, choice.height)
        return size and any(is_same_rate(choice.rate, rate) for rate in offer.rates)
    assert offer.rates is not None
    return (
        offer.widths.nearest(choice.width) == choice.width
        and offer.heights.nearest(choice.height) == choice.height
        and offer.rates[0] <= choice.rate <= offer.rates[1]
    )

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
    REALSENSE_COLOR,
    REALSENSE_DEPTH,
    REALSENSE_INFRARED,
    RecordedCamera,
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


def refusal_text(formats: tuple[FormatOffer, ...], wanted: FormatRequest) -> str:
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
        (REALSENSE_COLOR, "YUYV 1280x720 at 30"),
        (LAPTOP, "YUYV 640x480 at 30"),
    ],
)
def test_empty_request_chooses_the_best_format(camera: RecordedCamera, chosen: str) -> None:
    assert str(choose_format(camera.offers, ANYTHING)) == chosen


@pytest.mark.parametrize(
    ("camera", "wanted", "chosen"),
    [
        # Raw formats at a low data rate, JPEG at a high one.
        (C920, FormatRequest(width=640, height=480), "YUYV 640x480 at 30"),
        (C920, FormatRequest(width=1920, height=1080), "MJPG 1920x1080 at 30"),
        (C920, FormatRequest(width=960, height=720), "MJPG 960x720 at 30"),
        (C920, FormatRequest(width=960, height=720, frame_rate=15), "YUYV 960x720 at 15"),
        (C920, FormatRequest(frame_rate=10), "YUYV 1280x720 at 10"),
        # A high frame rate is preferred to a large size.
        (C920, FormatRequest("YUYV"), "YUYV 960x720 at 15"),
        (C920, FormatRequest("YUYV", 1280, 720), "YUYV 1280x720 at 10"),
        (C920, FormatRequest("yuy2", 2304, 1536, 2), "YUYV 2304x1536 at 2"),
        (C920, FormatRequest(height=480, frame_rate=24), "YUYV 864x480 at 24"),
        (C920, FormatRequest("mjpeg", frame_rate=7.5), "MJPG 1280x720 at 7.5"),
        (LAPTOP, FormatRequest(width=1280), "YUYV 1280x720 at 10"),
        (REALSENSE_COLOR, FormatRequest(frame_rate=60), "YUYV 960x540 at 60"),
        (REALSENSE_INFRARED, FormatRequest("gray8"), "GREY 1280x720 at 30"),
        # Any size within the range.
        (RASPBERRY_PI, FormatRequest(width=640), "YUYV 640x360 at 30"),
        (RASPBERRY_PI, FormatRequest(height=1080), "MJPG 1920x1080 at 30"),
        (RASPBERRY_PI, FormatRequest("I420", 3280, 2464, 1), "YU12 3280x2464 at 1"),
        (RASPBERRY_PI, FormatRequest("BGR", frame_rate=60), "BGR3 1280x720 at 60"),
    ],
)
def test_requested_values_are_met_exactly_and_the_others_chosen(
    camera: RecordedCamera, wanted: FormatRequest, chosen: str
) -> None:
    assert str(choose_format(camera.offers, wanted)) == chosen


def test_large_size_is_chosen_only_without_a_smaller_one() -> None:
    large = VideoFormat("MJPG", 2560, 1440, (30.0,))
    small = VideoFormat("MJPG", 160, 120, (30.0,))
    assert choose_format([large, small], ANYTHING).width == 160
    assert choose_format([large], ANYTHING).width == 2560


def test_gray_and_bayer_formats_are_chosen_only_without_alternatives() -> None:
    gray = VideoFormat("GREY", 1280, 720, (30.0,))
    bayer = VideoFormat("RGGB", 1280, 720, (30.0,))
    color = VideoFormat("YUYV", 320, 240, (5.0,))
    assert choose_format([gray, bayer, color], ANYTHING).fourcc == "YUYV"
    assert choose_format([gray, bayer], ANYTHING).fourcc == "RGGB"
    assert choose_format([gray], ANYTHING).fourcc == "GREY"


def test_ntsc_rate_counts_as_30() -> None:
    offers = [VideoFormat("YUYV", 720, 480, (30000 / 1001,))]
    assert choose_format(offers, FormatRequest(frame_rate=30)).rate == pytest.approx(
        29.97, abs=0.001
    )
    assert "at 29.97" in refusal_text(tuple(offers), FormatRequest(frame_rate=25))


def test_driver_may_report_no_rates() -> None:
    silent = VideoFormat("YUYV", 720, 576, ())
    assert choose_format([silent], ANYTHING) == FormatChoice("YUYV", 720, 576, None)
    assert choose_format([silent], FormatRequest(frame_rate=25)) == FormatChoice(
        "YUYV", 720, 576, 25
    )
    anywhere = FormatRange("YUYV", SteppedRange(48, 720, 4), SteppedRange(32, 576), None)
    assert choose_format([anywhere], ANYTHING) == FormatChoice("YUYV", 720, 405, None)


def test_refusal_lists_the_nearest_formats_first() -> None:
    assert refusal_text(C920.offers, FormatRequest("YUYV", 1920, 1080, 30)) == (
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
def test_refusal_names_the_request(wanted: FormatRequest, words: str) -> None:
    assert words in refusal_text(C920.offers, wanted)


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
def test_range_offers_are_matched_exactly(wanted: FormatRequest) -> None:
    told = refusal_text(RASPBERRY_PI.offers, wanted)
    assert "MJPG" in told
    assert "32x32 to 3280x2464 in steps of 2x2 at 1 to 90: request" in told


def test_range_of_one_size_is_reported_as_that_size() -> None:
    offers = (FormatRange("UYVY", SteppedRange(1920, 1920), SteppedRange(1080, 1080), (1.0, 60.0)),)
    assert choose_format(offers, ANYTHING) == FormatChoice("UYVY", 1920, 1080, 30.0)
    assert "formats are UYVY 1920x1080 at 1 to 60: request" in refusal_text(
        offers, FormatRequest(width=640)
    )


def test_formats_without_a_decoder_refer_to_the_ffmpeg_model() -> None:
    assert refusal_text(H264_ONLY.offers, ANYTHING) == (
        'the camera offers only H264, which the model "webcam" cannot decode: use the model '
        '"ffmpeg", or a module made for this camera'
    )
    assert "offers only Z16" in refusal_text(REALSENSE_DEPTH.offers, ANYTHING)
    assert refusal_text(C920.offers, FormatRequest("h.264")) == (
        'the camera offers H264, but the model "webcam" cannot decode it: use the model "ffmpeg", '
        "or request YUYV, MJPG"
    )


def test_device_without_formats_is_refused() -> None:
    assert "does not offer any format" in refusal_text((), ANYTHING)


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
def test_format_names_are_normalized(name: str, fourcc: str) -> None:
    assert normalize_fourcc(name) == fourcc


parts = st.builds(
    FormatRequest,
    st.none() | st.sampled_from(["MJPG", "YUYV", "GREY", "H264", "NV12"]),
    st.none() | st.sampled_from([33, 640, 960, 1280, 1920, 2304]),
    st.none() | st.sampled_from([35, 360, 480, 720, 1080, 1536]),
    st.none() | st.sampled_from([2.0, 7.5, 15.0, 24.0, 30.0, 60.0]),
)


@given(st.sampled_from(sorted(CAMERAS)), parts)
def test_choice_is_always_one_of_the_offers(camera: str, wanted: FormatRequest) -> None:
    offers = CAMERAS[camera].offers
    try:
        choice = choose_format(offers, wanted)
    except NoSuchFormat:
        return
    assert not choice.count_unmet(wanted)
    assert any(_is_offered(choice, offer) for offer in offers)


def _is_offered(choice: FormatChoice, offer: FormatOffer) -> bool:
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

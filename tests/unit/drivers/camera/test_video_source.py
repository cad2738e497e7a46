from __future__ import annotations

import contextlib
import gc
import itertools
import os
import resource
import time
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import av.error
import pytest
from tests.support.media.films import PICTURES, film, number_of
from tests.support.media.pictures import png

from cogwork.drivers.camera.attributes import FfmpegAttributes
from cogwork.drivers.camera.capture import SourceFault
from cogwork.drivers.camera.video_source import OpenedVideo, Pacer, VideoSource

QUICK = 200
"""Pictures a second of a film that a test need not wait for."""


def create_source(path: object, **attributes: Any) -> VideoSource:
    return VideoSource(FfmpegAttributes.model_validate({"video_path": str(path), **attributes}))


@contextlib.contextmanager
def open_video(path: object, **attributes: Any) -> Iterator[OpenedVideo]:
    source = create_source(path, **attributes).open()
    try:
        yield source
    finally:
        source.close()


def read_numbers(source: OpenedVideo, count: int) -> list[int]:
    return [number_of(source.read()()) for _ in range(count)]


def read_fault(path: object, pictures: int = 0, **attributes: Any) -> SourceFault:
    with pytest.raises(SourceFault) as error, open_video(path, **attributes) as source:
        read_numbers(source, pictures + 1)
    return error.value


def count_threads() -> int:
    """Count all threads of the process, including those of libraries."""
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208 - a mere count


class TestPacer:
    def test_frames_are_due_at_their_timestamps(self) -> None:
        pacer = Pacer(25)
        assert pacer.delay(5.0, 100.0) == 0.0
        assert pacer.delay(5.1, 100.0) == pytest.approx(0.1)
        assert pacer.delay(5.2, 100.15) == pytest.approx(0.05)

    def test_late_frame_does_not_delay_the_next_ones(self) -> None:
        pacer = Pacer(25)
        pacer.delay(0.0, 100.0)
        assert pacer.delay(0.1, 100.5) == 0.0
        assert pacer.delay(0.7, 100.5) == pytest.approx(0.2)

    def test_pacer_far_behind_restarts_its_schedule(self) -> None:
        pacer = Pacer(25)
        pacer.delay(0.0, 100.0)
        assert pacer.delay(0.1, 160.0) == 0.0
        assert pacer.delay(0.2, 160.0) == pytest.approx(0.1)

    def test_delay_is_limited_to_one_second(self) -> None:
        pacer = Pacer(25)
        pacer.delay(0.0, 100.0)
        assert pacer.delay(3600.0, 100.0) == 1.0
        assert pacer.delay(3600.1, 101.0) == pytest.approx(0.1)

    def test_last_frame_of_a_loop_lasts_as_long_as_the_others(self) -> None:
        pacer = Pacer(20)
        pacer.delay(0.0, 100.0)
        pacer.delay(0.05, 100.0)
        assert pacer.delay(0.0, 100.05) == pytest.approx(0.05)

    def test_frames_without_timestamps_follow_the_rate(self) -> None:
        pacer = Pacer(10)
        assert [pacer.delay(None, 100.0) for _ in range(3)] == pytest.approx([0.0, 0.1, 0.2])


def assert_takes(seconds: float, source: OpenedVideo, pictures: int) -> None:
    """Reading takes this long, at least in one of several attempts: a computer may be busy."""
    source.read()
    took: list[float] = []
    for _ in range(5):
        began = time.monotonic()
        for _ in range(pictures):
            source.read()
        took.append(time.monotonic() - began)
        if took[-1] == pytest.approx(seconds, abs=0.1):
            return
    raise AssertionError(f"{pictures} pictures took {took} s instead of {seconds}")


class TestPlaying:
    @pytest.mark.parametrize(
        ("name", "codec"),
        [
            ("film.mp4", "mpeg4"),
            ("film.mp4", "libx264"),
            ("film.mkv", "libx264"),
            ("film.ts", "libx264"),
            ("film.avi", "mpeg4"),
            ("film.h264", "libx264"),
        ],
    )
    def test_frames_come_in_order_and_loop(self, tmp_path: Path, name: str, codec: str) -> None:
        path = film(tmp_path / name, codec=codec, rate=QUICK)
        with open_video(path) as source:
            assert read_numbers(source, 25) == [number % PICTURES for number in range(25)]

    def test_frames_come_at_the_rate_of_the_file(self, tmp_path: Path) -> None:
        with open_video(film(tmp_path / "film.mp4", pictures=4, rate=20)) as source:
            assert source.rate == 20
            assert_takes(0.4, source, 8)

    def test_file_without_a_rate_plays_at_25_frames_per_second(self, tmp_path: Path) -> None:
        with open_video(film(tmp_path / "film.h264", codec="libx264")) as source:
            assert source.rate is None
            assert_takes(0.4, source, 10)

    def test_single_image_is_repeated_at_25_frames_per_second(self, tmp_path: Path) -> None:
        (tmp_path / "one.png").write_bytes(png(64, 48))
        with open_video(tmp_path / "one.png") as source:
            assert source.read()().shape == (48, 64, 3)
            assert_takes(0.2, source, 5)

    def test_file_without_loop_ends(self, tmp_path: Path) -> None:
        path = film(tmp_path / "film.mp4", rate=QUICK)
        fault = read_fault(path, pictures=PICTURES, loop=False)
        assert (fault.code, fault.final) == ("ended", True)
        assert str(fault) == f"{path} has ended and does not loop"

    def test_file_removed_before_the_next_loop_is_reported(self, tmp_path: Path) -> None:
        path = film(tmp_path / "film.mp4", rate=QUICK)
        with open_video(path) as source:
            read_numbers(source, PICTURES)
            path.unlink()
            with pytest.raises(SourceFault, match="no such file"):
                source.read()

    def test_damaged_parts_are_skipped(self, tmp_path: Path) -> None:
        path = film(tmp_path / "film.avi", rate=QUICK, pictures=40)
        data = bytearray(path.read_bytes())
        data[len(data) // 2 : len(data) // 2 + 400] = bytes(400)
        path.write_bytes(data)
        with open_video(path) as source:
            assert {0, 9} <= set(read_numbers(source, 40))

    def test_image_size_may_change_within_a_file(self, tmp_path: Path) -> None:
        """This works with filters, too."""
        parts = [
            film(tmp_path / "large.h264", codec="libx264", rate=QUICK, size=(320, 240)),
            film(tmp_path / "small.h264", codec="libx264", rate=QUICK, size=(64, 48)),
        ]
        both = tmp_path / "both.h264"
        both.write_bytes(b"".join(part.read_bytes() for part in parts))
        with open_video(both, filters=[{"name": "hflip"}]) as source:
            shapes = [source.read()().shape[:2] for _ in range(2 * PICTURES)]
        assert shapes == [(240, 320)] * PICTURES + [(48, 64)] * PICTURES

    def test_filters_restart_with_each_loop(self, tmp_path: Path) -> None:
        """Otherwise a filter that drops frames by timestamp would drop all of them."""
        path = film(tmp_path / "film.mp4", rate=QUICK)
        with open_video(path, filters=[{"name": "fps", "args": [str(QUICK // 2)]}]) as source:
            shown = read_numbers(source, 12)
        assert len(set(shown[:4])) == 4
        assert shown.count(shown[0]) >= 2


class TestReleasingThreads:
    """Decoders and converters start one thread per processor."""

    def test_close_ends_the_decoder_threads(self, tmp_path: Path) -> None:
        path = film(tmp_path / "film.mp4", codec="libx264", rate=QUICK, size=(640, 480))
        gc.collect()
        before = count_threads()
        gc.disable()
        try:
            with open_video(path) as source:
                shots = [source.read() for _ in range(15)]
                assert [shot().shape for shot in shots] == [(480, 640, 3)] * 15
            assert count_threads() == before
            assert shots[0]().shape == (480, 640, 3)
        finally:
            gc.enable()

    def test_close_ends_the_filter_threads(self, tmp_path: Path) -> None:
        path = film(tmp_path / "film.mp4", codec="libx264", rate=QUICK, size=(640, 480))
        gc.collect()
        before = count_threads()
        with open_video(path, filters=[{"name": "scale", "args": ["320", "240"]}]) as source:
            shots = [source.read() for _ in range(15)]
            assert [shot().shape for shot in shots] == [(240, 320, 3)] * 15
        # In its build for Python 3.12, PyAV's filters and their graph refer to each other.
        gc.collect()
        assert count_threads() == before
        assert shots[0]().shape == (240, 320, 3)

    def test_converting_frames_starts_no_threads(self, tmp_path: Path) -> None:
        path = film(tmp_path / "film.avi", rate=QUICK, size=(640, 480))
        before = count_threads()
        with open_video(path) as source:
            shots = [source.read() for _ in range(15)]
            assert {shot().shape for shot in shots} == {(480, 640, 3)}
            assert count_threads() == before


class TestFaults:
    def test_file_without_video_is_refused(self, tmp_path: Path) -> None:
        with wave.open(str(tmp_path / "sound.wav"), "wb") as sound:
            sound.setparams((1, 2, 8000, 1000, "NONE", ""))
            sound.writeframes(bytes(2000))
        fault = read_fault(tmp_path / "sound.wav")
        assert fault.code == "no_video"
        assert str(fault) == (
            f'{tmp_path}/sound.wav contains no video; set "video_path" to a source that does'
        )

    def test_video_without_a_decoder_is_refused(self, tmp_path: Path) -> None:
        path = film(tmp_path / "film.mkv")
        path.write_bytes(path.read_bytes().replace(b"V_MPEG4/ISO/ASP", b"V_MPEG4/NOT/ASP"))
        assert str(read_fault(path)) == f"FFmpeg has no decoder for the video of {path}"

    def test_too_large_image_is_refused_without_decoding(self, tmp_path: Path) -> None:
        (tmp_path / "huge.png").write_bytes(png(10_000, 6_000))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert read_fault(tmp_path / "huge.png").code == "failed"
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB

    def test_unknown_container_format_is_refused(self, tmp_path: Path) -> None:
        path = film(tmp_path / "film.mp4")
        fault = read_fault(path, input_kw_args={"format": "nosuch"})
        assert str(fault) == f"{path} cannot be opened: no container format 'nosuch'"

    def test_given_container_format_overrides_detection(self, tmp_path: Path) -> None:
        path = film(tmp_path / "film", kind="mp4")
        assert read_fault(path, input_kw_args={"f": "avi"}).code == "no_video"

    @pytest.mark.parametrize(
        ("filters", "words"),
        [
            ([{"name": "nosuch"}], "nosuch"),
            ([{"name": "scale", "args": ["many", "few"]}], "Invalid argument"),
            ([{"name": "scale", "kw_args": {"wydth": 3}}], "Option not found"),
            ([{"name": "overlay"}], "Invalid argument"),
            ([{"name": "volume"}], "Invalid argument"),
        ],
    )
    def test_invalid_filters_are_refused(
        self, tmp_path: Path, filters: list[dict[str, Any]], words: str
    ) -> None:
        fault = read_fault(film(tmp_path / "film.mp4"), filters=filters)
        assert fault.code == "bad_filters"
        assert str(fault).startswith('FFmpeg rejects the "filters": ')
        assert words in str(fault)

    def test_unknown_host_is_unreachable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object, **__: object) -> None:
            raise av.error.OSError(5, "Input/output error", "http://nowhere.invalid/x")

        monkeypatch.setattr(av, "open", fail)
        assert read_fault("http://nowhere.invalid/x").code == "unreachable"
        assert read_fault("/a/file").code == "failed"

    @pytest.mark.parametrize(
        ("path", "shown"),
        [
            ("rtsp://cam.local/stream", "rtsp://cam.local/stream"),
            ("rtsp://me:secret@cam.local/stream", "rtsp://…@cam.local/stream"),
            ("rtsp://me:sec@ret@cam.local/stream", "rtsp://…@cam.local/stream"),
            ("rtsp://me:sec/ret@cam.local/stream", "rtsp://…@cam.local/stream"),
            ("rtsp://me:sec?ret@cam.local/stream", "rtsp://…"),
            ("http://cam/x?user=me&pwd=secret", "http://cam/x?…"),
            ("http://cam/x?user=me&pwd=sec@ret", "http://…"),
            ("http://me:secret@cam/x?pwd=secret", "http://…@cam/x?…"),
            ("concat:http://a:secret@cam/x|http://b:secret@cam/y", "concat:http://…@cam/y"),
            ("/videos/me@home?.mp4", "/videos/me@home?.mp4"),
        ],
    )
    def test_credentials_are_redacted(self, path: str, shown: str) -> None:
        assert (
            str(create_source(path).lost_fault()) == f"{shown} was lost: connection closed by peer"
        )


class TestOptions:
    @pytest.fixture
    def requested_options(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        """Return the options that FFmpeg was opened with."""
        requested_options: dict[str, Any] = {}

        def fail(path: str, **options: Any) -> None:
            requested_options.update(options)
            raise av.error.FileNotFoundError(2, "No such file or directory")

        monkeypatch.setattr(av, "open", fail)
        return requested_options

    def test_rtsp_uses_tcp_by_default(self, requested_options: dict[str, Any]) -> None:
        read_fault("rtsp://cam/x")
        assert requested_options["options"]["rtsp_transport"] == "tcp"
        read_fault("rtsp://cam/x", input_kw_args={"rtsp_transport": "udp", "reorder_queue_size": 5})
        assert requested_options["options"]["rtsp_transport"] == "udp"
        assert requested_options["options"]["reorder_queue_size"] == "5"

    def test_file_is_opened_with_default_options(self, requested_options: dict[str, Any]) -> None:
        read_fault("/a/file", input_kw_args={"f": "mp4"})
        assert requested_options["format"] == "mp4"
        assert requested_options["options"].keys() == {"max_pixels"}

    def test_stall_limits_open_and_read_timeouts(self, requested_options: dict[str, Any]) -> None:
        read_fault("rtsp://cam/x", stall="1.5s")
        assert requested_options["timeout"] == (3.5, 1.5)


def test_frames_do_not_share_memory(tmp_path: Path) -> None:
    """A frame that is decoded later still shows what was read then."""
    with open_video(film(tmp_path / "film.mp4", rate=QUICK)) as source:
        shots = [source.read() for _ in range(PICTURES)]
        shown = [number_of(shot()) for shot in reversed(shots)]
    assert shown == list(reversed(range(PICTURES)))
    pixels = [shot() for shot in shots]
    assert all(one is not other for one, other in itertools.combinations(pixels, 2))

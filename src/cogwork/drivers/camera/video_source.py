"""Frames from files, RTSP and other URLs, by FFmpeg. All calls block."""

from __future__ import annotations

import errno
import re
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

import av
import av.error
from av.container import InputContainer
from av.filter import Graph
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter
from av.video.stream import VideoStream

from cogwork.core.error_text import error_text
from cogwork.drivers.camera.attributes import FfmpegAttributes, FilterAttributes
from cogwork.drivers.camera.capture import DeferredPixels, SourceFault
from cogwork.drivers.camera.h264 import with_parameters
from cogwork.media.encoded_feed import EncodedFeed
from cogwork.media.encoded_frames import TICKS_PER_SECOND, EncodedFrame
from cogwork.media.image_header import MAX_PIXELS

_LIVE_URL = re.compile(r"^(rtsp|rtsps|rtmp|rtmps|udp|rtp|srt)://", re.IGNORECASE)
_CREDENTIALS = re.compile(r"(?<=://)(.*\?.*@.*|.*(?=@))|(?<=\?).*")
"""Matches possible users, passwords and tokens in a URL, even if they are not escaped correctly."""
_EXTRA_OPEN_TIME = 2.0
"""Seconds that opening may take in addition to the stall timeout."""
_MAX_DAMAGED = 200
"""Maximum consecutive damaged packets: after packet loss, a stream is damaged until the next key
frame."""
_MAX_PAUSE = 1.0
"""Maximum seconds between two frames of a file."""
_PLAUSIBLE_RATES = (0.1, 240.0)
"""Range of plausible frame rates. Some streams report the rate of their timer, which is outside."""
_DEFAULT_RATE = 25.0
_NO_TIMESTAMPS = 0x80
"""FFmpeg's format flag AVFMT_NOTIMESTAMPS."""


class VideoSource:
    """A video file or stream. Each `open` starts over."""

    def __init__(self, attributes: FfmpegAttributes) -> None:
        self._attributes = attributes
        self.feed = EncodedFeed()
        """The encoded frames of the source."""

    def open(self) -> OpenedVideo:
        return OpenedVideo(self)

    def open_container(self) -> InputContainer:
        timeout = self.stall_timeout + _EXTRA_OPEN_TIME
        start = time.monotonic()
        try:
            container = av.open(
                self._attributes.video_path,
                format=self._input_format(),
                options=self._open_options(),
                timeout=(timeout, self.stall_timeout),
            )
        except (av.error.FFmpegError, ValueError) as error:
            what = "cannot be opened"
            if time.monotonic() - start >= timeout:
                # Not every protocol reports a timeout as such, so the elapsed time decides.
                raise self._make_stall_fault(what, timeout) from None
            raise self._to_fault(error, what) from None
        if (fault := self._find_video_fault(container)) is not None:
            container.close()
            raise fault
        return container

    @property
    def is_live(self) -> bool:
        return _LIVE_URL.match(self._attributes.video_path) is not None

    @property
    def stall_timeout(self) -> float:
        return self._attributes.stall

    @property
    def is_looping(self) -> bool:
        return self._attributes.loop

    @property
    def filters(self) -> Sequence[FilterAttributes]:
        return self._attributes.filters

    def ended_fault(self) -> SourceFault:
        return SourceFault(
            "ended", f"{self._redacted_path} has ended and does not loop", final=True
        )

    def lost_fault(self, error: Exception | None = None) -> SourceFault:
        if error is None:
            return SourceFault("lost", f"{self._redacted_path} was lost: connection closed by peer")
        return self._to_fault(error, "was lost")

    def stall_fault(self) -> SourceFault:
        return self._make_stall_fault("was lost", self.stall_timeout)

    def no_picture_fault(self) -> SourceFault:
        return SourceFault("no_video", f"{self._redacted_path} does not contain a complete frame")

    def filter_fault(self, error: Exception) -> SourceFault:
        return SourceFault("bad_filters", f'FFmpeg rejects the "filters": {_format_error(error)}')

    @property
    def _redacted_path(self) -> str:
        path = self._attributes.video_path
        return _CREDENTIALS.sub("…", path) if self._is_url else path

    @property
    def _is_url(self) -> bool:
        return "://" in self._attributes.video_path

    def _input_format(self) -> str | None:
        configured = self._attributes.input_kw_args
        input_format = configured.get("format", configured.get("f"))
        return str(input_format) if input_format is not None else None

    def _open_options(self) -> dict[str, str]:
        # Limit the frames that FFmpeg decodes to analyze the stream, too.
        defaults = {"max_pixels": str(MAX_PIXELS)}
        if self._is_url:
            # Prefer TCP, which passes firewalls on a single connection. The other two options
            # reduce the analysis of the stream from 20 frames to 3, and from five seconds to one.
            defaults |= {"rtsp_transport": "tcp", "analyzeduration": "1000000", "fpsprobesize": "3"}
        configured = self._attributes.input_kw_args
        return defaults | {
            key: str(value) for key, value in configured.items() if key not in ("format", "f")
        }

    def _find_video_fault(self, container: InputContainer) -> SourceFault | None:
        shown = self._redacted_path
        if not container.streams.video:
            return SourceFault(
                "no_video", f'{shown} contains no video; set "video_path" to a source that does'
            )
        if getattr(container.streams.video[0], "codec_context", None) is None:
            return SourceFault("no_video", f"FFmpeg has no decoder for the video of {shown}")
        return None

    def _make_stall_fault(self, what: str, seconds: float) -> SourceFault:
        return SourceFault(
            "stalled",
            f"{self._redacted_path} {what}: it sent nothing for {seconds:g} s; check it, or raise "
            '"stall" if it sends images more slowly',
        )

    def _to_fault(self, error: Exception, what: str) -> SourceFault:
        shown = self._redacted_path
        match error:
            case av.error.ConnectionRefusedError():
                return SourceFault("refused", f"{shown} {what}: connection refused")
            case av.error.FileNotFoundError():
                return SourceFault("not_found", f"{shown} {what}: no such file")
            case av.error.IsADirectoryError():
                return SourceFault("no_video", f"{shown} {what}: it is a directory")
            case av.error.PermissionError():
                return SourceFault("no_access", f"{shown} {what}: permission denied")
            case av.error.ExitError() | av.error.TimeoutError():
                return self._make_stall_fault(what, self.stall_timeout)
            case av.error.HTTPUnauthorizedError() | av.error.HTTPForbiddenError():
                return SourceFault(
                    "no_access", f"{shown} {what}: authentication failed; check user and password"
                )
            case av.error.HTTPNotFoundError():
                return SourceFault("not_found", f"{shown} {what}: no such stream")
            case av.error.InvalidDataError():
                return SourceFault("no_video", f"{shown} {what}: the data is not a video")
            case av.error.OSError(errno=errno.EIO) if self._is_url:
                unreachable = "the host is unknown or does not respond correctly"
                return SourceFault("unreachable", f"{shown} {what}: {unreachable}")
        return SourceFault("failed", f"{shown} {what}: {_format_error(error)}")


class OpenedVideo:
    def __init__(self, video: VideoSource) -> None:
        self._video = video
        self._container = video.open_container()
        self._frames = self._play() if self._is_finite() else self._decode()
        self._graph: Graph | None = None
        self._graph_input: object = None
        # Share one reformatter: otherwise, each frame would create its own, with a thread per CPU.
        self._reformatter = VideoReformatter()

    @property
    def rate(self) -> float | None:
        if self._container.format.flags & _NO_TIMESTAMPS:
            return None  # FFmpeg invents a rate for formats without timestamps
        rate = self._stream.average_rate or self._stream.guessed_rate
        low, high = _PLAUSIBLE_RATES
        return float(rate) if rate and low <= rate <= high else None

    def read(self) -> DeferredPixels:
        try:
            frame = next(self._frames)
        except StopIteration:
            raise self._video.lost_fault() from None
        except av.error.FFmpegError as error:
            raise self._video.lost_fault(error) from None
        # Convert colors only for frames that are requested.
        reformatter = self._reformatter
        return lambda: reformatter.reformat(frame, format="bgr24", threads=1).to_ndarray()

    def close(self) -> None:
        self._video.feed.stop()
        # Close the generator, which refers to the stream and thus to the decoder and its threads.
        self._frames.close()
        self._graph = None
        self._container.close()

    @property
    def _stream(self) -> VideoStream:
        return self._container.streams.video[0]

    def _is_finite(self) -> bool:
        """Return whether the source is a local or remote file. Files are paced and can loop."""
        has_size = (self._container.size or 0) > 0
        return not self._video.is_live and (has_size or self._container.duration is not None)

    def _play(self) -> Generator[VideoFrame, None, None]:
        """Yield frames at the pace of the file, repeatedly if it loops."""
        pacer = Pacer(self.rate or _DEFAULT_RATE)
        while True:
            frame = None
            for frame in self._decode():
                time.sleep(pacer.delay(frame.time, time.monotonic()))
                yield frame
            if frame is None:
                raise self._video.no_picture_fault()
            if not self._video.is_looping:
                raise self._video.ended_fault()
            self._reopen()

    def _reopen(self) -> None:
        """Open the file again: not every format and server supports seeking to the start."""
        self._graph = None
        self._container.close()
        self._container = self._video.open_container()

    def _decode(self) -> Generator[VideoFrame, None, None]:
        damaged = 0
        for packet in self._read_packets():
            try:
                frames = packet.decode()
            except av.error.InvalidDataError:
                damaged += 1
                if damaged > _MAX_DAMAGED:
                    raise
                continue
            for frame in frames:
                damaged = 0
                yield from self._apply_filters(frame)

    def _read_packets(self) -> Iterator[Packet[VideoStream]]:
        self._stream.codec_context.options = {"max_pixels": str(MAX_PIXELS)}
        requested_at = time.monotonic()
        for packet in self._container.demux(self._stream):
            if time.monotonic() - requested_at >= self._video.stall_timeout:
                # Do not use this packet: after a timeout, the parser flushes its remaining data,
                # which is old.
                raise self._video.stall_fault()
            self._pass_on(packet)
            yield packet
            requested_at = time.monotonic()

    def _pass_on(self, packet: Packet[VideoStream]) -> None:
        """Pass a packet on to viewers that can decode it directly."""
        context = self._stream.codec_context
        if not self._video.is_live or self._video.filters or context.name != "h264":
            return
        data: bytes | None = bytes(packet)
        if not data:
            return
        if packet.is_keyframe:
            data = with_parameters(data, context.extradata or b"")
        # Do not pass on pictures that browsers cannot show: browsers do not reorder pictures, and a
        # damaged picture would be visible until the next key frame.
        if data is None or packet.is_corrupt or context.has_b_frames:
            self._video.feed.stop()
            return
        ticks = round(time.monotonic() * TICKS_PER_SECOND)
        self._video.feed.put(EncodedFrame(data, ticks, packet.is_keyframe, is_from_camera=True))

    def _apply_filters(self, frame: VideoFrame) -> Iterator[VideoFrame]:
        if not self._video.filters:
            yield frame
            return
        try:
            graph = self._filter_graph_for(frame)
            graph.vpush(frame)
            while True:
                yield graph.vpull()
        except (av.error.BlockingIOError, av.error.EOFError):
            return  # the filters need more frames to return the next one
        except (av.error.FFmpegError, ValueError) as error:
            raise self._video.filter_fault(error) from None

    def _filter_graph_for(self, frame: VideoFrame) -> Graph:
        """Return the filter graph, rebuilt if the frame format changes: filters assume a constant
        format, and would read beyond the end of smaller frames."""
        frame_format = (frame.width, frame.height, frame.format.name)
        if self._graph is None or self._graph_input != frame_format:
            self._graph, self._graph_input = (
                build_filter_graph(frame, self._video.filters),
                frame_format,
            )
        return self._graph


class Pacer:
    """Schedules the frames of a file."""

    def __init__(self, rate: float) -> None:
        """`rate` is the number of frames per second, for frames without a timestamp."""
        self._frame_interval = 1 / rate
        self._last_timestamp: float | None = None
        self._due_at: float | None = None

    def delay(self, timestamp: float | None, now: float) -> float:
        """Return the seconds to wait before showing the frame with this timestamp."""
        due = now if self._due_at is None else self._due_at + self._gap(timestamp)
        # Resynchronize when far behind.
        self._due_at = due if due > now - _MAX_PAUSE else now
        self._last_timestamp = timestamp
        return max(self._due_at - now, 0.0)

    def _gap(self, timestamp: float | None) -> float:
        if timestamp is None or self._last_timestamp is None or timestamp <= self._last_timestamp:
            return self._frame_interval  # the file restarted, or the frame has no timestamp
        return min(timestamp - self._last_timestamp, _MAX_PAUSE)


def build_filter_graph(frame: VideoFrame, filters: Sequence[FilterAttributes]) -> Graph:
    """Build the filter graph for frames of the same format."""
    graph = Graph()
    nodes: list[Any] = [
        graph.add_buffer(
            width=frame.width, height=frame.height, format=frame.format, time_base=frame.time_base
        )
    ]
    nodes += [graph.add(each.name, _format_arguments(each.args, each.kw_args)) for each in filters]
    nodes.append(graph.add("buffersink"))
    graph.link_nodes(*nodes).configure()
    return graph


def _format_arguments(positional: Sequence[str], named: Mapping[str, Any]) -> str:
    return ":".join((*positional, *(f"{key}={value}" for key, value in named.items())))


def _format_error(error: Exception) -> str:
    return getattr(error, "strerror", None) or error_text(error)

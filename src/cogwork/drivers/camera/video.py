"""Files, RTSP and any other URL as a source of pictures, by FFmpeg. Everything here blocks."""

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

from cogwork.drivers.camera.attributes import FfmpegAttributes, FilterAttributes
from cogwork.drivers.camera.capture import Shot, SourceFault
from cogwork.resource.image_header import MOST_PIXELS

_LIVE = re.compile(r"^(rtsp|rtsps|rtmp|rtmps|udp|rtp|srt)://", re.IGNORECASE)
_PRIVATE = re.compile(r"(?<=://)(.*\?.*@.*|.*(?=@))|(?<=\?).*")
"""What may be a user, a password or a token of a URL, also one that is not escaped as it should
be."""
_OPENING = 2.0
"""Seconds that opening may take longer than any picture afterwards."""
_MOST_DAMAGED = 200
"""Packets in a row that may be unreadable; after a loss, a stream has some until its next whole
picture."""
_LONGEST_PAUSE = 1.0
"""Seconds between two pictures of a file."""
_RATES = (0.1, 240.0)
"""What a stream says beyond these is not its rate but its timer's."""
_USUAL_RATE = 25.0
_NO_TIMESTAMPS = 0x80
"""A flag of formats, FFmpeg's AVFMT_NOTIMESTAMPS."""


class Video:
    """A source. Each `open` begins anew."""

    def __init__(self, attributes: FfmpegAttributes) -> None:
        self._attributes = attributes

    def open(self) -> OpenedVideo:
        return OpenedVideo(self)

    def container(self) -> InputContainer:
        patience = self.stall + _OPENING
        began = time.monotonic()
        try:
            container = av.open(
                self._attributes.video_path,
                format=self._format(),
                options=self._options(),
                timeout=(patience, self.stall),
            )
        except (av.error.FFmpegError, ValueError) as error:
            what = "cannot be opened"
            if time.monotonic() - began >= patience:
                # Not every protocol says so when it is told to give up.
                raise self._silent(what, patience) from None
            raise self._fault(error, what) from None
        if (fault := self._unfit(container)) is not None:
            container.close()
            raise fault
        return container

    @property
    def is_live(self) -> bool:
        return _LIVE.match(self._attributes.video_path) is not None

    @property
    def stall(self) -> float:
        return self._attributes.stall

    @property
    def loops(self) -> bool:
        return self._attributes.loop

    @property
    def filters(self) -> Sequence[FilterAttributes]:
        return self._attributes.filters

    def ended(self) -> SourceFault:
        return SourceFault("ended", f"{self._shown} has ended, and does not loop", final=True)

    def lost(self, error: Exception | None = None) -> SourceFault:
        if error is None:
            return SourceFault("lost", f"{self._shown} was lost: the other side closed it")
        return self._fault(error, "was lost")

    def silent(self) -> SourceFault:
        return self._silent("was lost", self.stall)

    def without_pictures(self) -> SourceFault:
        return SourceFault("no_video", f"{self._shown} has not a single whole picture")

    def bad_filters(self, error: Exception) -> SourceFault:
        return SourceFault("bad_filters", f'the "filters" make no sense to FFmpeg: {_words(error)}')

    @property
    def _shown(self) -> str:
        path = self._attributes.video_path
        return _PRIVATE.sub("…", path) if self._is_url else path

    @property
    def _is_url(self) -> bool:
        return "://" in self._attributes.video_path

    def _format(self) -> str | None:
        given = self._attributes.input_kw_args
        wanted = given.get("format", given.get("f"))
        return str(wanted) if wanted is not None else None

    def _options(self) -> dict[str, str]:
        # Also of the pictures that are decoded just to get to know the stream.
        usual = {"max_pixels": str(MOST_PIXELS)}
        if self._is_url:
            # One connection, which firewalls let through; and a look at a few pictures, for a
            # second at most, instead of at twenty for five.
            usual |= {"rtsp_transport": "tcp", "analyzeduration": "1000000", "fpsprobesize": "3"}
        given = self._attributes.input_kw_args
        return usual | {
            key: str(value) for key, value in given.items() if key not in ("format", "f")
        }

    def _unfit(self, container: InputContainer) -> SourceFault | None:
        shown = self._shown
        if not container.streams.video:
            return SourceFault("no_video", f"{shown} has no video; say what has")
        if getattr(container.streams.video[0], "codec_context", None) is None:
            return SourceFault("no_video", f"FFmpeg here has no decoder for the video of {shown}")
        return None

    def _silent(self, what: str, seconds: float) -> SourceFault:
        return SourceFault("stalled", f"{self._shown} {what}: it sent nothing for {seconds:g} s")

    def _fault(self, error: Exception, what: str) -> SourceFault:
        shown = self._shown
        match error:
            case av.error.ConnectionRefusedError():
                return SourceFault("refused", f"{shown} {what}: nobody listens there")
            case av.error.FileNotFoundError():
                return SourceFault("not_found", f"{shown} {what}: there is no such file")
            case av.error.IsADirectoryError():
                return SourceFault("no_video", f"{shown} {what}: it is a directory")
            case av.error.PermissionError():
                return SourceFault("no_access", f"{shown} {what}: it may not be read")
            case av.error.ExitError() | av.error.TimeoutError():
                return self._silent(what, self.stall)
            case av.error.HTTPUnauthorizedError() | av.error.HTTPForbiddenError():
                return SourceFault(
                    "no_access", f"{shown} {what}: it wants another user or password"
                )
            case av.error.HTTPNotFoundError():
                return SourceFault("not_found", f"{shown} {what}: there is no such stream")
            case av.error.InvalidDataError():
                return SourceFault("no_video", f"{shown} {what}: what comes from there is no video")
            case av.error.OSError(errno=errno.EIO) if self._is_url:
                unreachable = "its host is unknown, or does not answer as it should"
                return SourceFault("unreachable", f"{shown} {what}: {unreachable}")
        return SourceFault("failed", f"{shown} {what}: {_words(error)}")


class OpenedVideo:
    def __init__(self, video: Video) -> None:
        self._video = video
        self._container = video.container()
        self._pictures = self._played() if self._has_end() else self._decoded()
        self._graph: Graph | None = None
        self._input: object = None
        # One for all pictures: each would make its own, with a thread for each processor.
        self._colours = VideoReformatter()

    @property
    def rate(self) -> float | None:
        if self._container.format.flags & _NO_TIMESTAMPS:
            return None  # what FFmpeg says is made up then
        rate = self._stream.average_rate or self._stream.guessed_rate
        low, high = _RATES
        return float(rate) if rate and low <= rate <= high else None

    def read(self) -> Shot:
        try:
            frame = next(self._pictures)
        except StopIteration:
            raise self._video.lost() from None
        except av.error.FFmpegError as error:
            raise self._video.lost(error) from None
        # Colours are converted for the pictures that somebody wants.
        colours = self._colours
        return lambda: colours.reformat(frame, format="bgr24", threads=1).to_ndarray()

    def close(self) -> None:
        # What is being read refers to the stream, which has the decoder and its threads.
        self._pictures.close()
        self._graph = None
        self._container.close()

    @property
    def _stream(self) -> VideoStream:
        return self._container.streams.video[0]

    def _has_end(self) -> bool:
        """A file, wherever it is: it is played at its own pace, and can begin again."""
        has_size = (self._container.size or 0) > 0
        return not self._video.is_live and (has_size or self._container.duration is not None)

    def _played(self) -> Generator[VideoFrame, None, None]:
        """At the pace of the file, again and again if it loops."""
        pacer = Pacer(self.rate or _USUAL_RATE)
        while True:
            frame = None
            for frame in self._decoded():
                time.sleep(pacer.pause(frame.time, time.monotonic()))
                yield frame
            if frame is None:
                raise self._video.without_pictures()
            if not self._video.loops:
                raise self._video.ended()
            self._begin_again()

    def _begin_again(self) -> None:
        """Not by seeking, which not every format and not every server can."""
        self._graph = None
        self._container.close()
        self._container = self._video.container()

    def _decoded(self) -> Generator[VideoFrame, None, None]:
        damaged = 0
        for packet in self._packets():
            try:
                frames = packet.decode()
            except av.error.InvalidDataError:
                damaged += 1
                if damaged > _MOST_DAMAGED:
                    raise
                continue
            for frame in frames:
                damaged = 0
                yield from self._filtered(frame)

    def _packets(self) -> Iterator[Packet[VideoStream]]:
        self._stream.codec_context.options = {"max_pixels": str(MOST_PIXELS)}
        asked = time.monotonic()
        for packet in self._container.demux(self._stream):
            if time.monotonic() - asked >= self._video.stall:
                # A parser that is told to give up hands out what it has left, which is old.
                raise self._video.silent()
            yield packet
            asked = time.monotonic()

    def _filtered(self, frame: VideoFrame) -> Iterator[VideoFrame]:
        if not self._video.filters:
            yield frame
            return
        try:
            graph = self._graph_for(frame)
            graph.vpush(frame)
            while True:
                yield graph.vpull()
        except (av.error.BlockingIOError, av.error.EOFError):
            return  # it wants more pictures first
        except (av.error.FFmpegError, ValueError) as error:
            raise self._video.bad_filters(error) from None

    def _graph_for(self, frame: VideoFrame) -> Graph:
        """Filters take their input to stay as it is, and read beyond a picture that shrank."""
        seen = (frame.width, frame.height, frame.format.name)
        if self._graph is None or self._input != seen:
            self._graph, self._input = filter_graph(frame, self._video.filters), seen
        return self._graph


class Pacer:
    """When each picture of a file is due."""

    def __init__(self, rate: float) -> None:
        """`rate`: pictures a second, for those that do not say when."""
        self._step = 1 / rate
        self._moment: float | None = None
        self._due: float | None = None

    def pause(self, moment: float | None, now: float) -> float:
        """Seconds to wait before the picture of that moment of the file is shown."""
        due = now if self._due is None else self._due + self._gap(moment)
        # Far behind, it goes on from here.
        self._due = due if due > now - _LONGEST_PAUSE else now
        self._moment = moment
        return max(self._due - now, 0.0)

    def _gap(self, moment: float | None) -> float:
        if moment is None or self._moment is None or moment <= self._moment:
            return self._step  # the file begins again, or does not say
        return min(moment - self._moment, _LONGEST_PAUSE)


def filter_graph(frame: VideoFrame, filters: Sequence[FilterAttributes]) -> Graph:
    """For pictures like the given one."""
    graph = Graph()
    nodes: list[Any] = [
        graph.add_buffer(
            width=frame.width, height=frame.height, format=frame.format, time_base=frame.time_base
        )
    ]
    nodes += [graph.add(each.name, _arguments(each.args, each.kw_args)) for each in filters]
    nodes.append(graph.add("buffersink"))
    graph.link_nodes(*nodes).configure()
    return graph


def _arguments(positional: Sequence[str], named: Mapping[str, Any]) -> str:
    return ":".join((*positional, *(f"{key}={value}" for key, value in named.items())))


def _words(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__

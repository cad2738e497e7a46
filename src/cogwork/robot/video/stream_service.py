"""Video: WebRTC clients choose the cameras that they watch."""

from __future__ import annotations

from viam.gen.stream.v1.stream_grpc import UnimplementedStreamServiceBase
from viam.gen.stream.v1.stream_pb2 import (
    AddStreamRequest,
    AddStreamResponse,
    GetStreamOptionsRequest,
    GetStreamOptionsResponse,
    ListStreamsResponse,
    RemoveStreamRequest,
    RemoveStreamResponse,
    Resolution,
    SetStreamOptionsRequest,
    SetStreamOptionsResponse,
)

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.core.workers import Workers
from cogwork.graph.name import Api, ResourceName
from cogwork.media.encoded_feed import EncodedFeed, find_feed
from cogwork.resource.frame import Frame, get_frames
from cogwork.robot.machine import Machine
from cogwork.robot.video.adaptive_encoder import Size
from cogwork.robot.video.video_streams import VideoStreams
from cogwork.wire.table.handlers import Method, Stream, methods_from_service
from cogwork.wire.transports.webrtc_peers import WebRtcPeers

CAMERA_API = Api.parse("rdk:component:camera")
_MIN_SIZE = 16
_DIVISORS = (1, 2, 3, 4, 6, 8)
"""Divisors of the camera's size, which give the sizes that clients can choose."""


class NotOverWebRtc(CogworkError):
    status = "FAILED_PRECONDITION"


class NoPicture(CogworkError):
    status = "UNAVAILABLE"


class CameraFrames:
    """The latest color image of each camera, for any type of camera."""

    def __init__(self, machine: Machine, clock: Clock) -> None:
        self._machine = machine
        self._clock = clock
        self._workers = Workers("video", waiting=32)

    async def get_newest(self, name: str) -> Frame:
        """Return the latest color image of a camera. Raise CogworkError."""
        camera = self._machine.find(ResourceName.from_short(CAMERA_API, name))
        frames = await get_frames(camera, self._workers, self._clock)
        color = [frame for frame in frames if not frame.is_depth]
        if not color:
            raise NoPicture(f'camera "{name}" has no color image')
        return color[0]

    def find_feed(self, name: str) -> EncodedFeed | None:
        """Return the video that a camera encodes itself; None if it encodes none."""
        try:
            return find_feed(self._machine.find(ResourceName.from_short(CAMERA_API, name)))
        except CogworkError:
            return None

    def has(self, name: str) -> bool:
        """Return whether there is a camera with this name, which may omit its remote."""
        return self._machine.resolve(ResourceName.from_short(CAMERA_API, name)) in (
            self._machine.nodes
        )

    def list_names(self) -> list[str]:
        return sorted(name.short for name in self._machine.nodes if name.api == CAMERA_API)


class _StreamService(UnimplementedStreamServiceBase):
    def __init__(
        self, peers: WebRtcPeers | None, videos: VideoStreams | None, frames: CameraFrames
    ) -> None:
        self._peers = peers
        self._videos = videos
        self._frames = frames

    async def ListStreams(self, stream: Stream) -> None:  # type: ignore[override]
        await stream.recv_message()
        await stream.send_message(ListStreamsResponse(names=self._frames.list_names()))

    async def AddStream(self, stream: Stream) -> None:  # type: ignore[override]
        request: AddStreamRequest = await stream.recv_message()
        videos, peer_id = self._find_peer(stream)
        name = self._find_camera(request.name)
        await videos.add(peer_id, name)
        assert self._peers is not None
        self._peers.on_end(peer_id, lambda: videos.forget(peer_id))
        await stream.send_message(AddStreamResponse())

    async def RemoveStream(self, stream: Stream) -> None:  # type: ignore[override]
        request: RemoveStreamRequest = await stream.recv_message()
        videos, peer_id = self._find_peer(stream)
        await videos.remove(peer_id, _plain_name(request.name))
        await stream.send_message(RemoveStreamResponse())

    async def GetStreamOptions(self, stream: Stream) -> None:  # type: ignore[override]
        request: GetStreamOptionsRequest = await stream.recv_message()
        frame = await self._frames.get_newest(self._find_camera(request.name))
        sizes = [Resolution(width=each.width, height=each.height) for each in _list_sizes(frame)]
        await stream.send_message(GetStreamOptionsResponse(resolutions=sizes))

    async def SetStreamOptions(self, stream: Stream) -> None:  # type: ignore[override]
        request: SetStreamOptionsRequest = await stream.recv_message()
        videos, peer_id = self._find_peer(stream)
        name = self._find_camera(request.name)
        size = None
        if request.HasField("resolution"):
            size = await self._check_size(name, request.resolution)
        await videos.resize(peer_id, name, size)
        await stream.send_message(SetStreamOptionsResponse())

    def _find_peer(self, stream: Stream) -> tuple[VideoStreams, str]:
        peer_id = self._peers.find(stream.peer) if self._peers is not None else None
        if peer_id is None or self._videos is None:
            raise NotOverWebRtc("can only add a stream over a WebRTC based connection")
        return self._videos, peer_id

    def _find_camera(self, name: str) -> str:
        plain = _plain_name(name)
        if not self._frames.has(plain):
            known = ", ".join(self._frames.list_names()) or "none"
            raise InvalidRequest(f'unknown stream "{plain[:100]}"; choose one of: {known}')
        return plain

    async def _check_size(self, name: str, wanted: Resolution) -> Size:
        size = Size(wanted.width, wanted.height)
        sizes = _list_sizes(await self._frames.get_newest(name))
        if size not in sizes:
            listed = ", ".join(f"{width}x{height}" for width, height in sizes)
            raise InvalidRequest(
                f"this stream has no size {size.width}x{size.height}; choose one of: {listed}"
            )
        return size


def _list_sizes(frame: Frame) -> list[Size]:
    """Return the sizes that clients can choose. They are few, because each needs its own
    encoder."""
    return [
        Size(frame.width // divisor // 2 * 2, frame.height // divisor // 2 * 2)
        for divisor in _DIVISORS
        if min(frame.width, frame.height) // divisor >= _MIN_SIZE
    ]


def _plain_name(name: str) -> str:
    """Return the name of the camera. Names of streams have `+` instead of `:`."""
    return name.replace("+", ":")


def stream_methods(
    peers: WebRtcPeers | None, videos: VideoStreams | None, frames: CameraFrames
) -> list[Method]:
    """Return the methods of the stream service. `peers` and `videos` are None if WebRTC is off."""
    return methods_from_service(_StreamService(peers, videos, frames))

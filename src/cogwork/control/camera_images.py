"""Camera images for browsers."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from grpclib.const import Status
from starlette.responses import PlainTextResponse, Response

from cogwork.control.coalescing import Coalescer
from cogwork.control.sliced_response import SlicedResponse
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError, InvalidName
from cogwork.core.workers import run_in_thread
from cogwork.graph.name import Api, ResourceName
from cogwork.media.image_header import JPEG, BadImage, read_header
from cogwork.resource.frame import produces_frames
from cogwork.robot.machine import Machine
from cogwork.wire.table.status import status_of

CAMERA_API = Api.parse("rdk:component:camera")
_TIMEOUT = 5.0
"""Timeout in seconds for an image."""
_MIN_INTERVAL = 1 / 30
"""Minimum seconds between two requests to a camera, regardless of the number of browsers."""
_UNAVAILABLE = 503
_BAD_GATEWAY = 502
_HTTP_STATUS = {Status.NOT_FOUND: 404, Status.INVALID_ARGUMENT: 404, Status.DEADLINE_EXCEEDED: 504}


class NoImage(CogworkError):
    """A camera returned no images."""


class NotAnImage(CogworkError):
    """A camera returned invalid data, which must not be sent to a browser."""


class CameraImages:
    """The latest image of each camera, fetched once for all browsers that wait for it."""

    def __init__(self, machine: Machine, clock: Clock) -> None:
        self._machine = machine
        self._clock = clock
        self._cameras: dict[str, Coalescer[Response]] = {}

    async def get_newest(self, name: str) -> Response:
        camera = self._cameras.get(name)
        if camera is None:
            self._forget_removed_cameras()
            camera = Coalescer(partial(fetch_image, self._machine, name), self._clock, _pause_after)
            if self._has_camera(name):
                self._cameras[name] = camera
        return await camera.get()

    def _forget_removed_cameras(self) -> None:
        self._cameras = {
            name: each for name, each in self._cameras.items() if self._has_camera(name)
        }

    def _has_camera(self, name: str) -> bool:
        try:
            return ResourceName.from_short(CAMERA_API, name) in self._machine.nodes
        except InvalidName:
            return False


def _pause_after(_: float) -> float:
    return _MIN_INTERVAL


async def fetch_image(machine: Machine, name: str) -> Response:
    try:
        async with asyncio.timeout(_TIMEOUT):
            camera = machine.find(ResourceName.from_short(CAMERA_API, name))
            data, kind = await _read_image(camera)
    except NotAnImage as error:
        return PlainTextResponse(f"{error}\n", _BAD_GATEWAY)
    except Exception as error:  # third-party cameras may raise anything
        status, message = status_of(error, f'camera "{name}"')
        return PlainTextResponse(
            f"{machine.redact(message)}\n", _HTTP_STATUS.get(status, _UNAVAILABLE)
        )
    return SlicedResponse(data, media_type=kind)


async def _read_image(camera: Any) -> tuple[bytes, str]:
    """Return the first color image; if there is none, the first image."""
    if produces_frames(camera):
        frames = await camera.frames()
        frame = next((each for each in frames if not each.is_depth), None)
        if frame is not None:
            return await frame.encode(JPEG), JPEG
    images, _ = await camera.get_images()
    if not images:
        raise NoImage(f'camera "{camera.name}" returned no images')
    data = images[0].data
    return data, await _detect_mime_type(camera.name, data)


async def _detect_mime_type(name: str, data: Any) -> str:
    """Return the MIME type of the bytes. Do not trust the type that a camera declares, which may be
    anything, such as text/html."""
    try:
        header = await run_in_thread("image-header", _TIMEOUT, read_header, data)
    except BadImage as error:
        raise NotAnImage(f'camera "{name}" returned an invalid image: {error}') from error
    return header.mime_type

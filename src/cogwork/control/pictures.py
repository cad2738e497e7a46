"""What the cameras of a machine see, for browsers."""

from __future__ import annotations

import asyncio
from typing import Any

from grpclib.const import Status
from starlette.responses import PlainTextResponse, Response

from cogwork.core.errors import CogworkError
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.frame import offers_frames
from cogwork.resource.image_header import JPEG
from cogwork.robot.machine import Machine
from cogwork.wire.status import status_of

CAMERA = Api.parse("rdk:component:camera")
_PATIENCE = 5.0
"""Seconds that a browser waits for a picture."""
_UNAVAILABLE = 503
_CODES = {Status.NOT_FOUND: 404, Status.INVALID_ARGUMENT: 404, Status.DEADLINE_EXCEEDED: 504}


class NoPicture(CogworkError):
    """A camera that answers, and has nothing to show."""


async def newest_picture(machine: Machine, name: str) -> Response:
    try:
        async with asyncio.timeout(_PATIENCE):
            camera = machine.find(ResourceName.of(CAMERA, name))
            data, kind = await _picture(camera)
    except Exception as error:  # others write cameras that raise anything
        status, words = status_of(error, f'camera "{name}"')
        return PlainTextResponse(f"{words}\n", _CODES.get(status, _UNAVAILABLE))
    return Response(data, media_type=kind, headers={"Cache-Control": "no-store"})


async def _picture(camera: Any) -> tuple[bytes, str]:
    """The first in colour, or whatever there is."""
    if offers_frames(camera):
        frames = await camera.frames()
        frame = next((each for each in frames if not each.is_depth), None)
        if frame is not None:
            return await frame.encoded(JPEG), JPEG
    images, _ = await camera.get_images()
    if not images:
        raise NoPicture(f'camera "{camera.name}" has no picture')
    return images[0].data, str(images[0].mime_type)

"""`cogwork camera snap`: what a camera of a running machine sees, in a file."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc

from cogwork.cli.dial import Misused, dialed, resources_of
from cogwork.cli.terminal import FAULTS, FINE, USAGE, complain, print_json, write_picture
from cogwork.config.diagnose import did_you_mean, printable
from cogwork.core.errors import NotFound
from cogwork.resource import sdk
from cogwork.resource.camera_service import MIME_TYPE
from cogwork.resource.image_header import DEPTH, JPEG, PNG, RGBA, BadImage, Header, read_header

assert sdk.VERSION  # ahead of whatever else imports the SDK
from viam.gen.component.camera.v1 import camera_pb2 as messages  # noqa: E402

_API = "rdk:component:camera"
_TYPES = {".jpg": JPEG, ".jpeg": JPEG, ".png": PNG, ".rgba": RGBA, ".dep": DEPTH}
_SUFFIXES = {JPEG: ".jpg", PNG: ".png", RGBA: ".rgba", DEPTH: ".dep"}
TIMEOUT = 20.0


def snap(arguments: argparse.Namespace) -> int:
    return dialed(arguments.address, lambda channel: _snap(channel, arguments))


def _snap(channel: grpc.Channel, arguments: argparse.Namespace) -> int:
    asked = _type_of(arguments.output) if arguments.output is not None else None
    camera = camera_of(channel, arguments.name)
    try:
        shot = _shot_of_type(camera, Wanted(arguments.source, depth=asked == DEPTH), asked)
    except NotFound as error:
        complain(str(error))
        return FAULTS
    except BadImage as error:
        complain(f'camera "{camera.name}" sends no picture: {error}')
        return FAULTS
    file = _file(arguments.output, camera.name, shot)
    try:
        write_picture(file, shot.data)
    except OSError as error:
        complain(f"cannot write {file}: {error.strerror}")
        return USAGE
    if arguments.json:
        print_json(_for_programs(file, shot))
    else:
        print(_for_people(file, shot))
    return FINE


def _type_of(file: str) -> str:
    mime_type = _TYPES.get(Path(file).suffix.lower())
    if mime_type is None:
        known = ", ".join(_TYPES)
        raise Misused(f"{file} does not say which type of picture it shall be; end it in {known}")
    return mime_type


def _shot_of_type(camera: Camera, wanted: Wanted, asked: str | None) -> Shot:
    """A camera that has colour and depth can only be asked for a type that both have, so it is
    first asked for what it has."""
    shot = camera.shot(wanted)
    mime_type = asked or (PNG if shot.header.is_depth else JPEG)
    if shot.header.mime_type != mime_type:
        shot = camera.shot(shot.again(wanted, mime_type))
    if shot.header.mime_type != mime_type:
        complain(
            f'camera "{camera.name}" sends {shot.header.mime_type} when it is asked for '
            f"{mime_type}: that is what is written"
        )
    return shot


def _file(asked: str | None, name: str, shot: Shot) -> Path:
    """As asked for, with the suffix of what it is."""
    suffix = _SUFFIXES[shot.header.mime_type]
    if asked is None:
        return Path(f"{name}{suffix}")
    file = Path(asked)
    return file if _type_of(asked) == shot.header.mime_type else file.with_suffix(suffix)


def _for_programs(file: Path, shot: Shot) -> dict[str, Any]:
    return {
        "file": str(file),
        "width": shot.header.width,
        "height": shot.header.height,
        "mime_type": shot.header.mime_type,
        "bytes": len(shot.data),
        "source": shot.source,
        "captured_at": shot.captured_at,
        "age_seconds": shot.age,
    }


def _for_people(file: Path, shot: Shot) -> str:
    header = shot.header
    words = [f"{header.width}x{header.height} {header.mime_type}", _size(len(shot.data))]
    if shot.age is not None:
        words.append(f"{shot.age:.2f} s old")
    if shot.annotations:
        words.append(f"{shot.annotations} annotation{'s' if shot.annotations > 1 else ''}")
    return f"{file}: {', '.join(words)}"


def _size(count: int) -> str:
    if count < 1000:
        return f"{count} bytes"
    return f"{count / 1e3:.0f} kB" if count < 999_500 else f"{count / 1e6:.1f} MB"


@dataclass(frozen=True, slots=True)
class Wanted:
    source: str | None = None
    """None: the first in colour, or the first there is."""
    depth: bool = False
    """Rather the first with distances."""
    mime_type: str | None = None
    """None: its usual one."""


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture as it came."""

    data: bytes
    header: Header
    source: str
    alone: bool
    """It is the only one that came, whatever its source."""
    captured_at: str | None
    """As JSON has it."""
    age: float | None
    """Seconds, when it came."""
    annotations: int

    def again(self, wanted: Wanted, mime_type: str | None) -> Wanted:
        """This one alone, as far as its camera tells its pictures apart."""
        source = wanted.source if self.alone else self.source or None
        return replace(wanted, source=source, mime_type=mime_type)


class Camera:
    def __init__(self, channel: grpc.Channel, name: str) -> None:
        self.name = name
        self._get_images = channel.unary_unary(
            "/viam.component.camera.v1.CameraService/GetImages",
            request_serializer=messages.GetImagesRequest.SerializeToString,
            response_deserializer=messages.GetImagesResponse.FromString,
        )

    def shot(self, wanted: Wanted, timeout: float = TIMEOUT) -> Shot:
        """Raises NotFound if it has no such picture, BadImage if what comes is none."""
        sources = [] if wanted.source is None else [wanted.source]
        request = messages.GetImagesRequest(name=self.name, filter_source_names=sources)
        if wanted.mime_type is not None:
            request.extra.update({MIME_TYPE: wanted.mime_type})
        reply = self._get_images(request, timeout=timeout)
        image = self._chosen(reply.images, wanted)
        captured_at, age = _time_of(reply)
        return Shot(
            image.image,
            read_header(image.image),
            image.source_name,
            len(reply.images) == 1,
            captured_at,
            age,
            len(image.annotations.bboxes) + len(image.annotations.classifications),
        )

    def _chosen(self, images: Sequence[Any], wanted: Wanted) -> Any:
        if not images:
            raise NotFound(f'camera "{self.name}" answers, and has no picture')
        if wanted.source is None:
            fitting = (each for each in images if _is_depth(each.image) == wanted.depth)
            return next(fitting, images[0])
        for image in images:
            if image.source_name == wanted.source:
                return image
        has = ", ".join(f'"{printable(image.source_name)}"' for image in images)
        raise NotFound(f'camera "{self.name}" has no picture "{wanted.source}"; it has {has}')


def _time_of(reply: messages.GetImagesResponse) -> tuple[str, float] | tuple[None, None]:
    """When the picture was taken, and how many seconds ago."""
    moment = reply.response_metadata.captured_at
    try:
        text: str = moment.ToJsonString()
    except ValueError:  # no time that any calendar has
        return None, None
    nanoseconds = moment.ToNanoseconds()
    return (text, time.time() - nanoseconds / 1e9) if nanoseconds else (None, None)


def _is_depth(data: bytes) -> bool:
    try:
        return read_header(data).is_depth
    except BadImage:
        return False


def camera_of(channel: grpc.Channel, wanted: str) -> Camera:
    resources = resources_of(channel)
    found = [each for each, r in resources.items() if wanted in (each, r.name)]
    cameras = {each: r.name for each, r in resources.items() if each.startswith(f"{_API}/")}
    for each in found:
        if each in cameras:
            return Camera(channel, cameras[each])
    if found:
        raise Misused(f'"{wanted}" is no camera: it is {" and ".join(found)}')
    names = ", ".join(f'"{name}"' for name in cameras.values())
    hint = did_you_mean(wanted, cameras.values()) or f"it has {names or 'no camera at all'}"
    raise Misused(f'the machine has no camera "{wanted}"; {hint}')

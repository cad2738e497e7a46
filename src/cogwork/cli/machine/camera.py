"""`cogwork camera snap`: save an image of a camera to a file."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc

from cogwork.cli.client.grpc_client import CommandError, list_resources, match_name, with_channel
from cogwork.cli.terminal import (
    EXIT_FAILURE,
    EXIT_OK,
    EXIT_USAGE,
    print_error,
    print_json,
    write_picture,
)
from cogwork.config.check.diagnostics import did_you_mean, replace_unprintable
from cogwork.core.errors import NotFound
from cogwork.core.os_error_text import write_reason
from cogwork.media.image_header import DEPTH, JPEG, PNG, RGBA, BadImage, ImageHeader, read_header
from cogwork.resource.sdk import clean_import as sdk
from cogwork.resource.services.camera import MIME_TYPE_KEY

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.component.camera.v1 import camera_pb2 as messages  # noqa: E402

_API = "rdk:component:camera"
_TYPES_BY_SUFFIX = {".jpg": JPEG, ".jpeg": JPEG, ".png": PNG, ".rgba": RGBA, ".dep": DEPTH}
_SUFFIXES_BY_TYPE = {JPEG: ".jpg", PNG: ".png", RGBA: ".rgba", DEPTH: ".dep"}
TIMEOUT = 20.0


def snap(arguments: argparse.Namespace) -> int:
    return with_channel(arguments.address, lambda channel: _snap(channel, arguments))


def _snap(channel: grpc.Channel, arguments: argparse.Namespace) -> int:
    asked = _type_from_suffix(arguments.output) if arguments.output is not None else None
    camera = find_camera(channel, arguments.name)
    try:
        shot = _capture_as_type(camera, ImageRequest(arguments.source, depth=asked == DEPTH), asked)
    except NotFound as error:
        print_error(str(error))
        return EXIT_FAILURE
    except BadImage as error:
        print_error(f'camera "{camera.name}" sent an invalid image: {error}')
        return EXIT_FAILURE
    file = _choose_file(arguments.output, camera.name, shot)
    try:
        write_picture(file, shot.data)
    except OSError as error:
        print_error(f"cannot write {file}: {write_reason(error)}")
        return EXIT_USAGE
    if arguments.json:
        print_json(_to_json(file, shot))
    else:
        print(_format_summary(file, shot))
    return EXIT_OK


def _type_from_suffix(file: str) -> str:
    mime_type = _TYPES_BY_SUFFIX.get(Path(file).suffix.lower())
    if mime_type is None:
        known = ", ".join(_TYPES_BY_SUFFIX)
        raise CommandError(
            f"cannot determine the image type from {file}; use one of the suffixes {known}"
        )
    return mime_type


def _capture_as_type(
    camera: RemoteCamera, wanted: ImageRequest, asked: str | None
) -> CapturedImage:
    """Capture an image of the type `asked`; None selects a type that fits the image.

    The first request names no type, because the camera would convert all its images. If the image
    has another type, a second request asks for this image alone in the right type.
    """
    shot = camera.capture(wanted)
    mime_type = asked or (PNG if shot.header.is_depth else JPEG)
    if shot.header.mime_type != mime_type:
        shot = camera.capture(shot.next_request(wanted, mime_type))
    if shot.header.mime_type != mime_type:
        print_error(
            f'camera "{camera.name}" does not support {mime_type}; writing '
            f"{shot.header.mime_type} instead"
        )
    return shot


def _choose_file(asked: str | None, name: str, shot: CapturedImage) -> Path:
    """Return the requested file, with a suffix that matches the image type."""
    suffix = _SUFFIXES_BY_TYPE[shot.header.mime_type]
    if asked is None:
        return Path(f"{name}{suffix}")
    file = Path(asked)
    return file if _type_from_suffix(asked) == shot.header.mime_type else file.with_suffix(suffix)


def _to_json(file: Path, shot: CapturedImage) -> dict[str, Any]:
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


def _format_summary(file: Path, shot: CapturedImage) -> str:
    header = shot.header
    words = [f"{header.width}x{header.height} {header.mime_type}", _format_size(len(shot.data))]
    if shot.age is not None:
        words.append(f"{shot.age:.2f} s old")
    if shot.annotations:
        words.append(f"{shot.annotations} annotation{'s' if shot.annotations > 1 else ''}")
    return f"{file}: {', '.join(words)}"


def _format_size(count: int) -> str:
    if count < 1000:
        return f"{count} bytes"
    return f"{count / 1e3:.0f} kB" if count < 999_500 else f"{count / 1e6:.1f} MB"


@dataclass(frozen=True, slots=True)
class ImageRequest:
    source: str | None = None
    """The name of the source; None for the first color image or, if there is none, the first
    image."""
    depth: bool = False
    """Whether to prefer the first depth image."""
    mime_type: str | None = None
    """The MIME type; None for the camera's own type."""


@dataclass(frozen=True, slots=True)
class CapturedImage:
    """An encoded image from a camera."""

    data: bytes
    header: ImageHeader
    source: str
    is_only: bool
    """Whether the reply contained no other image."""
    captured_at: str | None
    """Capture time in the JSON format of protobuf."""
    age: float | None
    """Seconds between capture and arrival."""
    annotations: int

    def next_request(self, wanted: ImageRequest, mime_type: str | None) -> ImageRequest:
        """Return a request for this image alone, if the camera names its sources."""
        source = wanted.source if self.is_only else self.source or None
        return replace(wanted, source=source, mime_type=mime_type)


class RemoteCamera:
    def __init__(self, channel: grpc.Channel, name: str) -> None:
        self.name = name
        self._get_images = channel.unary_unary(
            "/viam.component.camera.v1.CameraService/GetImages",
            request_serializer=messages.GetImagesRequest.SerializeToString,
            response_deserializer=messages.GetImagesResponse.FromString,
        )

    def capture(self, wanted: ImageRequest, timeout: float = TIMEOUT) -> CapturedImage:
        """Capture an image.

        Raise NotFound if the camera has no such image, BadImage if the data is not an image.
        """
        sources = [] if wanted.source is None else [wanted.source]
        request = messages.GetImagesRequest(name=self.name, filter_source_names=sources)
        if wanted.mime_type is not None:
            request.extra.update({MIME_TYPE_KEY: wanted.mime_type})
        reply = self._get_images(request, timeout=timeout)
        image = self._select_image(reply.images, wanted)
        captured_at, age = _capture_time(reply)
        return CapturedImage(
            image.image,
            read_header(image.image),
            image.source_name,
            len(reply.images) == 1,
            captured_at,
            age,
            len(image.annotations.bboxes) + len(image.annotations.classifications),
        )

    def _select_image(self, images: Sequence[Any], wanted: ImageRequest) -> Any:
        if not images:
            raise NotFound(f'camera "{self.name}" returned no images')
        if wanted.source is None:
            fitting = (each for each in images if _is_depth(each.image) == wanted.depth)
            return next(fitting, images[0])
        for image in images:
            if image.source_name == wanted.source:
                return image
        has = ", ".join(f'"{replace_unprintable(image.source_name)}"' for image in images)
        raise NotFound(f'camera "{self.name}" has no source "{wanted.source}"; it has {has}')


def _capture_time(reply: messages.GetImagesResponse) -> tuple[str, float] | tuple[None, None]:
    """Return the time of the capture, and the seconds since then."""
    moment = reply.response_metadata.captured_at
    try:
        text: str = moment.ToJsonString()
    except ValueError:  # the camera sent a time outside the valid range
        return None, None
    nanoseconds = moment.ToNanoseconds()
    return (text, time.time() - nanoseconds / 1e9) if nanoseconds else (None, None)


def _is_depth(data: bytes) -> bool:
    try:
        return read_header(data).is_depth
    except BadImage:
        return False


def find_camera(channel: grpc.Channel, wanted: str) -> RemoteCamera:
    resources = list_resources(channel)
    found = match_name(resources, wanted)
    cameras = {each: r.name for each, r in resources.items() if each.startswith(f"{_API}/")}
    matching = [each for each in found if each in cameras]
    if len(matching) == 1:
        return RemoteCamera(channel, cameras[matching[0]])
    if matching:
        choices = " or ".join(cameras[each] for each in matching)
        raise CommandError(f'several cameras are named "{wanted}"; use {choices}')
    if found:
        raise CommandError(f'"{wanted}" is not a camera but {" and ".join(found)}')
    names = ", ".join(f'"{name}"' for name in cameras.values())
    hint = did_you_mean(wanted, cameras.values()) or f"it has {names or 'no cameras'}"
    raise CommandError(f'the machine has no camera "{wanted}"; {hint}')

"""`cogwork camera watch`: show a camera's images in the terminal."""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import sys
import textwrap
import time
from collections import deque
from typing import Protocol

import grpc

from cogwork.cli.client.grpc_client import format_rpc_error, with_channel
from cogwork.cli.machine.camera import (
    TIMEOUT,
    CapturedImage,
    ImageRequest,
    RemoteCamera,
    find_camera,
)
from cogwork.cli.terminal import EXIT_OK, EXIT_USAGE, Screen, alternate_screen, print_error
from cogwork.config.check.diagnostics import replace_unprintable
from cogwork.core.errors import NotFound
from cogwork.media.image_header import JPEG, BadImage
from cogwork.resource.model import Extra, MissingExtra

_DECODER = Extra("camera", ("cv2",))
_FRAME_INTERVAL = 1 / 30
_RETRY_DELAY = 0.5
"""Seconds between two attempts while no image is available."""
_RATE_WINDOW = 2.0


def watch(arguments: argparse.Namespace) -> int:
    return with_channel(arguments.address, lambda channel: _watch(channel, arguments))


def _watch(channel: grpc.Channel, arguments: argparse.Namespace) -> int:
    camera = find_camera(channel, arguments.name)
    seconds = math.inf if arguments.seconds is None else arguments.seconds
    watching = CameraWatcher(camera, arguments.address, ImageRequest(arguments.source), seconds)
    if not sys.stdout.isatty():
        watching.run(LineView())
        return EXIT_OK
    try:
        asyncio.run(_DECODER.load())
    except MissingExtra as error:
        print_error(str(error))
        return EXIT_USAGE
    with alternate_screen() as screen:
        watching.run(ScreenView(screen))
    return EXIT_OK


class CameraView(Protocol):
    def show(self, shot: CapturedImage, fresh: bool, status: str) -> None:
        """Show an image; raise BadImage. An image that is not `fresh` was shown before."""

    def show_error(self, reason: str, status: str) -> None:
        """Show the reason why no image is available."""


class CameraWatcher:
    """Polls a camera and shows its images, requesting each one after the previous one is shown."""

    def __init__(
        self, camera: RemoteCamera, address: str, wanted: ImageRequest, seconds: float
    ) -> None:
        self._camera = camera
        self._name = replace_unprintable(camera.name)
        self._address = address
        self._initial_request = self._request = wanted
        self._can_select = True
        """Whether the camera supports requests for a single source and type."""
        self._seconds = seconds
        self._end = math.inf
        self._last_captured_at: str | None = None
        self._frame_rate = FrameRate()

    def run(self, view: CameraView) -> None:
        begun = time.monotonic()
        self._end = begun + self._seconds
        while begun < self._end:
            pause = self._poll(view, begun)
            left = min(begun + pause, self._end) - time.monotonic()
            time.sleep(max(0.0, left))
            begun = time.monotonic()

    def _poll(self, view: CameraView, now: float) -> float:
        """Show one image and return the seconds from `now` to the next poll."""
        timeout = min(TIMEOUT, self._end - now + 0.1)
        try:
            shot = self._camera.capture(self._request, timeout)
            self._show(view, shot)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED and time.monotonic() >= self._end:
                return 0.0  # --seconds elapsed: not an error
            reason = format_rpc_error(error, self._address)
            self._stop_selecting(unless=error.code() is grpc.StatusCode.UNAVAILABLE)
        except (NotFound, BadImage) as error:
            reason = str(error)
            self._stop_selecting()
        else:
            self._request = self._next_request(shot)
            return _FRAME_INTERVAL
        view.show_error(replace_unprintable(" ".join(reason.split())), f"{self._name}  no image")
        return time.monotonic() - now + _RETRY_DELAY

    def _show(self, view: CameraView, shot: CapturedImage) -> None:
        now = time.monotonic()
        fresh = shot.captured_at is None or shot.captured_at != self._last_captured_at
        if fresh:
            self._frame_rate.count(now)
        view.show(shot, fresh, self._format_status(shot, self._frame_rate.rate(now)))
        self._last_captured_at = shot.captured_at

    def _format_status(self, shot: CapturedImage, rate: float | None) -> str:
        words = [self._name, f"{shot.header.width}x{shot.header.height}"]
        if rate is not None:
            words.append(f"{rate:.1f} frames/s")
        if shot.age is not None:
            words.append(f"age {shot.age:.2f} s")
        if shot.source:
            words.append(f"source {replace_unprintable(shot.source)}")
        return "  ".join(words)

    def _next_request(self, shot: CapturedImage) -> ImageRequest:
        """Return a request for the shown image alone. Request color images as JPEG, to save
        bandwidth."""
        if not self._can_select:
            return self._initial_request
        return shot.next_request(self._request, None if shot.header.is_depth else JPEG)

    def _stop_selecting(self, unless: bool = False) -> None:
        """Return to the initial request, because the camera may have been replaced.

        If the camera failed on a request for a single image, send no more such requests: the camera
        would fail again after every image.
        """
        self._can_select &= unless or self._request == self._initial_request
        self._request = self._initial_request


class FrameRate:
    """The rate of images per second over a sliding window."""

    def __init__(self) -> None:
        self._first_time: float | None = None
        self._times: deque[float] = deque(maxlen=128)

    def count(self, now: float) -> None:
        self._first_time = now if self._first_time is None else self._first_time
        self._times.append(now)

    def rate(self, now: float) -> float | None:
        """Return images per second, or None before there are enough samples."""
        recent = [each for each in self._times if now - each < _RATE_WINDOW]
        if len(recent) > 1:
            return (len(recent) - 1) / (recent[-1] - recent[0])
        return None if self._first_time is None or now - self._first_time < _RATE_WINDOW else 0.0


class LineView:
    """Prints the status once a second if standard output is not a terminal."""

    def __init__(self) -> None:
        self._next_print = -math.inf

    def show(self, _: CapturedImage, fresh: bool, status: str) -> None:
        del fresh
        self._print_line(status)

    def show_error(self, reason: str, status: str) -> None:
        self._print_line(f"{status}: {reason}")

    def _print_line(self, line: str) -> None:
        now = time.monotonic()
        if now >= self._next_print:
            self._next_print = now + 1.0
            print(line, flush=True)


class ScreenView:
    """Draws the image on the whole screen, with the status in the last line."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._truecolor = os.environ.get("COLORTERM") in ("truecolor", "24bit")
        self._layout: object = None
        """The sizes that determine the layout. The screen is cleared when they change."""
        self._status_row = 0

    def show(self, shot: CapturedImage, fresh: bool, status: str) -> None:
        columns, lines = self._screen.size()
        layout = columns, lines, shot.header.width, shot.header.height
        shown = ""
        if fresh or layout != self._layout:
            shown = self._render_image(shot, columns, lines)
            self._status_row = shown.count("\n") + 2
            shown = f"{self._begin_frame(layout)}{shown}"
        # Leave the last column free: the cursor would stay there and \x1b[K erase its character.
        self._screen.write(f"{shown}\x1b[{self._status_row};1H{status[: columns - 1]}\x1b[K")

    def show_error(self, reason: str, status: str) -> None:
        columns, lines = self._screen.size()
        layout = columns, lines, reason
        if layout != self._layout:
            wrapped = textwrap.wrap(reason, columns)[: lines - 1]
            text = "\n".join([*wrapped, status[:columns]])
            self._screen.write(f"{self._begin_frame(layout)}{text}")

    def _render_image(self, shot: CapturedImage, columns: int, lines: int) -> str:
        from cogwork.cli.machine.ansi_image import render_ansi
        from cogwork.media.image import decode

        return render_ansi(decode(shot.data), columns, max(1, lines - 1), self._truecolor)

    def _begin_frame(self, layout: object) -> str:
        clear = "" if layout == self._layout else "\x1b[2J"
        self._layout = layout
        return f"{clear}\x1b[H"

"""`cogwork camera watch`: what a camera of a running machine sees, in the terminal."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import os
import sys
import textwrap
import time
from collections import deque
from typing import Protocol

import grpc

from cogwork.cli.camera import TIMEOUT, Camera, Shot, Wanted, camera_of
from cogwork.cli.dial import dialed, failure
from cogwork.cli.terminal import FINE, USAGE, Screen, complain, whole_screen
from cogwork.config.diagnose import printable
from cogwork.core.errors import NotFound
from cogwork.resource.image_header import JPEG, BadImage
from cogwork.resource.model import Extra, MissingExtra

_DECODER = Extra("camera", ("cv2",))
_PERIOD = 1 / 30
_PAUSE = 0.5
"""Seconds until a camera without a picture is asked again."""
_RATED_OVER = 2.0


def watch(arguments: argparse.Namespace) -> int:
    with contextlib.suppress(KeyboardInterrupt):
        return dialed(arguments.address, lambda channel: _watch(channel, arguments))
    return FINE


def _watch(channel: grpc.Channel, arguments: argparse.Namespace) -> int:
    camera = camera_of(channel, arguments.name)
    seconds = math.inf if arguments.seconds is None else arguments.seconds
    watching = Watching(camera, arguments.address, Wanted(arguments.source), seconds)
    if not sys.stdout.isatty():
        watching.run(Lines())
        return FINE
    try:
        asyncio.run(_DECODER.load())
    except MissingExtra as error:
        complain(str(error))
        return USAGE
    with whole_screen() as screen:
        watching.run(Drawing(screen))
    return FINE


class View(Protocol):
    def show(self, shot: Shot, fresh: bool, status: str) -> None:
        """Raises BadImage. What is not fresh has been shown before."""

    def explain(self, reason: str, status: str) -> None:
        """Why there is no picture."""


class Watching:
    """One picture after the other, each asked for when the one before is shown."""

    def __init__(self, camera: Camera, address: str, wanted: Wanted, seconds: float) -> None:
        self._camera = camera
        self._address = address
        self._asked = self._wanted = wanted
        self._chooses = True
        """Whether the camera can be asked for one of its pictures, and for a type."""
        self._end = time.monotonic() + seconds
        self._last: str | None = None
        self._pace = Pace()

    def run(self, view: View) -> None:
        while (begun := time.monotonic()) < self._end:
            pause = self._look(view, begun)
            left = min(begun + pause, self._end) - time.monotonic()
            time.sleep(max(0.0, left))

    def _look(self, view: View, now: float) -> float:
        """Seconds from then until the next look."""
        # A call that is cut off by the end is none that failed.
        timeout = min(TIMEOUT, self._end - now + 0.1)
        try:
            shot = self._camera.shot(self._wanted, timeout)
            self._show(view, shot)
        except grpc.RpcError as error:
            reason = failure(error, self._address)
            self._give_up_choosing(unless=error.code() is grpc.StatusCode.UNAVAILABLE)
        except (NotFound, BadImage) as error:
            reason = str(error)
            self._give_up_choosing()
        else:
            self._wanted = self._more_of(shot)
            return _PERIOD
        if time.monotonic() < self._end:
            view.explain(printable(" ".join(reason.split())), f"{self._camera.name}  no picture")
        return time.monotonic() - now + _PAUSE

    def _show(self, view: View, shot: Shot) -> None:
        now = time.monotonic()
        fresh = shot.captured_at is None or shot.captured_at != self._last
        if fresh:
            self._pace.count(now)
        view.show(shot, fresh, self._status(shot, self._pace.rate(now)))
        self._last = shot.captured_at

    def _status(self, shot: Shot, rate: float | None) -> str:
        words = [self._camera.name, f"{shot.header.width}x{shot.header.height}"]
        if rate is not None:
            words.append(f"{rate:.1f}/s")
        if shot.age is not None:
            words.append(f"age {shot.age:.2f} s")
        if shot.source:
            words.append(f"source {printable(shot.source)}")
        return "  ".join(words)

    def _more_of(self, shot: Shot) -> Wanted:
        """Nothing but what is shown, and in colour what is small."""
        if not self._chooses:
            return self._asked
        return shot.again(self._wanted, None if shot.header.is_depth else JPEG)

    def _give_up_choosing(self, unless: bool = False) -> None:
        """It may come back as another. One that fails because of what it is asked for would do so
        after each picture."""
        self._chooses &= unless or self._wanted == self._asked
        self._wanted = self._asked


class Pace:
    """How many pictures a second."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._times: deque[float] = deque(maxlen=128)

    def count(self, now: float) -> None:
        self._first = now if self._first is None else self._first
        self._times.append(now)

    def rate(self, now: float) -> float | None:
        """None while it is too early to tell."""
        recent = [each for each in self._times if now - each < _RATED_OVER]
        if len(recent) > 1:
            return (len(recent) - 1) / (recent[-1] - recent[0])
        return None if self._first is None or now - self._first < _RATED_OVER else 0.0


class Lines:
    """Where nobody sees pictures: how it goes, once a second."""

    def __init__(self) -> None:
        self._next = -math.inf

    def show(self, _: Shot, fresh: bool, status: str) -> None:
        del fresh
        self._say(status)

    def explain(self, reason: str, status: str) -> None:
        self._say(f"{status}: {reason}")

    def _say(self, line: str) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + 1.0
            print(line, flush=True)


class Drawing:
    """The picture on the whole screen, and how it goes in the line below."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._truecolor = os.environ.get("COLORTERM") in ("truecolor", "24bit")
        self._layout: object = None
        """What decides where things are. The screen is cleared when it changes."""
        self._below = 0

    def show(self, shot: Shot, fresh: bool, status: str) -> None:
        columns, lines = self._screen.size()
        layout = columns, lines, shot.header.width, shot.header.height
        shown = ""
        if fresh or layout != self._layout:
            shown = self._picture(shot, columns, lines)
            self._below = shown.count("\n") + 2
            shown = f"{self._start(layout)}{shown}"
        # Not as far as the last column: the cursor would stay in it, and what it wrote be erased.
        self._screen.show(f"{shown}\x1b[{self._below};1H{status[: columns - 1]}\x1b[K")

    def explain(self, reason: str, status: str) -> None:
        columns, lines = self._screen.size()
        layout = columns, lines, reason
        if layout != self._layout:
            wrapped = textwrap.wrap(reason, columns)[: lines - 1]
            text = "\n".join([*wrapped, status[:columns]])
            self._screen.show(f"{self._start(layout)}{text}")

    def _picture(self, shot: Shot, columns: int, lines: int) -> str:
        from cogwork.cli.mosaic import mosaic
        from cogwork.resource.image import decode

        return mosaic(decode(shot.data), columns, max(1, lines - 1), self._truecolor)

    def _start(self, layout: object) -> str:
        clear = "" if layout == self._layout else "\x1b[2J"
        self._layout = layout
        return f"{clear}\x1b[H"

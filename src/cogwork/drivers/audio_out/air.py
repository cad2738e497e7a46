"""What a speaker lets out, for as long as somebody may still ask what was heard."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from cogwork.drivers.audio_out.pcm import Format

HEARD = 10.0
"""Seconds for which it can be asked what was heard."""
_MOST_PIECES = 4096
_MOST_BYTES = 64 << 20
_HAIR = 1e-3
"""Of a frame: those that fit each other must not slip because of the last digits."""


@dataclass(slots=True)
class Piece:
    """A stretch of sound without a pause."""

    format: Format
    data: bytes
    since: float
    until: float
    """Seconds of the clock, as is `since`. Earlier than the data lasts, where it was cut off."""
    speed: float


class Air:
    def __init__(self) -> None:
        self._pieces: deque[Piece] = deque(maxlen=_MOST_PIECES)
        self._bytes = 0

    def add(self, piece: Piece, now: float) -> None:
        if len(self._pieces) == _MOST_PIECES:
            self._forget()
        self._pieces.append(piece)
        self._bytes += len(piece.data)
        while self._pieces and self._is_forgotten(self._pieces[0], now):
            self._forget()

    def silence(self, now: float) -> None:
        """From here on; what was to come never does."""
        while self._pieces and self._pieces[-1].since >= now:
            self._bytes -= len(self._pieces.pop().data)
        if self._pieces:
            self._pieces[-1].until = min(self._pieces[-1].until, now)

    def heard(self, since: float, frames: int, form: Format) -> bytes:
        """In that format, from that moment on. Silence where there was no sound. Much of it takes
        time: call it in a thread then."""
        sound = bytearray(frames * form.frame_size)
        # A copy: while a thread is at it, more is played.
        for piece in tuple(self._pieces):
            first = max(_frame(piece.since - since, form.rate), 0)
            end = min(_frame(piece.until - since, form.rate), frames)
            if first < end:
                data = _heard(piece, since + first / form.rate, end - first, form)
                at = first * form.frame_size
                sound[at : at + len(data)] = data
        return bytes(sound)

    def _is_forgotten(self, piece: Piece, now: float) -> bool:
        # A second more: who listens asks for a chunk that ends within the time.
        return piece.until < now - HEARD - 1 or (
            self._bytes > _MOST_BYTES and len(self._pieces) > 1
        )

    def _forget(self) -> None:
        self._bytes -= len(self._pieces.popleft().data)


def _frame(seconds: float, rate: int) -> int:
    """The first one at that moment or after it."""
    return math.ceil(seconds * rate - _HAIR)


def _heard(piece: Piece, since: float, frames: int, form: Format) -> bytes:
    """Of a piece that sounds all that time; the frame before each moment is what is heard then."""
    theirs = piece.format
    pace = theirs.rate * piece.speed
    # The first frame may be a hair early, in which a fast piece has many.
    begin = max((since - piece.since) * pace + _HAIR, 0.0)
    if theirs == form and piece.speed == 1:
        at = int(begin) * form.frame_size
        return piece.data[at : at + frames * form.frame_size]
    step, whole = pace / form.rate, len(piece.data) // theirs.frame_size
    heard = [min(int(begin + frame * step), whole - 1) for frame in range(frames)]
    sound = _decoded(piece, heard[0], heard[-1] + 1)
    samples = [0.0] * (frames * form.channels)
    for channel in range(form.channels):
        # A microphone with more channels hears the first ones again.
        of = channel % theirs.channels - heard[0] * theirs.channels
        samples[channel :: form.channels] = [sound[at * theirs.channels + of] for at in heard]
    return form.codec.encoded(samples)


def _decoded(piece: Piece, first: int, end: int) -> Sequence[float]:
    size = piece.format.frame_size
    return piece.format.codec.decoded(piece.data[first * size : end * size])

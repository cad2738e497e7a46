"""A fuzz target: one parser, inputs to start from, and what must hold for every input."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType

SECONDS_ALWAYS = 1.0
SECONDS_PER_BYTE = 20e-6
"""Processor time that an input may take. Linear: a parser with quadratic time exceeds it on the
stretched inputs of 64 KiB."""
LONGEST_MESSAGE = 2000
"""Characters of an error message, in addition to what it quotes of the input."""


class TooSlow(BaseException):
    """The input exceeded its time budget. Not an Exception, which a parser may catch."""


class BrokenPromise(Exception):
    """The parser accepted or refused an input in a way that its contract rules out."""


@dataclass(frozen=True, slots=True)
class Target:
    """`run` returns, or raises if the parser breaks its contract."""

    name: str
    run: Callable[[bytes], None]
    seeds: Callable[[], Sequence[bytes]]
    """Small valid inputs."""
    parsers: tuple[str, ...]
    """What is under test, whose line coverage is reported: `module`, or `module:function` and
    `module:Class` where the module has other tasks as well."""
    tokens: tuple[bytes, ...] = ()
    """Words of the format, for the mutator."""
    largest: int = 4096
    """Bytes of a mutated input."""
    stretched: int = 64 << 10
    """Bytes of the inputs that check for linear time."""


def run_within_budget(target: Target, data: bytes, slower: float = 1.0) -> None:
    """Raises TooSlow after the budget, which `slower` multiplies for instrumented code."""
    budget = (SECONDS_ALWAYS + SECONDS_PER_BYTE * len(data)) * slower
    with _time_limit(budget, f"{target.name}: {len(data)} bytes took more than {budget:.2f} s"):
        target.run(data)


@contextlib.contextmanager
def refuses(data: bytes, *errors: type[Exception]) -> Iterator[None]:
    """Allow these errors only, each with a message that is bounded by the size of the input."""
    try:
        yield
    except errors as error:
        message = str(error)
        if not message:
            raise BrokenPromise(f"{type(error).__name__} without a message") from error
        if len(message) > LONGEST_MESSAGE + 4 * len(data):
            raise BrokenPromise(f"a message of {len(message)} characters") from error


def text_of(data: bytes) -> str:
    """Text as it comes out of a file or a message: whatever is not UTF-8 is replaced."""
    return data.decode(errors="replace")


def words_of(data: bytes) -> list[str]:
    """Several texts in one input, separated by NUL; they may hold lone surrogates, as argv may."""
    return [part.decode(errors="surrogateescape") for part in data.split(b"\0")]


@contextlib.contextmanager
def _time_limit(seconds: float, message: str) -> Iterator[None]:
    """In processor time of this process: other programs on the computer must not matter."""

    def stop(_: int, __: FrameType | None) -> None:
        raise TooSlow(message)

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)

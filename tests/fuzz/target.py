"""A fuzz target: one parser, inputs to start from, and what must hold for every input."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType

BASE_SECONDS = 1.0
SECONDS_PER_BYTE = 20e-6
"""Processor time that an input may take. Linear: a parser with quadratic time exceeds it on the
stretched inputs of 64 KiB."""
MAX_MESSAGE_LENGTH = 2000
"""Characters of an error message, in addition to what it quotes of the input."""


class TooSlow(BaseException):
    """The input exceeded its time budget. Not an Exception, which a parser may catch."""


class ContractViolation(Exception):
    """The parser accepted or refused an input against its contract."""


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
    close: Callable[[], None] = lambda: None
    """Frees what `run` keeps between inputs, and raises if that is not as it should be."""


def run_within_budget(target: Target, data: bytes, slower: float = 1.0) -> None:
    """Raise TooSlow after the budget, which `slower` multiplies for instrumented code."""
    budget = (BASE_SECONDS + SECONDS_PER_BYTE * len(data)) * slower
    with _time_limit(budget, f"{target.name}: {len(data)} bytes took more than {budget:.2f} s"):
        target.run(data)


@contextlib.contextmanager
def allow_errors(data: bytes, *errors: type[Exception]) -> Iterator[None]:
    """Allow these errors only, each with a message that is bounded by the size of the input."""
    try:
        yield
    except errors as error:
        message = str(error)
        if not message:
            raise ContractViolation(f"{type(error).__name__} without a message") from error
        if len(message) > MAX_MESSAGE_LENGTH + 4 * len(data):
            raise ContractViolation(f"a message of {len(message)} characters") from error


def decode_lossy(data: bytes) -> str:
    """Decode text of a file or a message; replace what is not UTF-8."""
    return data.decode(errors="replace")


def split_texts(data: bytes) -> list[str]:
    """Split an input at NUL into texts, which may contain lone surrogates like argv."""
    return [part.decode(errors="surrogateescape") for part in data.split(b"\0")]


@contextlib.contextmanager
def _time_limit(seconds: float, message: str) -> Iterator[None]:
    """Limit the CPU time of this process, independent of other programs."""

    def stop(_: int, __: FrameType | None) -> None:
        raise TooSlow(message)

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)

"""Mutations of inputs, reproducible from the state of their random generator."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from tests.fuzz.target import Target

_MAX_CHANGES = 4
_INTERESTING = (b"\0", b"\xff", b"\x7f", b"\x80", b"\xff\xff\xff\xff", b"\0\0\0\0", b"9" * 20)


def generate_mutations(target: Target, generator: random.Random) -> Iterator[bytes]:
    """Yield endless mutations of the seeds."""
    seeds = list(target.seeds()) or [b""]
    tokens = (*target.tokens, *_INTERESTING)
    while True:
        data = generator.choice(seeds)
        for _ in range(generator.randint(1, _MAX_CHANGES)):
            change = generator.choice(_CHANGES)
            data = change(data, generator, seeds, tokens)[: target.largest]
        yield data


def stretch(data: bytes, size: int, generator: random.Random) -> bytes:
    """Repeat one slice of the input up to the size, which reveals quadratic time."""
    if not data:
        return data
    start, end = sorted(generator.sample(range(len(data) + 1), 2))
    piece = data[start : min(end, start + generator.choice((1, 8, 64, 1024)))]
    count = max(1, (size - len(data)) // len(piece))
    return data[:start] + piece * count + data[start:]


_Change = Callable[[bytes, random.Random, Sequence[bytes], Sequence[bytes]], bytes]


def _flip(data: bytes, generator: random.Random, *_: object) -> bytes:
    if not data:
        return data
    at = generator.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << generator.randrange(8)]) + data[at + 1 :]


def _replace(data: bytes, generator: random.Random, *_: object) -> bytes:
    at = generator.randrange(len(data) + 1)
    return data[:at] + generator.randbytes(generator.randint(1, 4)) + data[at + 1 :]


def _delete(data: bytes, generator: random.Random, *_: object) -> bytes:
    start, end = _slice(data, generator)
    return data[:start] + data[end:]


def _truncate(data: bytes, generator: random.Random, *_: object) -> bytes:
    return data[: generator.randrange(len(data) + 1)]


def _repeat(data: bytes, generator: random.Random, *_: object) -> bytes:
    start, end = _slice(data, generator)
    return data[:end] + data[start:end] * generator.choice((1, 2, 10, 200)) + data[end:]


def _insert(
    data: bytes, generator: random.Random, _: Sequence[bytes], tokens: Sequence[bytes]
) -> bytes:
    at = generator.randrange(len(data) + 1)
    return data[:at] + generator.choice(tokens) * generator.choice((1, 1, 2, 50)) + data[at:]


def _splice(
    data: bytes, generator: random.Random, seeds: Sequence[bytes], _: Sequence[bytes]
) -> bytes:
    other = generator.choice(seeds)
    start, end = _slice(other, generator)
    at = generator.randrange(len(data) + 1)
    return data[:at] + other[start:end] + data[at:]


def _slice(data: bytes, generator: random.Random) -> tuple[int, int]:
    start = generator.randrange(len(data) + 1)
    return start, min(len(data), start + generator.choice((1, 4, 32, 256)))


_CHANGES: tuple[_Change, ...] = (
    _flip,
    _replace,
    _delete,
    _truncate,
    _repeat,
    _insert,
    _insert,
    _splice,
)

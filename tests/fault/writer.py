r"""Saves one configuration after another until it is killed, and reports each saved one.

Run as ``writer.py <path> <first number>``; it shares ``configuration`` with the test that kills it.
"""

import hashlib
import os
import sys
from itertools import count
from pathlib import Path

from cogwork.config.source.last_good import LastGood

SMALLEST, LARGEST = 100, 300_000


def configuration(number: int) -> str:
    """Return a configuration derived from its number, so that tests can verify it."""
    digest = hashlib.sha256(str(number).encode()).hexdigest()
    size = int(SMALLEST * (LARGEST / SMALLEST) ** (int(digest[:8], 16) / 16**8))
    start = f'{{"number": {number}, "filler": "'
    filler = (digest * (size // len(digest) + 1))[: size - len(start) - 2]
    return f'{start}{filler}"}}'


def main(path: str, first: str) -> None:
    place = LastGood(Path(path))
    os.write(1, b"ready\n")
    for number in count(int(first)):
        place.save(configuration(number))
        os.write(1, f"{number}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The size of a test run: small enough for every change, or full size for `make soak`."""

import os

_VARIABLE = "COGWORK_TEST_SIZE"


def chosen_size(value: str | None) -> str:
    """`quick` tries fewer cases and examples, where another run of the same tests tries enough."""
    if value not in (None, "", "quick", "full"):
        raise ValueError(f'{_VARIABLE} is "{value}"; leave it unset, or say "quick" or "full"')
    return value or "ci"


SIZE = chosen_size(os.environ.get(_VARIABLE))
FULL = SIZE == "full"


def limit(seconds: float) -> float:
    """Return the time that a test allows. Full size checks what is promised; elsewhere the tests
    share a computer, which delays some of them."""
    return seconds if FULL else 4 * seconds


def size(ci: int, full: int, quick: int | None = None) -> int:
    """Return the count that a test should use in this run; `quick` is that of `ci` by default."""
    if SIZE == "quick" and quick is not None:
        return quick
    return full if FULL else ci

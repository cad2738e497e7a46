"""How large a test run is: small enough for every change, or full size for `make soak`."""

import os


def full_size(value: str | None) -> bool:
    if value not in (None, "", "full"):
        raise ValueError(f'COGWORK_TEST_SIZE is "{value}"; leave it unset, or set it to "full"')
    return value == "full"


FULL = full_size(os.environ.get("COGWORK_TEST_SIZE"))


def size(ci: int, full: int) -> int:
    """The count a test should use in this run."""
    return full if FULL else ci

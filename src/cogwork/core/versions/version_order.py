"""The order of versions of releases, in the notations of Python and of semantic versioning.

`1.9` < `1.10-rc.1` < `1.10` = `1.10.0` < `1.10.post1` < `1.10.1`. What follows a plus sign does not
count.
"""

from __future__ import annotations

import re
from typing import Final

_VERSION: Final = re.compile(r"(\d+(?:\.\d+)*)([^+]*)", re.ASCII)
_WORD_OR_NUMBER: Final = re.compile(r"[0-9]+|[a-z]+")
_RANKS: Final = {
    **dict.fromkeys(("dev",), -4),
    **dict.fromkeys(("a", "alpha"), -3),
    **dict.fromkeys(("b", "beta"), -2),
    **dict.fromkeys(("post", "rev", "r"), 2),
}
_CANDIDATE: Final = -1
"""The rank of all words that are not listed above, such as `rc`: after the alphas and betas of a
release, and before the release."""
_END: Final = (0, 0)
_NUMBER: Final = 1

VersionOrder = tuple[tuple[int, ...], tuple[tuple[int, int], ...]]


def order_of(version: str) -> VersionOrder:
    """Return a sort key for versions. A text that is not a version sorts first."""
    match = _VERSION.match(version.lower())
    if match is None:
        return (), ()
    numbers = [*map(int, match[1].split("."))]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    suffix = tuple(map(_order_token, _WORD_OR_NUMBER.findall(match[2])))
    return tuple(numbers), (*suffix, _END)


def is_older(version: str, other: str) -> bool:
    return order_of(version) < order_of(other)


def has_order(version: str) -> bool:
    """Return whether the text is a version that can be compared."""
    return order_of(version) != ((), ())


def _order_token(token: str) -> tuple[int, int]:
    if token.isdecimal():
        return _NUMBER, int(token)
    return _RANKS.get(token, _CANDIDATE), 0

"""The version that clients and clouds of the public API see. Also recognizes other servers.

The command line in Go compares a semantic version with the releases of the server that it was
written for. It accepts any other text, such as our version with its prefix, as recent enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cogwork import __version__

_PREFIX: Final = "cogwork-"
_UNNAMED: Final = "0.1."
"""The start of the versions of Cogwork 0.1, which have no prefix."""
_ALWAYS_TOLD: Final = ("version", "host", "os")
NAMED_VERSION: Final = f"{_PREFIX}{__version__}"


def is_another_make(machine: Mapping[str, Any]) -> bool:
    """Return whether a machine with this description runs another server than Cogwork's.

    An empty description counts as Cogwork's. A description without a version counts as another
    server's, because only unreleased builds of other servers have none.
    """
    version = str(machine.get("version", ""))
    is_known = any(key in machine for key in _ALWAYS_TOLD)
    return is_known and not version.startswith((_PREFIX, _UNNAMED))

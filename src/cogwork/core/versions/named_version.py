"""Our version as clients and clouds of the public API see it, and those of others.

Go's command line compares semantic versions with those of another server, and takes anything else
for new enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cogwork import __version__

_PREFIX: Final = "cogwork-"
_UNNAMED: Final = "0.1."
"""The beginning of the version of Cogwork 0.1, which does not name itself."""
_ALWAYS_TOLD: Final = ("version", "host", "os")
NAMED_VERSION: Final = f"{_PREFIX}{__version__}"


def is_another_make(machine: Mapping[str, Any]) -> bool:
    """Return whether a machine that says this about itself runs a server of another make.

    One that has said nothing yet is taken for ours. Unreleased builds of others have no version.
    """
    version = str(machine.get("version", ""))
    is_known = any(key in machine for key in _ALWAYS_TOLD)
    return is_known and not version.startswith((_PREFIX, _UNNAMED))

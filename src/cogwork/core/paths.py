"""The directory that stores Cogwork's state."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def cogwork_home(environment: Mapping[str, str]) -> Path:
    configured = environment.get("COGWORK_HOME")
    return Path(configured) if configured else Path("~/.cogwork").expanduser()

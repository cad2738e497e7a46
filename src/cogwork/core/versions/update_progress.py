"""The progress of a machine's updates: the agent writes a file, and other programs show it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cogwork.core.versions.product import Product

PROGRESS_VARIABLE: Final = "COGWORK_UPDATE_FILE"
"""The environment variable that passes the path of the file from the agent to the server."""
_MAX_FILE: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class ProductProgress:
    phase: str
    """"current", "installing", "waiting", "switching", "refused" or "failed"."""
    version: str
    detail: str = ""
    since: float = 0.0
    """The time when the phase began, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class MachineProgress:
    products: dict[Product, ProductProgress]
    source_fault: str | None = None
    """The reason why the agent cannot look for updates."""


def read_progress(path: Path) -> MachineProgress:
    """Return the content of the file; an empty value if it is missing or damaged."""
    try:
        with path.open("rb") as file:
            value = json.loads(file.read(_MAX_FILE))
        found = {
            product: _parse(value["products"][product])
            for product in Product
            if product in value["products"]
        }
        fault = value.get("source_fault")
        return MachineProgress(found, None if fault is None else str(fault))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return MachineProgress({})


def _parse(value: Any) -> ProductProgress:
    return ProductProgress(
        str(value["phase"]), str(value["version"]), str(value["detail"]), float(value["since"])
    )

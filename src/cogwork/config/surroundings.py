"""What a configuration is judged by, beside its own text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cogwork.config.catalogue import Catalogue


@dataclass(frozen=True, slots=True)
class Surroundings:
    catalogue: Catalogue
    home: Path
    """Where packages live (COGWORK_HOME)."""
    environment: Mapping[str, str]
    exists: Callable[[Path], bool] = Path.is_file

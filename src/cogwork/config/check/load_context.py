"""The environment in which a configuration is checked: models, directories, variables, files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cogwork.config.schema.model_catalog import ModelCatalog


@dataclass(frozen=True, slots=True)
class LoadContext:
    catalog: ModelCatalog
    home: Path
    """The directory with the installed packages (COGWORK_HOME)."""
    environment: Mapping[str, str]
    exists: Callable[[Path], bool] = Path.is_file
    is_directory: Callable[[Path], bool] = Path.is_dir

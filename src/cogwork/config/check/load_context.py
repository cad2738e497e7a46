"""The environment in which a configuration is checked: models, directories, variables, files."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from cogwork.config.schema.model_catalog import ModelCatalog

_MAX_LISTED = 500
"""Maximum number of names to read from a directory. A directory may hold millions of files."""


def list_names(directory: Path) -> Sequence[str]:
    """Return the names in a directory. The names of folders end with a slash."""
    with os.scandir(directory) as entries:
        return [
            f"{entry.name}/" if entry.is_dir() else entry.name
            for entry in itertools.islice(entries, _MAX_LISTED)
        ]


@dataclass(frozen=True, slots=True)
class LoadContext:
    catalog: ModelCatalog
    home: Path
    """The directory with the installed packages (COGWORK_HOME)."""
    environment: Mapping[str, str]
    exists: Callable[[Path], bool] = Path.is_file
    is_directory: Callable[[Path], bool] = Path.is_dir
    list_names: Callable[[Path], Sequence[str]] = list_names
    """Lists a directory, to suggest a file with a similar name. The names of folders end with a
    slash. Raises OSError."""
    directory: Path | None = None
    """The absolute directory of the configuration file, to which relative paths refer; None for a
    configuration from a cloud."""
    find_certificate_warning: Callable[[Path, Path], str | None] = lambda _certificate, _key: None
    """Returns why a TLS certificate with this key is not valid now, or will not be soon. By
    default, certificates are not read: the server checks the one that it uses."""

    def in_directory_of(self, file: Path | str | None) -> Self:
        """Return the context for a configuration from this file; None if it comes from a cloud."""
        return replace(self, directory=Path(file).absolute().parent if file is not None else None)

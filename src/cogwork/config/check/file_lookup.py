"""Find the files that a configuration names.

A relative path refers to the directory of the configuration file, or else to the working directory
of the server. The drivers get the absolute path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cogwork.config.check.load_context import LoadContext


@dataclass(frozen=True, slots=True)
class FileLookup:
    path: str
    """The path to use. If the file is missing, the path where it is expected."""
    is_found: bool
    tried: tuple[Path, ...] = ()


def find_file(text: str, context: LoadContext, *, or_folder: bool = False) -> FileLookup:
    """Find a file, or a folder if `or_folder` is set."""
    try:
        path = Path(text).expanduser()
    except (OSError, RuntimeError, ValueError):  # for example, no such user
        return FileLookup(text, is_found=False)
    tried = _list_candidates(path, context)
    for candidate in tried:
        if try_path(context.exists, candidate) or (
            or_folder and try_path(context.is_directory, candidate)
        ):
            return FileLookup(str(candidate), is_found=True)
    return FileLookup(str(tried[0]), is_found=False, tried=tried)


def list_siblings(lookup: FileLookup, context: LoadContext, *, or_folder: bool) -> list[str]:
    """Return the names of the files beside the paths that were tried, and of the folders if
    `or_folder` is set.

    Only directories in the directory of the configuration file are listed: a client that may check
    a configuration must not learn what other directories contain.
    """
    names: list[str] = []
    for path in lookup.tried:
        try:
            folder = path.parent.resolve()
            if context.directory is not None and folder.is_relative_to(context.directory.resolve()):
                names += context.list_names(folder)
        except (OSError, RuntimeError, ValueError):
            continue  # there is nothing to suggest
    return [name.rstrip("/") for name in names if or_folder or not name.endswith("/")]


def _list_candidates(path: Path, context: LoadContext) -> tuple[Path, ...]:
    if path.is_absolute() or context.directory is None:
        return (path,)
    # The two are the same if the server was started in the directory of the file.
    return tuple(dict.fromkeys((context.directory / path, path.absolute())))


def try_path(test: Callable[[Path], bool], path: Path) -> bool:
    try:
        return test(path.expanduser())
    except (OSError, RuntimeError, ValueError):
        # If the path cannot be tested, treat it as missing: for example, its directory may be
        # unreadable or its name too long.
        return False

"""The module under development: its folder and its executable."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cogwork.config.text.file import Unreadable, read_text
from cogwork.config.text.json_errors import JsonSyntaxError
from cogwork.config.text.json_reader import read_json
from cogwork.config.text.positions import position_at
from cogwork.core.errors import CogworkError
from cogwork.core.files import atomic
from cogwork.core.paths import cogwork_home


class NotAModule(CogworkError):
    """The path is not a module that can be run."""


@dataclass(frozen=True, slots=True)
class ModuleProject:
    name: str
    executable: Path
    root: Path
    """Folder with the module's source files."""
    models: tuple[Mapping[str, str], ...] = ()
    """The `api` and `model` of each model in meta.json."""
    includes_subfolders: bool = True
    """Whether subfolders belong to the module."""


def load_project(path: Path) -> ModuleProject:
    path = path.absolute()
    if path.is_dir():
        return _load_folder(path)
    if not path.is_file():
        raise NotAModule(f"{path} does not exist; create a module with `cogwork module new`")
    if (path.parent / "meta.json").is_file():
        described = _load_folder(path.parent)
        if described.executable == path:
            return described
    executable = _ensure_executable(path)
    return ModuleProject(
        _sanitize_name(path.stem), executable, path.parent, includes_subfolders=False
    )


def _load_folder(folder: Path) -> ModuleProject:
    meta = folder / "meta.json"
    if not meta.is_file():
        for name in ("run.sh", "main.py"):
            if (folder / name).is_file():
                return ModuleProject(
                    _sanitize_name(folder.name), _ensure_executable(folder / name), folder
                )
        raise NotAModule(f"{folder} has no meta.json, run.sh or main.py; pass the file to run")
    metadata = read_json_object(meta)
    entry = metadata.get("entrypoint")
    if not isinstance(entry, str) or not (folder / entry).is_file():
        raise NotAModule(f'{meta}: set "entrypoint" to an existing file')
    listed = metadata.get("models")
    models = tuple(
        {"api": str(each["api"]), "model": str(each["model"])}
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict) and {"api", "model"} <= each.keys()
    )
    name = str(metadata.get("module_id") or folder.name).rpartition(":")[2]
    return ModuleProject(_sanitize_name(name), _ensure_executable(folder / entry), folder, models)


def _ensure_executable(file: Path) -> Path:
    """Return the file if it is executable. For other Python files, return a script that runs the
    file."""
    if os.access(file, os.X_OK):
        return file
    if file.suffix != ".py":
        raise NotAModule(f"{file} is not executable; run: chmod +x {shlex.quote(str(file))}")
    launcher = state_path(file, ".sh")
    command = shlex.join([sys.executable, str(file)])
    atomic.write(launcher, f'#!/bin/sh\nexec {command} "$@"\n'.encode(), 0o700)
    return launcher


def state_path(file: Path, suffix: str) -> Path:
    """Return the path of a generated file for one of the author's files.

    The path is stable, because the server's saved state of a machine depends on it.
    """
    digest = hashlib.sha256(str(file).encode()).hexdigest()[:8]
    return (
        cogwork_home(os.environ)
        / "module-run"
        / f"{_sanitize_name(file.parent.name)}-{digest}{suffix}"
    )


def _sanitize_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).lstrip("-_") or "module"


def read_json_object(file: Path) -> dict[str, Any]:
    try:
        text = read_text(file)
        value = read_json(text).value
    except Unreadable as error:
        raise NotAModule(f"{file}: {error}") from error
    except JsonSyntaxError as error:
        line = position_at(text, error.span.start).line
        raise NotAModule(f"{file}:{line}: {error.message}") from error
    if not isinstance(value, dict):
        raise NotAModule(f"{file} is not a JSON object")
    return value

"""The module that an author works at: where it is, and what starts it."""

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

from cogwork.config.file import Unreadable, read_text
from cogwork.config.json_faults import JsonFault
from cogwork.config.json_reader import read
from cogwork.config.positions import position_at
from cogwork.core import atomic
from cogwork.core.errors import CogworkError
from cogwork.core.home import cogwork_home


class NotAModule(CogworkError):
    """The path does not lead to something that can be run as a module."""


@dataclass(frozen=True, slots=True)
class Module:
    name: str
    executable: Path
    root: Path
    """The folder with all that it is made of."""
    models: tuple[Mapping[str, str], ...] = ()
    """Their `api` and `model`, as far as its meta.json tells."""
    whole_folder: bool = True
    """Whether folders in the folder belong to it, too."""


def module_at(path: Path) -> Module:
    path = path.absolute()
    if path.is_dir():
        return _described(path)
    if not path.is_file():
        raise NotAModule(f"there is no {path}; `cogwork module new` writes a module")
    if (path.parent / "meta.json").is_file():
        described = _described(path.parent)
        if described.executable == path:
            return described
    executable = _executable(path)
    return Module(_as_name(path.stem), executable, path.parent, whole_folder=False)


def _described(folder: Path) -> Module:
    meta = folder / "meta.json"
    if not meta.is_file():
        for name in ("run.sh", "main.py"):
            if (folder / name).is_file():
                return Module(_as_name(folder.name), _executable(folder / name), folder)
        raise NotAModule(f"{folder} has no meta.json, run.sh or main.py: name the file to start")
    told = object_in(meta)
    entry = told.get("entrypoint")
    if not isinstance(entry, str) or not (folder / entry).is_file():
        raise NotAModule(f'{meta} names no file that is there as "entrypoint": add it')
    listed = told.get("models")
    models = tuple(
        {"api": str(each["api"]), "model": str(each["model"])}
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict) and {"api", "model"} <= each.keys()
    )
    name = str(told.get("module_id") or folder.name).rpartition(":")[2]
    return Module(_as_name(name), _executable(folder / entry), folder, models)


def _executable(file: Path) -> Path:
    """The file itself; for a Python file that is none, one that starts it."""
    if os.access(file, os.X_OK):
        return file
    if file.suffix != ".py":
        raise NotAModule(f"{file} cannot be executed: chmod +x {shlex.quote(str(file))}")
    starter = kept_file(file, ".sh")
    command = shlex.join([sys.executable, str(file)])
    atomic.write(starter, f'#!/bin/sh\nexec {command} "$@"\n'.encode(), 0o700)
    return starter


def kept_file(file: Path, suffix: str) -> Path:
    """A file of ours that belongs to one of the author's, the same every time: what the server
    remembers of a machine goes by the path of its file."""
    mark = hashlib.sha256(str(file).encode()).hexdigest()[:8]
    return cogwork_home(os.environ) / "module-run" / f"{_as_name(file.parent.name)}-{mark}{suffix}"


def _as_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).lstrip("-_") or "module"


def object_in(file: Path) -> dict[str, Any]:
    try:
        text = read_text(file)
        value = read(text).value
    except Unreadable as error:
        raise NotAModule(f"{file}: {error}") from error
    except JsonFault as error:
        line = position_at(text, error.span.start).line
        raise NotAModule(f"{file}:{line}: {error.message}") from error
    if not isinstance(value, dict):
        raise NotAModule(f"{file} holds no object")
    return value

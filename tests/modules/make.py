"""The executables of the modules that tests and benchmarks use as peers."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.modules.node.install import installed

HERE = Path(__file__).parent
SDK = HERE / "sdk"

PYTHON = os.environ.get("COGWORK_TEST_PYTHON", sys.executable)
"""Runs the modules that are written in Python."""


def sdk_module(directory: Path, name: str) -> Path:
    """Written with the SDK: `camera`, `motor`, `mlmodel`, `sensor`, `echo`, `bad`."""
    script = SDK / "echo" / "main.py" if name == "echo" else SDK / f"{name}.py"
    return executable(directory, script, name)


def stub(directory: Path) -> Path:
    """Without any library, and started in a few milliseconds."""
    return executable(directory, HERE / "stub" / "stub.py", options=("-I", "-S", "-E"))


def node_module(directory: Path) -> Path:
    """In JavaScript; raises `NoNode` where there is no npm."""
    libraries = installed()
    words = (
        "env",
        f"NODE_PATH={libraries / 'node_modules'}",
        f"DESCRIPTORS={libraries / 'descriptors.bin'}",
        "node",
        str(HERE / "node" / "main.js"),
    )
    return _wrapper(directory / "node-camera", words)


def executable(
    directory: Path, script: Path, name: str | None = None, options: Sequence[str] = ("-I",)
) -> Path:
    """A file in the directory that runs the script, whatever is on the path of who starts it."""
    return _wrapper(directory / (name or script.stem), (PYTHON, *options, str(script)))


def _wrapper(file: Path, words: Sequence[str]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    # Replaced, not written again: a program that is being started cannot be written to.
    new = file.with_name(f"{file.name}.new")
    new.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    new.chmod(0o755)
    return new.replace(file)

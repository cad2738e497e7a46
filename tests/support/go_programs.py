"""Programs in Go, built from their sources beside the tests."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.paths import REPOSITORY

SOURCES = REPOSITORY / "tests" / "interop" / "go"
_BUILD_SECONDS = 600
"""The first time, everything that they import is compiled."""

needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")


def build(name: str) -> Path:
    """Build a program, unless it is up to date, and return its path."""
    program = REPOSITORY / "build" / "go" / name
    subprocess.run(
        ["go", "build", "-o", str(program), "."],
        cwd=SOURCES / name,
        check=True,
        timeout=_BUILD_SECONDS,
    )
    return program


def read_lines(output: bytes) -> list[Any]:
    return [json.loads(line) for line in output.splitlines()]

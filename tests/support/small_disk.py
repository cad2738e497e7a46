"""A disk that fills quickly."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

_TIMEOUT = 60.0


@contextlib.contextmanager
def small_disk(path: Path, kilobytes: int) -> Iterator[Path]:
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(path)]
    try:
        subprocess.run(mount, check=True, capture_output=True, timeout=_TIMEOUT)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a disk of {kilobytes} kB needs the right to mount one: {error}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True, timeout=_TIMEOUT)

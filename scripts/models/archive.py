"""Reads files inside packages, including nested archives."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path


def read_member(archive: Path, path: Sequence[str]) -> bytes:
    """Read a file by its path. Every name but the last is a nested archive."""
    data = archive.read_bytes()
    for name in path:
        data = _read(io.BytesIO(data), name)
    return data


def _read(file: io.BytesIO, name: str) -> bytes:
    # A TensorFlow Lite model with metadata ends with a zip archive.
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as zipped:
            return zipped.read(name)
    file.seek(0)
    with tarfile.open(fileobj=file) as tar:
        member = tar.extractfile(name)
        if member is None:
            raise KeyError(name)
        return member.read()

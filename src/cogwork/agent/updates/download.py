"""Downloads releases. An interrupted download continues where it ended."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import unquote, urlsplit

from cogwork.agent.errors import BadRelease

_TIMEOUT: Final = 30.0
"""Seconds without a byte."""
_CHUNK: Final = 1 << 20
_MAX_SIZE: Final = 4 << 30
_SCHEMES: Final = ("file", "http", "https")


def fetch_small(url: str, limit: int) -> bytes:
    """Raise OSError or ValueError."""
    with _open(url, {}) as response:
        data: bytes = response.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"it has more than {limit} bytes")
    return data


def download(url: str, directory: Path, sha256: str = "") -> Path:
    """Return the downloaded file. Raise OSError or BadRelease.

    The result is complete, and has the hash if one is given.
    """
    name = Path(unquote(urlsplit(url).path)).name
    if not name or name.startswith("."):
        raise BadRelease(f"{url} does not name a release")
    done = directory / name
    if not (done.is_file() and sha256 and _hash(done) == sha256):
        partial = directory / f"{name}.part"
        _download(url, partial, directory / f"{name}.etag")
        if sha256 and _hash(partial) != sha256:
            partial.unlink()
            raise OSError(f"{name} was damaged on its way: its hash is not the announced one")
        partial.replace(done)
    return done


def _download(url: str, partial: Path, tag_file: Path) -> None:
    offset = partial.stat().st_size if partial.exists() else 0
    tag = tag_file.read_text() if offset and tag_file.exists() else ""
    headers = {"Range": f"bytes={offset}-", "If-Range": tag} if tag else {}
    try:
        response = _open(url, headers)
    except urllib.error.HTTPError as error:
        if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        response = _open(url, {})  # the part is complete, or of another file
    with response:
        is_rest = getattr(response, "status", None) == http.client.PARTIAL_CONTENT
        tag_file.write_text(response.headers.get("ETag") or "")
        with partial.open("ab" if is_rest else "wb") as file:
            _copy(response, file)
            os.fsync(file.fileno())
    expected = response.headers.get("Content-Length")
    received = partial.stat().st_size - (offset if is_rest else 0)
    if expected is not None and received != int(expected):
        raise OSError(f"the connection ended after {received} of {expected} bytes")
    tag_file.unlink(missing_ok=True)


def _copy(response: Any, file: BinaryIO) -> None:
    while chunk := response.read(_CHUNK):
        if file.tell() + len(chunk) > _MAX_SIZE:
            raise OSError(f"it is larger than {_MAX_SIZE >> 30} GiB, which no release is")
        file.write(chunk)


def _open(url: str, headers: dict[str, str]) -> Any:
    if urlsplit(url).scheme not in _SCHEMES:
        raise ValueError(f"{url} does not begin with one of {', '.join(_SCHEMES)}")
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - checked above
    try:
        return urllib.request.urlopen(request, timeout=_TIMEOUT)  # noqa: S310
    except urllib.error.HTTPError:
        raise
    except urllib.error.URLError as error:
        raise OSError(f"{url} cannot be read: {error.reason}") from None


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

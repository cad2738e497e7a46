"""Downloads of releases. An interrupted download continues where it stopped."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from cogwork.agent.errors import BadRelease
from cogwork.net.http_download import HttpDownload, open_url

_MAX_SIZE: Final = 4 << 30


def fetch_small(url: str, limit: int) -> bytes:
    """Return the content at a URL. Raise OSError or ValueError."""
    with open_url(url) as response:
        data: bytes = response.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"it has more than {limit} bytes")
    return data


def download(url: str, directory: Path, sha256: str = "") -> Path:
    """Download a release and return the file. Verify its hash if one is given.

    Raise OSError or BadRelease.
    """
    name = Path(unquote(urlsplit(url).path)).name
    if not name or name.startswith("."):
        raise BadRelease(f"the address of the release has no valid file name: {url}")
    done = directory / name
    if not (done.is_file() and sha256 and _hash(done) == sha256):
        partial = directory / f"{name}.part"
        transfer = HttpDownload(url, partial, _MAX_SIZE)
        transfer.run()
        if sha256 and _hash(partial) != sha256:
            transfer.discard()
            raise OSError(f"{name} was damaged during the download: its hash is wrong")
        partial.replace(done)
        transfer.discard()
    return done


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

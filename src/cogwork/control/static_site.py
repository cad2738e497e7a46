"""The files of the control page, from the package or from `-shareddir`.

They contain no data of the machine, so everyone may load them. The page itself asks for a login.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response

from cogwork.control.sliced_response import SlicedResponse
from cogwork.core.workers import run_in_thread

BUILT_SITE: Final = Path(__file__).parent / "site"
"""Directory of the control page in an installed package."""
CLONE: Final = BUILT_SITE / "../../../../web/package.json"
"""A file that is beside the package only in a clone of the repository."""
INDEX: Final = "index.html"
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "media-src 'self' blob:; connect-src 'self'; worker-src blob:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""Allows the page's own files and calls to this machine, and blocks injected content. The SDK
starts a worker from a blob, which sends heartbeats."""

_MEDIA_TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".map": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".wasm": "application/wasm",
    ".woff2": "font/woff2",
}
_COMPRESSED: Final = frozenset(_MEDIA_TYPES) - {".png", ".woff2"}
_HASHED: Final = "assets/"
"""Directory of files with a content hash in their names, which browsers may cache."""
_MAX_FILES: Final = 1000
_MAX_FILE_SIZE: Final = 16 << 20
_READ_TIMEOUT: Final = 10.0

_NOT_BUILT: Final = (
    "the control page is not built; install Node 22.12 or newer with npm, run `make page` in the "
    "clone of Cogwork, and restart the server"
)
_NOT_INSTALLED: Final = (
    "Cogwork was installed without its control page; install Node 22.12 or newer with npm, then "
    "Cogwork from the same source with `pip install --force-reinstall --no-deps --no-cache-dir`, "
    "and restart the server"
)

_log = logging.getLogger("rdk.networking")


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file in memory, in the form in which it is sent."""

    body: bytes
    compressed: bytes | None
    media_type: str
    etag: str
    is_immutable: bool

    def respond(self, headers: Headers) -> Response:
        fields = {
            "ETag": self.etag,
            "Cache-Control": "public, max-age=31536000, immutable"
            if self.is_immutable
            else "no-cache",
            "Content-Security-Policy": CONTENT_SECURITY_POLICY,
            "Vary": "Accept-Encoding",
        }
        if self.etag in headers.get("if-none-match", ""):
            return Response(status_code=304, headers=fields)
        if self.compressed is not None and "gzip" in headers.get("accept-encoding", ""):
            fields["Content-Encoding"] = "gzip"
            return SlicedResponse(self.compressed, media_type=self.media_type, headers=fields)
        return SlicedResponse(self.body, media_type=self.media_type, headers=fields)


class StaticSite:
    """The files of one directory. Each file is read and compressed on its first request."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._paths = _list_files(directory)
        self.problem: Final = self._find_problem()
        """The reason why the page is missing, and how to install it; None if it is present."""
        self._files: dict[str, StaticFile] = {}

    def _find_problem(self) -> str | None:
        if INDEX in self._paths:
            return None
        if self._directory != BUILT_SITE:
            return f"{self._directory} has no readable index.html"
        return _NOT_BUILT if CLONE.is_file() else _NOT_INSTALLED

    def __contains__(self, path: str) -> bool:
        """Return whether the path of a request names a file."""
        return _name_of(path) in self._paths

    async def read(self, path: str) -> StaticFile | None:
        """Return the file; None if it was removed since, for example by an upgrade."""
        name = _name_of(path)
        file = self._files.get(name)
        if file is None:
            found = self._paths[name]
            try:
                file = await run_in_thread("static file", _READ_TIMEOUT, lambda: _read(name, found))
            except TimeoutError:
                raise
            except OSError:
                return None
            self._files[name] = file
        return file


def _name_of(path: str) -> str:
    return path.removeprefix("/") or INDEX


def _list_files(directory: Path) -> dict[str, Path]:
    """Return the files by their paths in requests. No other files are ever opened."""
    if not (directory / INDEX).is_file():
        return {}  # this is not the directory of a page, so its files may be secret
    try:
        found = list(itertools.islice(directory.rglob("*"), _MAX_FILES + 1))
        if len(found) > _MAX_FILES:
            _log.warning(
                "not serving files from %s: it has more than %d files; "
                "is it the directory of a control page?",
                directory,
                _MAX_FILES,
            )
            return {}
        root = directory.resolve()
        return {
            path.relative_to(directory).as_posix(): path
            for path in found
            if _is_served(path, directory) and path.resolve().is_relative_to(root)
        }
    except OSError as error:
        _log.warning("the files of the control page cannot be read: %s", error)
        return {}


def _is_served(path: Path, directory: Path) -> bool:
    is_hidden = any(part.startswith(".") for part in path.relative_to(directory).parts)
    return (
        not is_hidden
        and path.suffix in _MEDIA_TYPES
        and path.is_file()
        and path.stat().st_size <= _MAX_FILE_SIZE
    )


def _read(name: str, path: Path) -> StaticFile:
    body = path.read_bytes()
    return StaticFile(
        body,
        gzip.compress(body, 9, mtime=0) if path.suffix in _COMPRESSED else None,
        _MEDIA_TYPES[path.suffix],
        f'"{hashlib.sha256(body).hexdigest()[:16]}"',
        name.startswith(_HASHED),
    )

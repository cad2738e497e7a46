"""A download into a file, which resumes where an earlier attempt ended."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from email.message import Message
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from cogwork.core.errors import Interrupted
from cogwork.core.files import atomic
from cogwork.core.files.complete_write import write_all
from cogwork.net.cancellable_connection import CancellableConnection, make_opener

_TIMEOUT: Final = 30.0
"""Timeout in seconds for the next byte."""
_CHUNK: Final = 1 << 20
_SCHEMES: Final = ("file", "http", "https")
_PACE_INTERVAL: Final = 60.0
_MIN_BYTES: Final = 1 << 16
"""Minimum bytes per `_PACE_INTERVAL`. A slower server would only keep the connection open."""
_CONTENT_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(\d+|\*)", re.ASCII)

OnProgress = Callable[[int, int | None], None]
"""Takes the number of received bytes, and the size of the file if it is known. Called before the
first byte and then often. An error that it raises ends the download."""


class RemoteFile(NamedTuple):
    """The properties of a file that the server reports."""

    validator: str = ""
    """The `ETag` or `Last-Modified` of the file. Without it, a download cannot be resumed."""
    size: int | None = None
    crc32c: str = ""
    """The checksum of `x-goog-hash`, in base64; empty if the server does not send one."""

    @classmethod
    def from_headers(cls, headers: Message, offset: int = 0) -> RemoteFile:
        length = headers.get("Content-Length")
        hashes = ",".join(headers.get_all("x-goog-hash", ()))
        found = re.search(r"crc32c=([A-Za-z0-9+/]+=*)", hashes)
        return cls(
            headers.get("ETag") or headers.get("Last-Modified") or "",
            offset + int(length) if length is not None and length.isdigit() else None,
            found[1] if found is not None else "",
        )


class HttpDownload:
    """Downloads one file. `run` blocks; `cancel` ends it from another thread.

    A note next to the partial file identifies the file on the server. Without the note, the
    download starts again from the beginning.
    """

    def __init__(
        self,
        url: str,
        partial: Path,
        max_size: int,
        *,
        credentials: Mapping[str, str] | None = None,
        on_progress: OnProgress = lambda _received, _size: None,
    ) -> None:
        """`credentials` are headers for the server in the URL. They are not sent to other
        servers."""
        self._url = url
        self._partial = partial
        self._note = partial.with_suffix(".note")
        self._max_size = max_size
        self._credentials = credentials or {}
        self._on_progress = on_progress
        self._cancelled = threading.Event()
        self._connection = CancellableConnection()

    def run(self) -> RemoteFile:
        """Download the file, and return its properties.

        Raise OSError, ValueError for a URL that cannot be used, and Interrupted.
        """
        with contextlib.closing(self._connection):
            return self._run()

    def _run(self) -> RemoteFile:
        offset = self._partial.stat().st_size if self._partial.exists() else 0
        known = _read_note(self._note) if offset else RemoteFile()
        if offset and offset == known.size:
            return known
        response, is_rest = self._open(offset, known)
        with contextlib.closing(response):
            file = RemoteFile.from_headers(response.headers, offset if is_rest else 0)
            if is_rest and file.size is None:
                file = file._replace(size=known.size)
            try:
                self._receive(response, offset if is_rest else 0, file)
            except http.client.HTTPException as error:
                raise OSError(f"the connection to {show_url(self._url)} ended: {error}") from None
            finally:
                self._check_cancelled()
        size = self._partial.stat().st_size
        if file.size is not None and size != file.size:
            raise OSError(f"the connection ended after {size} of {file.size} bytes")
        return file

    def cancel(self) -> None:
        """End `run`, even while it waits for the server."""
        self._cancelled.set()
        self._connection.cancel()

    def discard(self) -> None:
        """Delete the downloaded file, because it does not have the expected content."""
        self._partial.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)

    def _open(self, offset: int, known: RemoteFile) -> tuple[Any, bool]:
        """Return the response, and whether it continues after `offset`."""
        self._check_cancelled()
        if not known.validator:
            return self._open_url(), False
        headers = {"Range": f"bytes={offset}-", "If-Range": known.validator}
        try:
            response = self._open_url(headers)
        except urllib.error.HTTPError as error:
            if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise
            return self._open_url(), False
        if getattr(response, "status", None) != http.client.PARTIAL_CONTENT:
            return response, False
        given = response.headers.get("Content-Range")
        match = _CONTENT_RANGE.fullmatch(given) if given is not None else None
        if given is None or (match is not None and int(match[1]) == offset):
            return response, True
        response.close()
        return self._open_url(), False

    def _open_url(self, headers: Mapping[str, str] | None = None) -> Any:
        try:
            return open_url(self._url, headers, self._credentials, self._connection)
        except OSError:
            self._check_cancelled()
            raise

    def _receive(self, response: Any, offset: int, file: RemoteFile) -> None:
        self._require_size(file.size or 0)
        self._on_progress(offset, file.size)
        self._partial.touch(0o600)
        # Write unbuffered, so that no received bytes are lost if this process ends.
        with self._partial.open("ab" if offset else "wb", buffering=0) as target:
            if not offset:
                # The old content is deleted by now, so the new note never describes old content.
                atomic.write(self._note, json.dumps(file).encode())
            pace = _Pace()
            while chunk := response.read1(_CHUNK):
                self._check_cancelled()
                offset += len(chunk)
                self._require_size(offset)
                write_all(target.fileno(), chunk)
                self._on_progress(offset, file.size)
                pace.check(offset)
            os.fsync(target.fileno())

    def _require_size(self, size: int) -> None:
        if size > self._max_size:
            raise OSError(
                f"{show_url(self._url)} has more than {self._max_size / 1e9:.3g} GB, which is the "
                "limit"
            )

    def _check_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise Interrupted(f"the download of {show_url(self._url)} was cancelled")


class _Pace:
    """Detects a server that sends very little, but often enough to avoid the timeout."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._offset: int | None = None

    def check(self, offset: int) -> None:
        now = time.monotonic()
        if self._offset is None:
            self._offset = offset
        if now - self._since < _PACE_INTERVAL:
            return
        if offset - self._offset < _MIN_BYTES:
            raise OSError(
                f"the server sent only {offset - self._offset} bytes in {now - self._since:.0f} s"
            )
        self._since, self._offset = now, offset


def open_url(
    url: str,
    headers: Mapping[str, str] | None = None,
    credentials: Mapping[str, str] | None = None,
    connection: CancellableConnection | None = None,
) -> Any:
    """Return the response. Raise OSError, and ValueError for a URL that cannot be used.

    `credentials` are further headers, which are sent only to the server in the URL, not after
    redirects. `connection` lets another thread cancel the request.
    """
    if urlsplit(url).scheme not in _SCHEMES:
        raise ValueError(f"{show_url(url)} does not begin with one of {', '.join(_SCHEMES)}")
    request = urllib.request.Request(url, headers=dict(headers or {}))  # noqa: S310 - checked above
    for name, value in (credentials or {}).items():
        request.add_unredirected_header(name, value)
    opener = (
        make_opener(connection, _Redirects)
        if connection is not None
        else urllib.request.build_opener(_Redirects)
    )
    try:
        return opener.open(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        error.msg = f"{error.reason}, for {show_url(url)}"
        raise
    except urllib.error.URLError as error:
        raise OSError(f"{show_url(url)} cannot be read: {error.reason}") from None
    except http.client.HTTPException as error:
        raise OSError(f"{show_url(url)} cannot be read: {error!r}") from None


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(  # type: ignore[no-untyped-def] # the signature of the standard library
        self, req, fp, code, msg, headers, newurl
    ):
        if urlsplit(req.full_url).scheme == "https" and urlsplit(newurl).scheme != "https":
            raise urllib.error.URLError(
                f"the server redirects to {show_url(newurl)}, which is not encrypted"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def show_url(url: str) -> str:
    """Return the URL without parts that may be secret: a login, and a signature in the query."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))


def _read_note(path: Path) -> RemoteFile:
    try:
        validator, size, crc32c = json.loads(path.read_bytes())
    except (OSError, ValueError, TypeError):
        return RemoteFile()
    return RemoteFile(str(validator), size if isinstance(size, int) else None, str(crc32c))

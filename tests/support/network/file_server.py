"""An HTTP server for downloads: with ranges, checksums, and connections that it cuts."""

from __future__ import annotations

import base64
import contextlib
import http.server
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import google_crc32c

Content = bytes | Path

_BLOCK = 1 << 18


class FileServer:
    """Serves contents by their paths. What a test sets applies to the requests after that."""

    def __init__(self) -> None:
        self.files: dict[str, Content] = {}
        self.tags: dict[str, str] = {}
        """Other ETags than the default one; empty for none."""
        self.checksums: dict[str, str] = {}
        """Values of `x-goog-hash`; by default the header has the right one, and "" omits it."""
        self.redirects: dict[str, str] = {}
        self.status: int | None = None
        """Answer every request with this error."""
        self.cuts: list[int] = []
        """After how many bytes to cut the next connections, one by one."""
        self.chunk_delay = 0.0
        """Seconds between two blocks of 256 KiB."""
        self.requests: list[tuple[str, Mapping[str, str]]] = []
        """The path and the headers (in lower case) of every request."""
        self.port = 0
        self.ending = threading.Event()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def ranges(self, path: str) -> list[str | None]:
        return [headers.get("range") for asked, headers in self.requests if asked == path]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: FileServer

    def do_GET(self) -> None:
        owner, path = self.owner, self.path.partition("?")[0]
        headers = {name.lower(): value for name, value in self.headers.items()}
        owner.requests.append((path, headers))
        if owner.status is not None or path not in {*owner.files, *owner.redirects}:
            self.send_error(owner.status or 404)
        elif path in owner.redirects:
            self.send_response(302)
            self.send_header("Location", owner.redirects[path])
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self._send(path, headers)

    def _send(self, path: str, headers: Mapping[str, str]) -> None:
        content = self.owner.files[path]
        size = content.stat().st_size if isinstance(content, Path) else len(content)
        tag = self.owner.tags.get(path, f'"{size}"')
        start = 0
        if "range" in headers and headers.get("if-range") == tag:
            start = int(headers["range"].removeprefix("bytes=").rstrip("-"))
        self.send_response(206 if start else 200)
        if tag:
            self.send_header("ETag", tag)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        if checksum := self.owner.checksums.get(path, _checksum_of(content)):
            self.send_header("x-goog-hash", f"crc32c={checksum}")
        self.send_header("Content-Length", str(size - start))
        self.end_headers()
        cut = self.owner.cuts.pop(0) if self.owner.cuts else None
        with contextlib.suppress(OSError):
            self._send_content(content, start, size if cut is None else min(size, start + cut))
        self.close_connection = True

    def _send_content(self, content: Content, start: int, end: int) -> None:
        with contextlib.ExitStack() as stack:
            file: Any = (
                stack.enter_context(content.open("rb")) if isinstance(content, Path) else None
            )
            while start < end:
                count = min(_BLOCK, end - start)
                if file is not None:
                    file.seek(start)
                    block = file.read(count)
                else:
                    assert isinstance(content, bytes)
                    block = content[start : start + count]
                self.wfile.write(block)
                start += count
                self.owner.ending.wait(self.owner.chunk_delay)

    def log_message(self, *_: object) -> None: ...


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = False

    def handle_error(self, *_: object) -> None:
        """A client that is gone is part of the test."""


def _checksum_of(content: Content) -> str:
    return encode_crc32c(content) if isinstance(content, bytes) else ""


def encode_crc32c(content: bytes) -> str:
    return base64.b64encode(google_crc32c.value(content).to_bytes(4, "big")).decode()


@contextlib.contextmanager
def serve_files() -> Iterator[FileServer]:
    owner = FileServer()
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"owner": owner}))
    owner.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield owner
    finally:
        owner.ending.set()
        server.shutdown()
        server.server_close()
        thread.join()

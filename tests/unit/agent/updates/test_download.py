from __future__ import annotations

import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cogwork.agent.updates.download import download, fetch_small

CONTENT = bytes(range(256)) * 4000


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves one file with ranges, and breaks off after so many bytes if it is told to."""

    content = CONTENT
    tag = '"one"'
    breaks_after: int | None = None
    ranges: list[str] = []

    def do_GET(self) -> None:
        cls = type(self)
        wanted = self.headers.get("Range")
        start = 0
        if wanted and self.headers.get("If-Range") == cls.tag:
            cls.ranges.append(wanted)
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
        self.send_response(206 if start else 200)
        self.send_header("ETag", cls.tag)
        self.send_header("Content-Length", str(len(cls.content) - start))
        self.end_headers()
        self.wfile.write(cls.content[start:][: cls.breaks_after])

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def served() -> Iterator[tuple[str, type[Handler]]]:
    handler = type("Served", (Handler,), {"ranges": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/release.tar", handler
    server.shutdown()
    server.server_close()
    thread.join()


def test_interrupted_download_continues(served: tuple[str, type[Handler]], tmp_path: Path) -> None:
    url, handler = served
    handler.breaks_after = 300_000
    for _ in range(3):
        with pytest.raises(OSError, match="ended after"):
            download(url, tmp_path)
    handler.breaks_after = None
    done = download(url, tmp_path, hashlib.sha256(CONTENT).hexdigest())
    assert done.read_bytes() == CONTENT
    assert handler.ranges == ["bytes=300000-", "bytes=600000-", "bytes=900000-"]
    assert [each.name for each in tmp_path.iterdir()] == ["release.tar"]


def test_file_that_changed_meanwhile_is_downloaded_from_its_beginning(
    served: tuple[str, type[Handler]], tmp_path: Path
) -> None:
    url, handler = served
    handler.breaks_after = 300_000
    with pytest.raises(OSError):
        download(url, tmp_path)
    handler.breaks_after, handler.tag, handler.content = None, '"two"', CONTENT[::-1]
    assert download(url, tmp_path).read_bytes() == CONTENT[::-1]


def test_wrong_hash_is_refused_and_not_kept(
    served: tuple[str, type[Handler]], tmp_path: Path
) -> None:
    with pytest.raises(OSError, match="damaged"):
        download(served[0], tmp_path, "0" * 64)
    assert [*tmp_path.iterdir()] == []


def test_complete_file_is_not_downloaded_again(
    served: tuple[str, type[Handler]], tmp_path: Path
) -> None:
    digest = hashlib.sha256(CONTENT).hexdigest()
    (tmp_path / "release.tar").write_bytes(CONTENT)
    served[1].content = b"other"
    assert download(served[0], tmp_path, digest).read_bytes() == CONTENT


def test_file_address(tmp_path: Path) -> None:
    (tmp_path / "a b.tar").write_bytes(b"content")
    (tmp_path / "into").mkdir()
    done = download(f"file://{tmp_path}/a%20b.tar", tmp_path / "into")
    assert (done.name, done.read_bytes()) == ("a b.tar", b"content")


@pytest.mark.parametrize("url", ["ftp://example/x", "/etc/passwd", "data:text/plain,x"])
def test_other_schemes_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="does not begin"):
        fetch_small(url, 10)


def test_small_file_has_a_limit(served: tuple[str, type[Handler]]) -> None:
    with pytest.raises(ValueError, match="more than"):
        fetch_small(served[0], 1000)

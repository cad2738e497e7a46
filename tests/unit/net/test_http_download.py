"""Downloads over a real connection: cut, changed, redirected, cancelled."""

from __future__ import annotations

import contextlib
import http.server
import socket
import threading
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.network.file_server import FileServer, encode_crc32c, serve_files
from tests.support.waiting import block_until

from cogwork.core.errors import Interrupted
from cogwork.net.http_download import HttpDownload, RemoteFile, open_url, show_url

CONTENT = bytes(range(256)) * 4000
LIMIT = 1 << 30


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serve_files() as found:
        found.files["/a"] = CONTENT
        yield found


def start(server: FileServer, directory: Path, path: str = "/a") -> HttpDownload:
    return HttpDownload(server.url(path), directory / "a.part", LIMIT)


def test_cut_connections_are_continued(server: FileServer, tmp_path: Path) -> None:
    server.cuts = [0, 300_000, 0, 1, 300_000]
    for _ in range(5):
        with pytest.raises(OSError, match="ended after"):
            start(server, tmp_path).run()
    found = start(server, tmp_path).run()
    assert (tmp_path / "a.part").read_bytes() == CONTENT
    assert found == RemoteFile(f'"{len(CONTENT)}"', len(CONTENT), encode_crc32c(CONTENT))
    assert server.ranges("/a") == [
        None,
        None,
        *("bytes=300000-", "bytes=300000-", "bytes=300001-", "bytes=600001-"),
    ]


def test_complete_download_needs_no_server(server: FileServer, tmp_path: Path) -> None:
    """The process may have been killed before it could use the file."""
    before = start(server, tmp_path).run()
    server.status = 503
    assert start(server, tmp_path).run() == before


def test_changed_file_starts_again(server: FileServer, tmp_path: Path) -> None:
    server.cuts = [300_000]
    with pytest.raises(OSError):
        start(server, tmp_path).run()
    server.files["/a"], server.tags["/a"] = CONTENT[::-1], '"other"'
    start(server, tmp_path).run()
    assert (tmp_path / "a.part").read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize("note", [b"", b"{", b"[1]", b'["\\"other\\"", 5, ""]'])
def test_damaged_note_starts_again(server: FileServer, tmp_path: Path, note: bytes) -> None:
    (tmp_path / "a.part").write_bytes(b"other")
    (tmp_path / "a.note").write_bytes(note)
    if b"other" in note:
        (tmp_path / "a.part").write_bytes(b"longer than it says")
    start(server, tmp_path).run()
    assert (tmp_path / "a.part").read_bytes() == CONTENT


def test_file_without_a_validator_is_not_continued(server: FileServer, tmp_path: Path) -> None:
    server.tags["/a"] = ""
    server.cuts = [300_000]
    with pytest.raises(OSError):
        start(server, tmp_path).run()
    start(server, tmp_path).run()
    assert (tmp_path / "a.part").read_bytes() == CONTENT
    assert server.ranges("/a") == [None, None]


def test_errors_name_the_address_without_its_query(server: FileServer, tmp_path: Path) -> None:
    server.status = 404
    url = server.url("/a?signature=canary")
    with pytest.raises(urllib.error.HTTPError) as failed:
        HttpDownload(url, tmp_path / "a.part", LIMIT).run()
    assert "404" in str(failed.value)
    assert server.url("/a") in str(failed.value)
    assert "canary" not in str(failed.value)
    failed.value.close()
    assert show_url("https://me:canary@host:1/a?b#c") == "https://host:1/a"


def test_server_that_is_away(server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="cannot be read"):
        HttpDownload("http://127.0.0.1:9/a", tmp_path / "a.part", LIMIT).run()


def test_size_is_limited(server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="which is the limit"):
        HttpDownload(server.url("/a"), tmp_path / "a.part", 1000).run()
    assert not (tmp_path / "a.part").exists()


def test_redirect_gets_no_credentials(server: FileServer, tmp_path: Path) -> None:
    server.redirects["/from"] = server.url("/a")
    login = {"part_id": "me", "secret": "canary"}
    partial = tmp_path / "a.part"
    HttpDownload(server.url("/from"), partial, LIMIT, credentials=login).run()
    assert partial.read_bytes() == CONTENT
    (_, first), (_, second) = server.requests
    assert first["secret"] == "canary"
    assert "secret" not in second


def test_redirect_to_a_file_is_refused(server: FileServer, tmp_path: Path) -> None:
    server.redirects["/from"] = f"file://{tmp_path}/secret"
    with pytest.raises(OSError):
        open_url(server.url("/from"))


def test_progress_may_refuse_before_the_first_byte(server: FileServer, tmp_path: Path) -> None:
    def refuse(received: int, size: int | None) -> None:
        assert (received, size) == (0, len(CONTENT))
        raise OSError("the disk is full")

    download = HttpDownload(server.url("/a"), tmp_path / "a.part", LIMIT, on_progress=refuse)
    with pytest.raises(OSError, match="disk is full"):
        download.run()
    assert not (tmp_path / "a.part").exists()


def test_cancel_ends_a_download_that_waits(tmp_path: Path) -> None:
    """The server sends a part, and then nothing."""
    sent, over = threading.Event(), threading.Event()

    class Silent(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"x" * 10)
            sent.set()
            over.wait(60)

        def log_message(self, *_: object) -> None: ...

    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Silent)
    serving = threading.Thread(target=web.serve_forever, args=(0.05,))
    serving.start()
    errors: list[BaseException] = []
    download = HttpDownload(f"http://127.0.0.1:{web.server_port}/", tmp_path / "a.part", LIMIT)

    def run() -> None:
        try:
            download.run()
        except Exception as error:
            errors.append(error)

    running = threading.Thread(target=run)
    try:
        running.start()
        assert sent.wait(10)
        block_until((tmp_path / "a.part").exists)
        download.cancel()
        running.join(10)
        assert not running.is_alive()
        assert [type(each) for each in errors] == [Interrupted]
    finally:
        over.set()
        web.shutdown()
        web.server_close()
        serving.join()


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("phase", ["connects", "waits"])
def test_cancel_ends_a_download_before_the_server_answers(
    tmp_path: Path, scheme: str, phase: str
) -> None:
    """The server accepts no connection, or says nothing, not even in a handshake of TLS."""
    with contextlib.ExitStack() as stack:
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        if phase == "connects":
            # The kernel answers no further connection while this one is not accepted.
            stack.enter_context(socket.create_connection(silent.getsockname()))
        url = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/"
        download = HttpDownload(url, tmp_path / "a.part", LIMIT)
        errors: list[type[BaseException]] = []

        def run() -> None:
            try:
                download.run()
            except BaseException as error:
                errors.append(type(error))

        running = threading.Thread(target=run)
        running.start()
        # It is blocked in the kernel, which nothing tells.
        running.join(0.5)
        assert running.is_alive()
        download.cancel()
        running.join(10)
        assert not running.is_alive()
        assert errors == [Interrupted]


def test_cancelled_download_does_not_connect(server: FileServer, tmp_path: Path) -> None:
    download = start(server, tmp_path)
    download.cancel()
    with pytest.raises(Interrupted):
        download.run()
    assert not server.requests

"""The file with the server's address."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cogwork.server.serving_file import VARIABLE, ServingFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "serving.json"


@pytest.fixture
def file(path: Path) -> ServingFile:
    return ServingFile({VARIABLE: str(path)})


def test_agent_reads_the_process_and_its_local_address(file: ServingFile, path: Path) -> None:
    file.write([("0.0.0.0", 8080), ("::1", 9090)], is_encrypted=True)
    assert json.loads(path.read_bytes()) == {"pid": os.getpid(), "url": "https://127.0.0.1:8080"}


def test_same_address_is_not_written_again(file: ServingFile, path: Path) -> None:
    """The server checks its certificate four times a second, and each write waits for the disk."""
    file.write([("localhost", 8080)], is_encrypted=False)
    before = path.stat()
    file.write([("localhost", 8080)], is_encrypted=False)
    assert path.stat() == before
    file.write([("localhost", 8080)], is_encrypted=True)
    assert json.loads(path.read_bytes())["url"] == "https://localhost:8080"


def test_failed_write_is_repeated(file: ServingFile, path: Path) -> None:
    path.mkdir()
    file.write([("localhost", 8080)], is_encrypted=False)
    path.rmdir()
    file.write([("localhost", 8080)], is_encrypted=False)
    assert json.loads(path.read_bytes())["url"] == "http://localhost:8080"


def test_server_without_an_agent_writes_nothing(tmp_path: Path) -> None:
    ServingFile({}).write([("localhost", 8080)], is_encrypted=False)
    assert [*tmp_path.iterdir()] == []

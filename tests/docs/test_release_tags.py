"""The tags of releases are found in the changelog and the commits, and created once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from scripts.release.tags import main

IDENTITY = ("-c", "user.name=A", "-c", "user.email=a@example.com")
HEADINGS = ("## [Unreleased]", "## [1.1.0] - 2026-10-01", "## [1.0.0] - 2026-09-01")


class Repository:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.git("init", "--quiet")
        (path / "src/cogwork").mkdir(parents=True)

    def git(self, *arguments: str) -> str:
        command = ["git", *IDENTITY, *arguments]
        done = subprocess.run(command, cwd=self.path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, version: str, *headings: str) -> str:
        """Commit the version and the changelog, and return the name of the commit."""
        (self.path / "src/cogwork/__init__.py").write_text(f'"""A."""\n__version__ = "{version}"\n')
        (self.path / "CHANGELOG.md").write_text("\n\n".join(("# Changelog", *headings, "")))
        self.git("add", ".")
        self.git("commit", "--quiet", "--allow-empty", "--message", "a change")
        return self.git("rev-parse", "HEAD")

    def list_tags(self) -> dict[str, str]:
        found = self.git("for-each-ref", "refs/tags", "--format=%(refname:short) %(*objectname)")
        return dict(line.split() for line in found.splitlines())


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


@pytest.fixture
def releases(repository: Repository) -> dict[str, str]:
    """The commits of two releases, with others between them."""
    repository.commit("1.0.0", HEADINGS[0])
    first = repository.commit("1.0.0", HEADINGS[2])
    repository.commit("1.1.0", HEADINGS[0], HEADINGS[2])
    second = repository.commit("1.1.0", *HEADINGS[1:])
    repository.commit("1.2.0", *HEADINGS)
    return {"v1.0.0": first, "v1.1.0": second}


def test_missing_tags_are_only_shown_by_default(
    repository: Repository, releases: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([], repository.path) == 0
    assert main(["--check"], repository.path) == 1
    assert repository.list_tags() == {}
    shown = capsys.readouterr().out
    assert f"v1.0.0  {releases['v1.0.0'][:12]}  missing" in shown


def test_tags_are_created_once_and_the_same_everywhere(
    repository: Repository, releases: dict[str, str]
) -> None:
    for _ in range(2):
        assert main(["--create"], repository.path) == 0
        assert repository.list_tags() == releases
    assert main(["--check"], repository.path) == 0
    tag = repository.git("rev-parse", "v1.0.0")
    repository.git("tag", "--delete", "v1.0.0")
    assert main(["--create"], repository.path) == 0
    assert repository.git("rev-parse", "v1.0.0") == tag


@pytest.mark.usefixtures("releases")
def test_tag_of_another_version_is_reported_and_stays(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.git("tag", "v1.0.0", "HEAD")
    assert main(["--create"], repository.path) == 1
    assert "the tag v1.0.0 is wrong: its commit " in capsys.readouterr().err
    assert repository.git("rev-parse", "v1.0.0") == repository.git("rev-parse", "HEAD")


def test_release_with_another_version_is_not_tagged(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    commit = repository.commit("0.9.0", HEADINGS[2])
    assert main(["--create"], repository.path) == 1
    assert f"{commit[:12]} adds 1.0.0 to CHANGELOG.md, but has the version 0.9.0" in (
        capsys.readouterr().err
    )
    # A tag that was set by hand is accepted.
    repository.git("tag", "v1.0.0", repository.commit("1.0.0", HEADINGS[2]))
    assert main(["--check"], repository.path) == 0


def test_shallow_clone_is_explained(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.commit("1.0.0")
    (repository.path / "CHANGELOG.md").write_text(f"{HEADINGS[2]}\n")
    assert main([], repository.path) == 1
    assert "git fetch --unshallow" in capsys.readouterr().err

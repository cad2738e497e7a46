"""Create the tag of each release: `python -m scripts.release.tags`.

Without an option, print what is missing. A release is a commit that adds the heading of its version
to the changelog, such as `## [1.2.3] - 2026-11-15`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

_REPOSITORY: Final = Path(__file__).parents[2]
_CHANGELOG: Final = "CHANGELOG.md"
_VERSION_FILE: Final = "src/cogwork/__init__.py"
_HEADING: Final = re.compile(r"^## \[(\d[^\]]*)\] - \d{4}-\d\d-\d\d$", re.MULTILINE)
_VERSION: Final = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)


class CannotTag(Exception):
    """A release has no commit, or its tag is on a commit with another version."""


class ReleaseTag(NamedTuple):
    name: str
    """Such as v1.2.3."""
    commit: str
    exists: bool


def main(argv: Sequence[str] | None = None, repository: Path = _REPOSITORY) -> int:
    parser = argparse.ArgumentParser(description="Tag the releases of the changelog.")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--create", action="store_true", help="create the missing tags")
    action.add_argument("--check", action="store_true", help="fail if a tag is missing")
    options = parser.parse_args(argv)
    try:
        tags = find_tags(repository)
        for tag in tags:
            if options.create and not tag.exists:
                create_tag(repository, tag)
            print(f"{tag.name}  {tag.commit[:12]}  {_describe(tag, is_created=options.create)}")
    except CannotTag as error:
        print(error, file=sys.stderr)
        return 1
    return 1 if options.check and not all(tag.exists for tag in tags) else 0


def find_tags(repository: Path) -> list[ReleaseTag]:
    """Return the tags that the releases should have, oldest first. Raise CannotTag."""
    changelog = (repository / _CHANGELOG).read_text(encoding="utf-8")
    return [_find_tag(repository, version) for version in reversed(_HEADING.findall(changelog))]


def create_tag(repository: Path, tag: ReleaseTag) -> None:
    """Create an annotated tag that depends only on its commit, so that it is the same in every
    clone."""
    fields = _git(repository, "show", "--no-patch", "--format=%cn%n%ce%n%cI", tag.commit)
    keys = (f"GIT_COMMITTER_{each}" for each in ("NAME", "EMAIL", "DATE"))
    tagger = dict(zip(keys, fields.splitlines(), strict=True))
    message = f"Cogwork {tag.name.removeprefix('v')}"
    _git(repository, "tag", "--annotate", "--message", message, tag.name, tag.commit, **tagger)


def _find_tag(repository: Path, version: str) -> ReleaseTag:
    name = f"v{version}"
    tagged = _git(repository, "for-each-ref", "--format=%(refname)", f"refs/tags/{name}")
    commit = (
        _git(repository, "rev-list", "--max-count=1", name).strip()
        if tagged
        else _find_commit(repository, version)
    )
    if (found := _read_version(repository, commit)) != version:
        raise CannotTag(
            f"the tag {name} is wrong: its commit {commit[:12]} has the version {found}; delete it "
            f"and run this again: git tag --delete {name}"
            if tagged
            else f"{commit[:12]} adds {version} to {_CHANGELOG}, but has the version {found}; tag "
            f"the right commit by hand: git tag --annotate {name} COMMIT"
        )
    return ReleaseTag(name, commit, bool(tagged))


def _find_commit(repository: Path, version: str) -> str:
    """Return the first commit whose changelog has the heading of the version."""
    search = ("log", "--reverse", "--format=%H", f"-S## [{version}] - ", "--", _CHANGELOG)
    commits = _git(repository, *search).split()
    if not commits:
        raise CannotTag(
            f"no commit adds the release {version} to {_CHANGELOG}; if this clone is shallow, run: "
            "git fetch --unshallow"
        )
    return commits[0]


def _read_version(repository: Path, commit: str) -> str:
    found = _VERSION.search(_git(repository, "show", f"{commit}:{_VERSION_FILE}"))
    return found[1] if found is not None else "(none)"


def _describe(tag: ReleaseTag, *, is_created: bool) -> str:
    if tag.exists:
        return "exists"
    return "created" if is_created else "missing; create it with --create"


def _git(repository: Path, *arguments: str, **environment: str) -> str:
    surroundings: Mapping[str, str] = {**os.environ, **environment}
    done = subprocess.run(
        ["git", *arguments],
        cwd=repository,
        env=surroundings,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise CannotTag(f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())

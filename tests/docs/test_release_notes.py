"""A release needs a tag, a version and a section of the changelog that agree."""

from __future__ import annotations

import pytest
from scripts.release_notes import NotReleasable, main, release_notes

from cogwork import __version__

CHANGELOG = """\
# Changelog

## [Unreleased]

- Later.

## [1.2.0] - 2026-11-15

### Added

- A thing.

## [1.1.0] - 2026-10-01

## [1.0.0] - 2026-09-01

- The first.
"""


def test_release_notes_are_the_section_of_the_version() -> None:
    assert release_notes(CHANGELOG, "v1.2.0", "1.2.0") == "### Added\n\n- A thing."
    assert release_notes(CHANGELOG, "v1.0.0", "1.0.0") == "- The first."


@pytest.mark.parametrize(
    ("tag", "version", "reason"),
    [
        ("v1.2.1", "1.2.0", "has version 1.2.0"),
        ("1.2.0", "1.2.0", "has version 1.2.0"),
        ("v2.0.0", "2.0.0", "no section `## \\[2.0.0\\] - "),
        ("v1.1.0", "1.1.0", "is empty"),
    ],
)
def test_inconsistent_releases_are_refused(tag: str, version: str, reason: str) -> None:
    with pytest.raises(NotReleasable, match=reason):
        release_notes(CHANGELOG, tag, version)


def test_unreleased_version_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"v{__version__}x"]) == 1
    assert "cannot be released" in capsys.readouterr().err

"""Prints the section of the changelog for a release, and fails if it cannot be released.

python -m scripts.release_notes v1.2.3
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from cogwork import __version__

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"


class NotReleasable(Exception):
    """Tag, version and changelog do not agree."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Print the changelog of a release.")
    parser.add_argument("tag", help="such as v1.2.3")
    tag = parser.parse_args(argv).tag
    try:
        print(release_notes(CHANGELOG.read_text(encoding="utf-8"), tag, __version__))
    except NotReleasable as error:
        print(f"{tag} cannot be released: {error}", file=sys.stderr)
        return 1
    return 0


def release_notes(changelog: str, tag: str, version: str) -> str:
    """Return the text under `## [1.2.3] - 2026-11-15`."""
    if tag != f"v{version}":
        raise NotReleasable(f"the package has version {version}; change src/cogwork/__init__.py")
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |\Z)"
    section = re.search(heading, changelog, re.MULTILINE | re.DOTALL)
    if section is None:
        raise NotReleasable(f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD`")
    notes = section[1].strip()
    if not notes:
        raise NotReleasable(f"the section of {version} in CHANGELOG.md is empty")
    return notes


if __name__ == "__main__":
    sys.exit(main())

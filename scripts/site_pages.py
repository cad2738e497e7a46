"""Collects the pages of the documentation site, from docs/ and from the root.

Links are written for readers of the repository. They are rewritten if a page has another location
on the site.

    python -m scripts.site_pages build/docs
"""

from __future__ import annotations

import argparse
import posixpath
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOT_PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "schemas/machine.schema.json": "schemas/machine.schema.json",
}
"""Files outside docs/ that belong to the site, with their locations on the site."""

_LINK = re.compile(r"(?<=\]\()(?P<target>[^)#:\s]+)(?P<anchor>#[^)\s]*)?(?=\))")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Collect the pages of the documentation site.")
    parser.add_argument("directory", type=Path, help="where to write them; emptied first")
    collect_pages(ROOT, parser.parse_args(argv).directory)
    return 0


def collect_pages(root: Path, directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    places = site_places(root)
    for source, place in places.items():
        target = directory / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.endswith(".md"):
            text = (root / source).read_text(encoding="utf-8")
            target.write_text(relink(text, source, places), encoding="utf-8")
        else:
            shutil.copyfile(root / source, target)


def site_places(root: Path) -> dict[str, str]:
    """The location on the site of each file of the repository, by its path."""
    docs = root / "docs"
    files = (path.relative_to(docs).as_posix() for path in docs.rglob("*") if path.is_file())
    return {f"docs/{file}": file for file in sorted(files)} | ROOT_PAGES


def relink(text: str, source: str, places: Mapping[str, str]) -> str:
    """Rewrite the links of a page. A link that leaves the site is kept, so that the build fails."""
    here = posixpath.dirname(source)
    page_directory = posixpath.dirname(places[source])

    def rewrite(link: re.Match[str]) -> str:
        linked = posixpath.normpath(posixpath.join(here, link["target"]))
        place = places.get(linked) or places.get(f"{linked}/README.md")
        if place is None:
            return link[0]
        return posixpath.relpath(place, page_directory or ".") + (link["anchor"] or "")

    return _LINK.sub(rewrite, text)


if __name__ == "__main__":
    sys.exit(main())

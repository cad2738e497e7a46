"""The list of decisions, generated from the titles of their pages."""

from __future__ import annotations

from pathlib import Path

_INTRO = """\
# Decisions

Half a page for each decision that another engineer would question: its context, the decision, and
what follows from it.

"""


def decisions_page(directory: Path) -> str:
    pages = sorted(directory.glob("[0-9]*.md"))
    return _INTRO + "".join(f"- [{_title(page)}]({page.name})\n" for page in pages)


def _title(page: Path) -> str:
    with page.open(encoding="utf-8") as lines:
        return next(lines).removeprefix("# ").strip()

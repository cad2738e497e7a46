"""The map of the code names files that exist."""

import re
from pathlib import Path

import pytest

import cogwork

ROOT = Path(__file__).parents[2]
SOURCES = Path(cogwork.__file__).parent
PAGES = [
    ROOT / "ARCHITECTURE.md",
    *sorted((ROOT / "docs" / "adr").glob("*.md")),
    *sorted(SOURCES.rglob("__init__.py")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(page.parents[2])))
def test_files_that_a_text_names_exist(page: Path) -> None:
    named = re.findall(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py)`", page.read_text())
    if page.name == "__init__.py":
        missing = [file for file in named if not _exists(file, SOURCES, page.parent)]
    else:
        missing = [file for file in named if "/" in file and not _exists(file, SOURCES, ROOT)]
    assert missing == []


def test_tree_of_errors_names_files_that_exist() -> None:
    text = (SOURCES / "core" / "errors.py").read_text()
    named = re.findall(r"\(((?:[a-z_0-9]+/)+[a-z_0-9]+\.py)", text)
    assert named
    assert [file for file in named if not _exists(file, SOURCES)] == []


def _exists(file: str, *folders: Path) -> bool:
    return any((folder / file).exists() for folder in folders)


def test_every_package_says_what_it_is() -> None:
    packages = {each.parent for each in SOURCES.rglob("*.py")}
    silent = [
        str(each.relative_to(SOURCES))
        for each in packages
        if each.parent == SOURCES and not (each / "__init__.py").read_text().startswith('"""')
    ]
    assert sorted(silent) == []

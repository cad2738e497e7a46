"""The map of the code names files that exist."""

import re
from pathlib import Path

import pytest

import cogwork

ROOT = Path(__file__).parents[2]
SOURCES = Path(cogwork.__file__).parent
PAGES = [ROOT / "ARCHITECTURE.md", *sorted(SOURCES.rglob("__init__.py"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(page.parents[2])))
def test_files_that_a_text_names_exist(page: Path) -> None:
    named = re.findall(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py)`", page.read_text())
    bases = (SOURCES, ROOT, page.parent)
    assert [file for file in named if not any((base / file).exists() for base in bases)] == []


def test_every_package_says_what_it_is() -> None:
    packages = {each.parent for each in SOURCES.rglob("*.py")}
    silent = [
        str(each.relative_to(SOURCES))
        for each in packages
        if each.parent == SOURCES and not (each / "__init__.py").read_text().startswith('"""')
    ]
    assert sorted(silent) == []

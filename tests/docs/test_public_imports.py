"""Guides and templates import only the public interface: `docs/reference/stability.md`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.paths import REPOSITORY

import cogwork.driver

PAGES = sorted([REPOSITORY / "README.md", *REPOSITORY.glob("docs/**/*.md")])
TEMPLATES = sorted(REPOSITORY.glob("src/cogwork/cli/module/templates/*.txt"))
IMPORT = re.compile(r"^\s*(?:from|import)\s+(cogwork[\w.]*)", re.MULTILINE)


@pytest.mark.parametrize("file", [*PAGES, *TEMPLATES], ids=lambda file: file.name)
def test_only_the_public_interface_is_imported(file: Path) -> None:
    imported = set(IMPORT.findall(file.read_text()))
    assert [
        name
        for name in imported
        if name != "cogwork.driver" and not name.startswith("cogwork.contracts.")
    ] == []


def test_there_are_templates() -> None:
    assert TEMPLATES


def test_every_public_name_exists_and_is_documented() -> None:
    page = (REPOSITORY / "docs/reference/driver.md").read_text()
    for name in cogwork.driver.__all__:
        assert hasattr(cogwork.driver, name)
        assert f"`{name}`" in page, name

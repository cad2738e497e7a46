from __future__ import annotations

import os
from pathlib import Path

import pytest
from scripts.control_page import (
    PACKAGES,
    PAGE,
    SOURCE_ARCHIVE,
    SOURCES,
    NotBuilt,
    build_page,
    describe_missing,
    is_current,
    parse_version,
)
from tests.support.paths import REPOSITORY

FILES = (
    *("web/package-lock.json", "web/index.html", "web/vite.config.ts", "web/svelte.config.js"),
    *("web/package.json", "web/tsconfig.json"),
    *("web/src/views/Map.svelte", "web/public/icon.svg"),
)
BUILT = 1000.0
WITHOUT = "or set COGWORK_WITHOUT_PAGE=1 to install Cogwork without the page"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree whose page is built."""
    for name in (*FILES, PAGE):
        write(tmp_path / name, BUILT)
    return tmp_path


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory where programs are found."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    return directory


def write(path: Path, time: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (time, time))


def add_program(directory: Path, name: str, script: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_every_source_exists() -> None:
    assert all((REPOSITORY / each).exists() for each in SOURCES)


def test_page_as_old_as_its_sources_is_current(root: Path) -> None:
    assert is_current(root)


@pytest.mark.parametrize("source", FILES)
def test_page_is_older_than_a_changed_source(root: Path, source: str) -> None:
    write(root / source, BUILT + 1)
    assert not is_current(root)


def test_what_is_beside_the_sources_does_not_matter(root: Path) -> None:
    write(root / "web/eslint.config.js", BUILT + 1)
    write(root / "web/src/views/map.test.ts", BUILT + 1)
    write(root / "web/node_modules/svelte/index.js", BUILT + 1)
    assert is_current(root)


def test_missing_page_is_not_current(root: Path) -> None:
    (root / PAGE).unlink()
    assert not is_current(root)


def test_times_in_a_source_archive_do_not_matter(root: Path) -> None:
    (root / SOURCE_ARCHIVE).touch()
    write(root / FILES[0], BUILT + 1)
    assert is_current(root)
    (root / PAGE).unlink()
    assert not is_current(root)


@pytest.mark.parametrize(
    ("version", "has_npm", "problem"),
    [
        (None, False, "install Node 22.12 or newer with npm"),
        (None, True, "install Node 22.12 or newer with npm"),
        ("v18.19.1", True, "install Node 22.12 or newer with npm (this is v18.19.1)"),
        ("v20.18.3", True, "install Node 22.12 or newer with npm (this is v20.18.3)"),
        ("v21.7.3", True, "install Node 22.12 or newer with npm (this is v21.7.3)"),
        ("v22.11.0", True, "install Node 22.12 or newer with npm (this is v22.11.0)"),
        ("nothing", True, "install Node 22.12 or newer with npm (this is nothing)"),
        ("v20.19.0", False, "install npm (Node v20.19.0 is installed without it)"),
        ("v20.19.0", True, None),
        ("v22.12.0", True, None),
        ("v24.1.0", True, None),
    ],
)
def test_what_to_install(version: str | None, has_npm: bool, problem: str | None) -> None:
    assert describe_missing(version, has_npm=has_npm) == problem


@pytest.mark.parametrize(
    ("text", "version"), [("v20.19.2", (20, 19)), ("v24.0.0-pre", (24, 0)), ("20", ()), ("", ())]
)
def test_version_of_node(text: str, version: tuple[int, ...]) -> None:
    assert parse_version(text) == version


def test_current_page_needs_no_node(root: Path, programs: Path) -> None:
    build_page(root)
    assert not (root / PACKAGES).exists()


def test_without_node_the_sentence_says_what_to_do(root: Path, programs: Path) -> None:
    write(root / "web/index.html", BUILT + 1)
    with pytest.raises(NotBuilt) as caught:
        build_page(root)
    assert str(caught.value) == (
        "the control page is older than its sources: install Node 22.12 or newer with npm, "
        + WITHOUT
    )


def test_old_node_is_named(root: Path, programs: Path) -> None:
    (root / PAGE).unlink()
    add_program(programs, "node", "echo v18.19.1")
    add_program(programs, "npm", "exit 0")
    with pytest.raises(NotBuilt) as caught:
        build_page(root)
    assert str(caught.value) == (
        "the control page is not built: install Node 22.12 or newer with npm (this is v18.19.1), "
        + WITHOUT
    )


def test_node_that_does_not_run_is_as_good_as_none(root: Path, programs: Path) -> None:
    (root / PAGE).unlink()
    add_program(programs, "node", "exit 3")
    add_program(programs, "npm", "exit 0")
    with pytest.raises(NotBuilt, match=r"is not built: install Node 22\.12 .*exit status 3"):
        build_page(root)


@pytest.mark.parametrize(
    ("failing", "sentence"),
    [
        ("ci", "`npm ci` failed: check the connection to the npm registry"),
        ("run", "`npm run build` failed: correct what its messages say"),
    ],
)
def test_failure_of_npm_is_explained(
    root: Path, programs: Path, failing: str, sentence: str
) -> None:
    (root / PAGE).unlink()
    (root / "web/node_modules").mkdir()
    add_program(programs, "node", "echo v20.19.0")
    add_program(programs, "npm", f'test "$1" != {failing}')
    with pytest.raises(NotBuilt) as caught:
        build_page(root)
    assert str(caught.value) == f"the control page is not built, and {sentence}, {WITHOUT}"


def test_packages_are_installed_once(root: Path, programs: Path) -> None:
    (root / PAGE).unlink()
    (root / "web/node_modules").mkdir()
    add_program(programs, "node", "echo v20.19.0")
    add_program(programs, "npm", "echo $1 >> commands")
    build_page(root)
    build_page(root)
    assert (root / "web/commands").read_text().split() == ["ci", "run", "run"]

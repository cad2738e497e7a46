"""Build the control page with Node, unless it is up to date.

python -m scripts.control_page
"""

from __future__ import annotations

import argparse
import itertools
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

PAGE: Final = "src/cogwork/control/site/index.html"
LOCK: Final = "web/package-lock.json"
SOURCES: Final = (
    *(LOCK, "web/package.json", "web/tsconfig.json", "web/vite.config.ts", "web/svelte.config.js"),
    *("web/index.html", "web/src", "web/public"),
)
PACKAGES: Final = "web/node_modules/.installed"
"""A file that is modified by each installation of npm packages."""
SOURCE_ARCHIVE: Final = "PKG-INFO"
"""A file that exists only in source archives."""

MINIMUM_NODE: Final = (22, 12)
"""The version that users are asked to install. Vite also supports 20 from 20.19 on, but no odd
number."""
INSTALL: Final = (
    *("ci", "--include=dev", "--ignore-scripts"),
    *("--no-audit", "--no-fund", "--loglevel", "error"),
)
BUILD: Final = ("run", "build", "--silent", "--", "--logLevel", "warn")

_NODE: Final = f"Node {'.'.join(map(str, MINIMUM_NODE))} or newer with npm"
_WITHOUT: Final = "or set COGWORK_WITHOUT_PAGE=1 to install Cogwork without the page"
_TEST: Final = ".test.ts"
_VERSION_TIMEOUT: Final = 30.0
_NPM_TIMEOUT: Final = 1800.0


class NotBuilt(Exception):
    """The page cannot be built. The message explains why and what to do."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the control page.")
    parser.add_argument(
        "--packages", action="store_true", help="install the npm packages even if it is up to date"
    )
    options = parser.parse_args()
    try:
        if options.packages:
            install_packages(Path.cwd())
        build_page(Path.cwd())
    except NotBuilt as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def build_page(root: Path) -> None:
    if is_current(root):
        return
    install_packages(root)
    run_npm(BUILD, root, "correct what its messages say")


def install_packages(root: Path) -> None:
    if _is_newer(root / PACKAGES, [root / LOCK]):
        return
    run_npm(INSTALL, root, "check the connection to the npm registry")
    (root / PACKAGES).touch()


def is_current(root: Path) -> bool:
    """Return whether the page is built, and its sources have not changed since.

    In a source archive, the times of files are ignored, because some versions of pip set them when
    unpacking.
    """
    if (root / SOURCE_ARCHIVE).is_file():
        return (root / PAGE).is_file()
    return _is_newer(root / PAGE, _list_sources(root))


def _list_sources(root: Path) -> Iterator[Path]:
    for name in SOURCES:
        path = root / name
        files = (each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
        yield from (each for each in files if not each.name.endswith(_TEST))


def _is_newer(file: Path, sources: Iterable[Path]) -> bool:
    if not file.is_file():
        return False
    time = file.stat().st_mtime_ns
    return all(each.stat().st_mtime_ns <= time for each in sources)


def run_npm(arguments: Sequence[str], root: Path, advice: str) -> None:
    npm = find_npm(root)
    command = " ".join(itertools.takewhile(lambda word: not word.startswith("-"), arguments))
    try:
        # Print npm's messages on our output, because pip shows that output if the build fails.
        subprocess.run([npm, *arguments], cwd=root / "web", timeout=_NPM_TIMEOUT, check=True)
    except (OSError, subprocess.SubprocessError):
        raise NotBuilt(
            f"{_describe_page(root)}, and `npm {command}` failed: {advice}, {_WITHOUT}"
        ) from None


def find_npm(root: Path) -> str:
    """Return the path of npm. Raise an error if Node is missing or too old."""
    node, npm = shutil.which("node"), shutil.which("npm")
    problem = describe_missing(_ask_version(node) if node else None, has_npm=npm is not None)
    if npm is None or problem is not None:
        raise NotBuilt(f"{_describe_page(root)}: {problem}, {_WITHOUT}")
    return npm


def describe_missing(version: str | None, *, has_npm: bool) -> str | None:
    """Return the program to install, or None. `version` is Node's answer; None if Node is
    missing."""
    if version is None:
        return f"install {_NODE}"
    if not is_supported(parse_version(version)):
        return f"install {_NODE} (this is {version})"
    return None if has_npm else f"install npm (Node {version} is installed without it)"


def is_supported(version: tuple[int, ...]) -> bool:
    return version >= MINIMUM_NODE or (20, 19) <= version < (21, 0)


def parse_version(text: str) -> tuple[int, ...]:
    """Return the first two numbers of an answer such as v20.19.2; empty if there are none."""
    found = re.match(r"v(\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else ()


def _ask_version(node: str) -> str:
    try:
        done = subprocess.run(
            [node, "--version"], stdout=subprocess.PIPE, timeout=_VERSION_TIMEOUT, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"a Node that does not run: {error}"
    return done.stdout.decode(errors="replace").strip()


def _describe_page(root: Path) -> str:
    if not (root / PAGE).is_file():
        return "the control page is not built"
    if not is_current(root):
        return "the control page is older than its sources"
    return "the packages that build the control page are not installed"


if __name__ == "__main__":
    sys.exit(main())

"""Build the control page with Node, unless it is up to date.

python -m scripts.control_page
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

PAGE: Final = "src/cogwork/control/site/index.html"
LOCK: Final = "web/package-lock.json"
SOURCES: Final = (LOCK, "web/index.html", "web/vite.config.ts", "web/src", "web/public")
PACKAGES: Final = "web/node_modules/.installed"
"""As old as the installed npm packages."""
SOURCE_ARCHIVE: Final = "PKG-INFO"
"""A file that only source archives have."""

MINIMUM_NODE: Final = (20, 19)
"""The oldest that Vite supports."""
INSTALL: Final = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error")
BUILD: Final = ("run", "--silent", "build", "--", "--logLevel", "warn")

_NODE: Final = f"Node {'.'.join(map(str, MINIMUM_NODE))} or newer with npm"
_WITHOUT: Final = "or set COGWORK_WITHOUT_PAGE=1 to install Cogwork without the page"
_VERSION_TIMEOUT: Final = 30.0
_NPM_TIMEOUT: Final = 1800.0


class NotBuilt(Exception):
    """The page cannot be built. The text is a sentence that says why, and what to do."""


def main() -> int:
    try:
        build_page(Path.cwd())
    except NotBuilt as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def build_page(root: Path) -> None:
    if is_current(root):
        return
    npm = find_npm("is older than its sources" if (root / PAGE).is_file() else "is not built")
    if not _is_newer(root / PACKAGES, [root / LOCK]):
        run_npm(npm, INSTALL, root, "check the connection to the npm registry")
        (root / PACKAGES).touch()
    run_npm(npm, BUILD, root, "correct what its messages say")


def is_current(root: Path) -> bool:
    """Return whether the page is built, and none of its sources was changed after that.

    In a source archive, the times say nothing: some versions of pip set them when they unpack it.
    """
    if (root / SOURCE_ARCHIVE).is_file():
        return (root / PAGE).is_file()
    return _is_newer(root / PAGE, _list_sources(root))


def _list_sources(root: Path) -> Iterator[Path]:
    for name in SOURCES:
        path = root / name
        yield from (each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]


def _is_newer(file: Path, sources: Iterable[Path]) -> bool:
    if not file.is_file():
        return False
    time = file.stat().st_mtime_ns
    return all(each.stat().st_mtime_ns <= time for each in sources)


def find_npm(state: str) -> str:
    """Return the path of npm if it and Node are usable. `state` says what the page is like."""
    node, npm = shutil.which("node"), shutil.which("npm")
    problem = describe_missing(_ask_version(node) if node else None, has_npm=npm is not None)
    if npm is None or problem is not None:
        raise NotBuilt(f"the control page {state}: {problem}, {_WITHOUT}")
    return npm


def describe_missing(version: str | None, *, has_npm: bool) -> str | None:
    """Return what to install, if anything. `version` is Node's answer, or None without Node."""
    if version is None:
        return f"install {_NODE}"
    if parse_version(version) < MINIMUM_NODE:
        return f"install {_NODE} (this is {version})"
    return None if has_npm else f"install npm (Node {version} is there without it)"


def parse_version(text: str) -> tuple[int, ...]:
    """Return the first two numbers of an answer such as v20.19.2, or none."""
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


def run_npm(npm: str, arguments: Sequence[str], root: Path, advice: str) -> None:
    command = f"npm {arguments[0]}" if arguments is INSTALL else "npm run build"
    try:
        # Its messages go where ours go: pip shows them if the build fails.
        subprocess.run([npm, *arguments], cwd=root / "web", timeout=_NPM_TIMEOUT, check=True)
    except (OSError, subprocess.SubprocessError):
        raise NotBuilt(
            f"the control page is not built, because `{command}` failed: {advice}, {_WITHOUT}"
        ) from None


if __name__ == "__main__":
    sys.exit(main())

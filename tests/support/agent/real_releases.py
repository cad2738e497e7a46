"""Real, signed releases of revisions of this repository, which each revision builds itself.

They stay in `build/releases`, so a second run takes no time. What is not committed is not in them.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from scripts.release.lock import lock_path
from tests.support.paths import REPOSITORY

from cogwork.agent.release.manifest import archive_name
from cogwork.agent.release.signature import TrustedKeys, parse_public_key
from cogwork.agent.slots.installer import Installer
from cogwork.agent.slots.interpreter import PYTHON
from cogwork.agent.slots.layout import Layout
from cogwork.core.versions.platform_name import PLATFORM
from cogwork.core.versions.product import Product

CACHE = REPOSITORY / "build" / "releases"
PAGE = Path("src/cogwork/control/site")
VERSION_FILE = "src/cogwork/__init__.py"
CONTENT = ("src", "scripts", "packaging", "pyproject.toml", "README.md", "LICENSE")
"""What a release is made of."""
MAX_AGE = 24 * 3600.0
"""Seconds after which releases that were not used are removed: each revision takes a gigabyte."""

_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)


@dataclass(frozen=True)
class RealRelease:
    """The server and the agent of one revision."""

    directory: Path
    version: str

    def archive(self, product: Product) -> Path:
        return self.directory / archive_name(product, self.version, PLATFORM)

    def slot(self, product: Product) -> Path:
        """Return the installed version, to be linked because installing takes a minute."""
        layout = Layout(self.directory / "root")
        slot = layout.slot(product, self.version)
        with _lock():
            if not slot.is_dir():
                keys = TrustedKeys([parse_public_key(public_key())])
                Installer(layout, keys).install(self.archive(product), lambda _: None)
        return slot


def current_release() -> RealRelease:
    """Return the release of the commit under test."""
    return build("HEAD")


def earlier_release() -> RealRelease:
    """Return the release of the newest tag of an earlier version, or skip the test."""
    version = _version_of(_git("show", f"HEAD:{VERSION_FILE}"))
    for tag in _git("tag", "--merged", "HEAD", "--sort=-version:refname", "--list", "v*").split():
        if _version_key(tag.removeprefix("v")) < _version_key(version):
            return build(tag)
    pytest.skip(f"there is no tag of a version before {version}")


def broken_release(version: str, file: str, appended: str) -> RealRelease:
    """Return the release of the commit under test as another version, with code added to a file."""
    before = _version_of(_git("show", f"HEAD:{VERSION_FILE}"))
    return build("HEAD", {VERSION_FILE: (before, version), file: ("", appended)})


def build(revision: str, changes: Mapping[str, tuple[str, str]] | None = None) -> RealRelease:
    """Return the release of a revision. Changes are a text and its replacement for each file.

    An empty text stands for the end of the file.
    """
    lock = lock_path(Product.SERVER)
    if not (REPOSITORY / lock).exists():
        pytest.skip(f"{lock} does not exist; `make lock` creates it")
    digest = hashlib.sha256(repr(changes).encode()).hexdigest()[:8] if changes else "original"
    commit = _git("log", "-1", "--format=%H", revision, "--", *CONTENT).strip()
    directory = CACHE / f"{commit}-{digest}-py{PYTHON}"
    with _lock():
        if not directory.is_dir():
            _remove_old()
            _build(commit, changes or {}, directory)
        os.utime(directory)
    (archive,) = directory.glob("cogwork-server-*.tar")
    start, end = archive_name(Product.SERVER, "|", PLATFORM).split("|")
    return RealRelease(directory, archive.name.removeprefix(start).removesuffix(end))


def public_key() -> bytes:
    """Return the key that verifies the releases."""
    key = load_pem_private_key(_private_key().read_bytes(), None)
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def link_tree(source: Path, target: Path) -> None:
    """Copy a directory without copying its files, where the file system allows it."""
    shutil.copytree(source, target, symlinks=True, copy_function=_link)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def _build(commit: str, changes: Mapping[str, tuple[str, str]], directory: Path) -> None:
    work = CACHE / f".{directory.name}"
    shutil.rmtree(work, ignore_errors=True)
    tree = work / "tree"
    _git("clone", "--quiet", "--shared", "--no-checkout", str(REPOSITORY), str(tree))
    _git("-C", str(tree), "checkout", "--quiet", "--detach", commit)
    for name, (before, after) in changes.items():
        text = (tree / name).read_text()
        assert before in text
        (tree / name).write_text(text.replace(before, after, 1) if before else text + after)
    if (REPOSITORY / PAGE).is_dir():
        # The page of the tree under test in each release: no test here looks at it.
        shutil.copytree(REPOSITORY / PAGE, tree / PAGE)
        # It is older than the sources that were checked out, and is not to be built again.
        (tree / PAGE / "index.html").touch()
    options = {"key": _private_key(), "into": work / "dist", "cache": CACHE.parent / "wheels"}
    subprocess.run(
        [
            *(sys.executable, "-m", "scripts.release.build"),
            *(f"--{name}={value}" for name, value in options.items()),
        ],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "src")},
        check=True,
    )
    (work / "dist").replace(directory)
    shutil.rmtree(work)


def _private_key() -> Path:
    path = CACHE / "key.pem"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        key = Ed25519PrivateKey.generate()
        path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path


def _remove_old() -> None:
    for each in CACHE.glob("*-py3.*"):
        if time.time() - each.stat().st_mtime > MAX_AGE:
            shutil.rmtree(each)


@contextlib.contextmanager
def _lock() -> Iterator[None]:
    """One build at a time, in all processes that run tests here."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"the repository is not at hand: {done.stderr.strip()}")
    return done.stdout


def _version_of(text: str) -> str:
    found = _VERSION.search(text)
    assert found is not None
    return found[1]


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", version))

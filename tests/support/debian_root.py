"""A clean Debian, as `mmdebstrap` installs it: the smallest system, and what is named."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from tests.support.paths import REPOSITORY

CACHE = REPOSITORY / "build"
_APT = Path("/etc/apt")
_DEADLINE = 900.0

needs_mmdebstrap = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("mmdebstrap") is None, reason="needs root and mmdebstrap"
)


def unpack_debian(packages: tuple[str, ...], into: Path) -> None:
    """Unpack a root directory with these packages. Delete build/debian-*.tar to get newer ones."""
    digest = hashlib.sha256(" ".join(packages).encode()).hexdigest()[:8]
    archive = CACHE / f"debian-{_codename()}-{platform.machine()}-{digest}.tar"
    if not archive.exists():
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as work:
            _build(packages, Path(work)).replace(archive)
    subprocess.run(["tar", "-x", "-p", "-f", archive, "-C", into], check=True, timeout=_DEADLINE)


def _codename() -> str:
    return platform.freedesktop_os_release()["VERSION_CODENAME"]


def _build(packages: tuple[str, ...], work: Path) -> Path:
    """Install from where this computer does: its sources, and how it reaches them."""
    settings = work / "apt.conf"
    command = ["apt-config", "dump", "Acquire"]
    settings.write_bytes(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    lists = (_APT / "sources.list", *sorted((_APT / "sources.list.d").iterdir()))
    sources = [each for each in lists if each.suffix in (".list", ".sources") and each.is_file()]
    # The result does not depend on where it came from.
    forget = 'rm -r "$1/etc/apt/apt.conf.d/99mmdebstrap" "$1/etc/apt/"sources.list*'
    subprocess.run(
        [
            *("mmdebstrap", "--quiet", "--variant=minbase", "--mode=root"),
            *(f"--include={','.join(packages)}", f"--aptopt={settings}"),
            *(
                f"--customize-hook={forget}",
                _codename(),
                str(work / "root.tar"),
                *map(str, sources),
            ),
        ],
        env={**os.environ, "TMPDIR": str(work)},
        check=True,
        timeout=_DEADLINE,
    )
    return work / "root.tar"

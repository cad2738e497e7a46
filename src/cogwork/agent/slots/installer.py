"""Installs a release into a slot: a virtual environment, built offline from its wheels.

A version appears in its slot only when it is complete and synced to disk.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cogwork.agent.errors import BadRelease, InstallFailed
from cogwork.agent.release.archive import read_manifest, unpack
from cogwork.agent.release.manifest import ReleaseManifest
from cogwork.agent.release.signature import TrustedKeys
from cogwork.agent.slots.disk import require_space
from cogwork.agent.slots.interpreter import find_python
from cogwork.agent.slots.layout import UNFINISHED, Layout, sync_directory
from cogwork.agent.slots.minimum_store import Minimum, MinimumStore
from cogwork.core.files import atomic
from cogwork.core.versions.platform_name import PLATFORM
from cogwork.core.versions.product import Product
from cogwork.core.versions.version_order import is_older

REQUIREMENTS: Final = "requirements.txt"

_STEP_TIMEOUT: Final = 900.0
"""Timeout of one step in seconds, long enough for a slow board."""
_MAX_OUTPUT: Final = 400
_PIP: Final = re.compile(r"wheels/pip-[0-9.]+-py3-none-any\.whl")
_ENVIRONMENT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")

Progress = Callable[[str], None]


class Installer:
    def __init__(self, layout: Layout, keys: TrustedKeys) -> None:
        self._layout = layout
        self._keys = keys
        self._minimums = MinimumStore(layout.minimums)

    def check(self, archive: Path) -> ReleaseManifest:
        """Return the manifest of a release if it may be installed here.

        Raise BadRelease or BadState.
        """
        manifest = read_manifest(archive, self._keys)
        if manifest.platform != PLATFORM:
            raise BadRelease(f"the release is for {manifest.platform}, not for {PLATFORM}")
        find_python(manifest.python)
        minimum = self._minimums.find(manifest.product)
        if minimum is not None and is_older(manifest.version, minimum.version):
            raise BadRelease(
                f"{manifest.product} {manifest.version} is not installed: {minimum.explain()}"
            )
        return manifest

    def install(self, archive: Path, progress: Progress) -> ReleaseManifest:
        """Install a release, if it is not installed yet, and return its manifest.

        Raise BadRelease, BadState, DiskFull, InstallFailed or OSError.
        """
        manifest = self.check(archive)
        if manifest.minimum_version is not None:
            # Save the minimum before the installation: it applies even if this version does not
            # work.
            minimum = Minimum(manifest.minimum_version, manifest.version)
            self._minimums.raise_to(manifest.product, minimum)
        layout = self._layout
        slot = layout.slot(manifest.product, manifest.version)
        if slot.is_dir():
            return manifest
        atomic.make_directory(layout.versions)
        require_space(layout.versions, archive.stat().st_size + manifest.installed_size)
        work = layout.versions / f"{UNFINISHED}{slot.name}"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(0o755)
        work.chmod(0o755)  # restore the permissions that the umask has cleared
        try:
            self._build(archive, work, slot, progress)
            # Sync all files before the rename that marks the version as complete.
            os.sync()
            work.replace(slot)
            sync_directory(layout.versions)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        return manifest

    def _build(self, archive: Path, work: Path, slot: Path, progress: Progress) -> None:
        progress("unpacking")
        release = work / "release"
        release.mkdir(0o700)
        manifest = unpack(archive, self._keys, release)
        pip = next((name for name in manifest.files if _PIP.fullmatch(name)), None)
        if pip is None or REQUIREMENTS not in manifest.files:
            raise BadRelease(f"the release has no pip or no {REQUIREMENTS}")
        progress("creating the environment")
        base = str(find_python(manifest.python))
        _run([base, "-I", "-m", "venv", "--without-pip", str(work)], work)
        python = str(work / "bin" / "python")
        progress("installing")
        options = "--no-index --no-deps --no-compile --no-cache-dir --disable-pip-version-check"
        wheels = ["--find-links", str(release / "wheels")]
        hashed = ["--require-hashes", "--requirement", str(release / REQUIREMENTS)]
        pip_program = str(release / pip / "pip")
        _run(
            [python, "-I", pip_program, "install", "--quiet", *options.split(), *wheels, *hashed],
            work,
        )
        shutil.rmtree(release)
        progress("compiling")
        # Compile with the final path: compiled files contain the path of their source, which
        # tracebacks show.
        final = ["-s", str(work), "-p", str(slot)]
        _run([python, "-I", "-m", "compileall", "-q", *final, str(work / "lib")], work)
        progress("trying it")
        _check_version(python, manifest, work)


def _check_version(python: str, manifest: ReleaseManifest, directory: Path) -> None:
    option = "-version" if manifest.product is Product.SERVER else "--version"
    output = _run([python, "-I", "-m", manifest.product.module, option], directory)
    if manifest.version not in output.split():
        raise InstallFailed(
            f"the installed version reports {output.strip()[:_MAX_OUTPUT]!r}, "
            f"not {manifest.version}"
        )


def _run(command: list[str], directory: Path) -> str:
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    try:
        done = subprocess.run(  # noqa: S603 - programs of the interpreter and of a signed release
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_STEP_TIMEOUT,
            # Make the files readable for the server, which runs as another user.
            umask=0o022,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InstallFailed(
            f"{Path(command[0]).name} took longer than {_STEP_TIMEOUT:g} s"
        ) from None
    output = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        raise InstallFailed(
            f"{' '.join(command[2:5])} failed with exit code {done.returncode}: "
            f"{output.strip()[-_MAX_OUTPUT:]}"
        )
    return output

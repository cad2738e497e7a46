"""Runs `cogwork-server -aix-install` and `-aix-uninstall`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from cogwork.core.errors import CogworkError
from cogwork.server.install.errors import CannotInstallService
from cogwork.server.install.service_installer import ServiceInstaller
from cogwork.server.install.service_paths import CONFIG, ServicePaths
from cogwork.systemd.systemctl import Systemctl

GUIDE = "https://OWNER.github.io/cogwork/guides/install-on-a-machine.html"


def install(packed: Path | None) -> int:
    """Install the one-file executable `packed`, and return the exit code.

    `packed` is None if this server is not a one-file executable.
    """
    try:
        source = _require_packed(packed)
        _require_root(source, "--aix-install")
        _make_installer().install(source)
    except CogworkError as error:
        return _fail(error)
    return 0


def uninstall(packed: Path | None) -> int:
    try:
        _require_root(_require_packed(packed), "--aix-uninstall")
        _make_installer().uninstall()
    except CogworkError as error:
        return _fail(error)
    return 0


def _make_installer() -> ServiceInstaller:
    return ServiceInstaller(ServicePaths(), Systemctl(), lambda line: print(line, flush=True))


def _require_packed(packed: Path | None) -> Path:
    if packed is not None:
        return packed.resolve()
    if getattr(sys, "frozen", False):
        raise CannotInstallService(
            "this server was installed by a package, which includes the service; to start it, run: "
            "sudo systemctl enable --now cogwork-server"
        )
    program = Path(sys.executable).with_name("cogwork-server")
    raise CannotInstallService(
        "only the one-file executable installs itself, and this server is part of a Python "
        f"environment. Download the executable from the releases, or run `{program} -config "
        f"{CONFIG}` as a service of your own: {GUIDE}#python-package"
    )


def _require_root(packed: Path, option: str) -> None:
    if os.geteuid() != 0:
        has_sudo = shutil.which("sudo") is not None
        command = format_root_command([str(packed), option], has_sudo=has_sudo)
        raise CannotInstallService(f"{option} needs the rights of root; run: {command}")


def format_root_command(words: Sequence[str], *, has_sudo: bool) -> str:
    """Return the command line that runs these words as root in a shell."""
    if has_sudo:
        return shlex.join(["sudo", *words])
    return shlex.join(["su", "-c", shlex.join(words)])


def _fail(error: CogworkError) -> int:
    print(f"cogwork-server: {error}", file=sys.stderr)
    return 1

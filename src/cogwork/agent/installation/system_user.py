"""The system user that runs the server."""

from __future__ import annotations

import grp
import pwd
import subprocess
from pathlib import Path
from typing import Final

from cogwork.agent.errors import CannotInstallAgent

_DEVICE_GROUPS: Final = ("audio", "dialout", "gpio", "i2c", "input", "plugdev", "spi", "video")
_COMMAND_TIMEOUT: Final = 60.0


def has_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def create_user(name: str, home: Path) -> list[str]:
    """Create the user. Return its groups, which give access to cameras, GPIO and serial ports."""
    groups = [each for each in _DEVICE_GROUPS if _has_group(each)]
    identity = ("--system", "--user-group", "--shell", "/usr/sbin/nologin")
    directory = ("--home-dir", str(home), "--no-create-home")
    _run("useradd", *identity, *directory, "--groups", ",".join(groups), name)
    return groups


def delete_users(home: Path) -> list[str]:
    """Delete the users that `create_user` has created with this home directory, and return them."""
    found = [each.pw_name for each in pwd.getpwall() if each.pw_dir == str(home)]
    for name in found:
        _run("userdel", name)
    return found


def _has_group(name: str) -> bool:
    try:
        grp.getgrnam(name)
    except KeyError:
        return False
    return True


def _run(*command: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - fixed words and a checked name
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_COMMAND_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotInstallAgent(f"cannot run {command[0]}: {error}") from None
    if done.returncode != 0:
        raise CannotInstallAgent(f"{command[0]} failed: {done.stderr.strip()}")

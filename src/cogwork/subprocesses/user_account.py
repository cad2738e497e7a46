"""The user account that a program runs as."""

from __future__ import annotations

import os
import pwd
import shutil
from dataclasses import dataclass

from cogwork.subprocesses.executable_check import CannotStart, Misconfigured

_ROOT = 0


@dataclass(frozen=True, slots=True)
class UserAccount:
    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    """All groups of the user, including the primary group."""
    home: str

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that describe the user."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}

    @property
    def is_ours(self) -> bool:
        """Whether the server itself runs as this user."""
        return self.uid == os.geteuid()


def find_account(name: str) -> UserAccount:
    """Return the account of a user of this computer. Raise CannotStart if programs cannot run as
    this user.

    The lookup may ask a directory service and block, so call this in a thread.
    """
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise CannotStart(
            f'the user "{name}" does not exist on this computer; create it, or correct "username"'
        ) from None
    account = UserAccount(
        name,
        entry.pw_uid,
        entry.pw_gid,
        tuple(os.getgrouplist(name, entry.pw_gid)),
        entry.pw_dir,
    )
    if not account.is_ours and os.geteuid() != _ROOT:
        raise Misconfigured(
            f'only root can run a program as user "{name}", but the server runs as {_own_name()}; '
            'run the server as root, or remove "username"'
        )
    return account


def switch_user_command(account: UserAccount) -> tuple[str, ...]:
    """Return the command prefix that runs a program as this user. Raise CannotStart.

    A prefix is used because the process must join its control group as the user of the server.
    """
    program = shutil.which("setpriv")
    if program is None:
        raise CannotStart(
            f'cannot run a program as user "{account.name}": the program "setpriv" is missing; '
            "install util-linux"
        )
    groups = ",".join(map(str, account.groups))
    user, group = f"--reuid={account.uid}", f"--regid={account.gid}"
    return (program, user, group, f"--groups={groups}", "--")


def _own_name() -> str:
    try:
        return f'"{pwd.getpwuid(os.geteuid()).pw_name}"'
    except KeyError:
        return f"user {os.geteuid()}"

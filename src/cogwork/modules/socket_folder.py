"""The folder with the sockets of a module, which only the module and the server can access."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cogwork.serving.socket_directory import further_directory
from cogwork.subprocesses.user_account import UserAccount

_USER_HINT = (
    "; only the user of the server can enter the folder of its socket: if its program changes the "
    'user, remove that, and set "username" of the module instead'
)


@dataclass(frozen=True, slots=True)
class SocketFolder:
    path: Path
    account: UserAccount | None = None
    """The user of the module; None for the user of the server."""

    def hand_over(self, socket: str) -> None:
        """Make the user of the module the owner of the folder and the socket in it.

        Afterwards, that user may replace the files in the folder, so root must not change them any
        more.
        """
        if self.account is not None:
            for each in (socket, self.path):
                os.chown(each, self.account.uid, self.account.gid)

    def hint_for(self, last_lines: Sequence[str]) -> str:
        """Return advice if a module reports that it has no access to its socket; empty
        otherwise."""
        is_denied = any("denied" in each.lower() and str(self.path) in each for each in last_lines)
        return _USER_HINT if is_denied else ""


@contextlib.contextmanager
def open_socket_folder(shared: Path, account: UserAccount | None) -> Iterator[SocketFolder]:
    """Yield the folder: the shared folder, or a separate one if another user runs the module."""
    if account is None:
        yield SocketFolder(shared)
        return
    with further_directory() as path:
        yield SocketFolder(path, account)

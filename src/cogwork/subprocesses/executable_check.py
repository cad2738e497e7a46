"""Checks whether a program can be started. If not, explains why and what to do."""

from __future__ import annotations

import errno
import os
import platform
import stat
from pathlib import Path

from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import os_reason

_HEAD_SIZE = 256
_ELF = b"\x7fELF"
_MACHINES = {3: "x86", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
_ADVICE = {
    errno.ETXTBSY: "it is being written; wait until it is complete",
    errno.EAGAIN: "the user has too many processes; end some, or raise LimitNPROC",
    errno.ENOMEM: "there is not enough memory; end other programs",
    errno.EMFILE: "the server has too many files open; raise LimitNOFILE of the server",
    errno.E2BIG: "its arguments and its environment are too long; make them shorter",
    errno.EACCES: "the server's user may not run it, or its file system is mounted noexec",
}


class CannotStart(CogworkError):
    """A program cannot be started."""

    status = "FAILED_PRECONDITION"


class Misconfigured(CannotStart):
    """A program cannot be started until the configuration is changed."""


def check_executable(executable: str, directory: Path) -> None:
    """Raise CannotStart, with advice, if the program cannot be started.

    This reads files and may block, so call it in a thread.
    """
    path = Path(executable)
    if not path.is_absolute():
        raise CannotStart(f'"{executable}" cannot be started: use its absolute path')
    _check_directory(directory)
    _check_file(path)
    line = _read_head(path).split(b"\n", 1)[0]
    if line.startswith(b"#!"):
        _check_interpreter(path, line)


def explain_start_error(executable: str, error: OSError | ValueError) -> CannotStart:
    """Convert an error of the operating system to CannotStart, with advice."""
    if not isinstance(error, OSError):
        return CannotStart(
            f"{executable} cannot be started: {error}; fix its command and environment"
        )
    if error.errno == errno.ENOEXEC:
        return _explain_wrong_format(Path(executable))
    if error.errno == errno.ENOENT:
        return CannotStart(
            f"{executable} cannot be started: its loader is missing, as for a program that was "
            "built for another system; use a build for this one"
        )
    advice = _ADVICE.get(error.errno or 0)
    because = f"{os_reason(error)}: {advice}" if advice else f"{os_reason(error)}"
    return CannotStart(f"{executable} cannot be started: {because}")


def _check_directory(directory: Path) -> None:
    if not directory.is_dir():
        raise CannotStart(f"the working directory {directory} does not exist; create it")
    if not os.access(directory, os.X_OK):
        raise CannotStart(
            f"the server's user is not allowed to enter {directory}; allow it with chmod +x"
        )


def _check_file(path: Path) -> None:
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise CannotStart(
            f"{path} does not exist; correct the path, or install the program"
        ) from None
    except OSError as error:
        raise CannotStart(f"{path} cannot be read: {os_reason(error)}") from error
    except ValueError as error:
        raise explain_start_error(str(path), error) from error
    if not stat.S_ISREG(found.st_mode):
        raise CannotStart(f"{path} is not a file; set the path of a program")
    if not found.st_mode & 0o111:
        raise CannotStart(f"{path} is not executable; run: chmod +x {path}")
    if not os.access(path, os.X_OK):
        raise CannotStart(
            f"the server's user is not allowed to execute {path}; run: chmod a+x {path}"
        )


def _read_head(path: Path) -> bytes:
    """Return the first bytes; empty if the file cannot be read, which does not prevent its
    execution."""
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_SIZE)
    except OSError:
        return b""


def _check_interpreter(path: Path, line: bytes) -> None:
    interpreter = line[2:].decode(errors="replace").strip(" \t").split(" ")[0]
    if os.access(interpreter, os.X_OK):
        return
    if interpreter.endswith("\r"):
        raise CannotStart(
            f"{path} has Windows line endings, so its #! line names a missing interpreter; "
            f"run: sed -i 's/\\r$//' {path}"
        )
    what = "not executable" if Path(interpreter).exists() else "missing"
    raise CannotStart(
        f"the #! line of {path} names {interpreter}, which is {what}; "
        "install it, or correct the line"
    )


def _explain_wrong_format(path: Path) -> CannotStart:
    head, here = _read_head(path), platform.machine()
    if not head.startswith(_ELF):
        return CannotStart(
            f"{path} is not a program; if it is a script, start it with a line such as "
            "#!/usr/bin/env python3"
        )
    number = int.from_bytes(head[18:20], "little" if head[5:6] == b"\x01" else "big")
    built_for = _MACHINES.get(number, "another kind of computer")
    return CannotStart(
        f"{path} is built for {built_for}, but this computer is {here}; use a build for {here}"
    )

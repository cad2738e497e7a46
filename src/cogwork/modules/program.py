"""Whether a program can be started, and if not, why, with what to do about it."""

from __future__ import annotations

import errno
import os
import platform
import stat
from pathlib import Path

from cogwork.core.errors import CogworkError

_HEAD = 256
_ELF = b"\x7fELF"
_MACHINES = {3: "x86", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
_ADVICE = {
    errno.ETXTBSY: "somebody is writing to it; wait until it is complete",
    errno.EAGAIN: "this user has too many processes; end some, or raise LimitNPROC",
    errno.ENOMEM: "there is not enough memory; end something else",
    errno.EMFILE: "the server has too many files open; raise LimitNOFILE of the server",
    errno.E2BIG: "its arguments and its environment are too long; make them shorter",
    errno.EACCES: "the server's user may not run it, or its file system is mounted noexec",
}


class CannotStart(CogworkError):
    """A program that does not even begin to run."""

    status = "FAILED_PRECONDITION"


def look(executable: str, directory: Path) -> None:
    """Raises CannotStart with advice. Reads files: a disk that hangs must not hang the server."""
    path = Path(executable)
    if not path.is_absolute():
        raise CannotStart(f'"{executable}" cannot be started: write its whole path, from / on')
    _look_at_directory(directory)
    _look_at_file(path)
    line = _head(path).split(b"\n", 1)[0]
    if line.startswith(b"#!"):
        _look_at_interpreter(path, line)


def refused(executable: str, error: OSError | ValueError) -> CannotStart:
    """What the operating system says of a program that looked fine, with advice."""
    if not isinstance(error, OSError):
        return CannotStart(f"{executable} cannot be started: {error}; correct its environment")
    if error.errno == errno.ENOEXEC:
        return _wrong_format(Path(executable))
    if error.errno == errno.ENOENT:
        return CannotStart(
            f"{executable} cannot be started: what it is loaded by is not here, as with a program "
            "that was built for another system; use a build for this one"
        )
    advice = _ADVICE.get(error.errno or 0)
    because = f"{error.strerror}: {advice}" if advice else f"{error.strerror}"
    return CannotStart(f"{executable} cannot be started: {because}")


def _look_at_directory(directory: Path) -> None:
    if not directory.is_dir():
        raise CannotStart(f"the directory to run in, {directory}, is not there; make it")
    if not os.access(directory, os.X_OK):
        raise CannotStart(f"the server's user may not enter {directory}; allow it with chmod +x")


def _look_at_file(path: Path) -> None:
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise CannotStart(f"{path} is not there; correct the path, or put it there") from None
    except OSError as error:
        raise CannotStart(f"{path} cannot be looked at: {error.strerror}") from error
    if not stat.S_ISREG(found.st_mode):
        raise CannotStart(f"{path} is no file; give the path of a program")
    if not found.st_mode & 0o111:
        raise CannotStart(f"{path} is not executable; run: chmod +x {path}")
    if not os.access(path, os.X_OK):
        raise CannotStart(f"the server's user may not execute {path}; run: chmod a+x {path}")


def _head(path: Path) -> bytes:
    """Empty when it cannot be read: one may be allowed to run what one may not read."""
    try:
        with path.open("rb") as file:
            return file.read(_HEAD)
    except OSError:
        return b""


def _look_at_interpreter(path: Path, line: bytes) -> None:
    interpreter = line[2:].decode(errors="replace").strip(" \t").split(" ")[0]
    if os.access(interpreter, os.X_OK):
        return
    if interpreter.endswith("\r"):
        raise CannotStart(
            f"{path} has lines that end as on Windows, so its #! line names what is not there; "
            f"run: sed -i 's/\\r$//' {path}"
        )
    what = "not executable" if Path(interpreter).exists() else "not there"
    raise CannotStart(
        f"{path} asks for {interpreter} in its #! line, which is {what}; "
        "install it, or correct the line"
    )


def _wrong_format(path: Path) -> CannotStart:
    head, here = _head(path), platform.machine()
    if not head.startswith(_ELF):
        return CannotStart(
            f"{path} is no program; if it is a script, begin it with a line such as "
            "#!/usr/bin/env python3"
        )
    number = int.from_bytes(head[18:20], "little" if head[5:6] == b"\x01" else "big")
    built_for = _MACHINES.get(number, "another kind of computer")
    return CannotStart(
        f"{path} is built for {built_for}, and this computer is {here}; use a build for {here}"
    )

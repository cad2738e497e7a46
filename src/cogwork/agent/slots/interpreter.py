"""The Python interpreter for the virtual environment of a release."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from cogwork.agent.errors import BadRelease

PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
IS_PACKED: Final = bool(getattr(sys, "frozen", False))
"""Whether this program is a one-file executable, whose Python cannot create environments."""
DIRECTORIES: Final = "/usr/bin:/usr/local/bin"
"""The directories to search. PATH may name a Python that the user of the shell removes later."""
_PRINT_VERSION: Final = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
_TIMEOUT: Final = 60.0


def find_python(
    version: str, *, is_packed: bool = IS_PACKED, directories: str = DIRECTORIES
) -> Path:
    """Return an interpreter of a version, such as "3.11". Raise BadRelease if none is installed."""
    if not is_packed and version == PYTHON:
        return Path(sys.executable)
    others = set()
    for name in (f"python{version}", "python3"):
        program = shutil.which(name, path=directories)
        found = None if program is None else _read_version(program)
        if program is not None and found == version:
            return Path(program)
        if found is not None:
            others.add(found)
    raise BadRelease(
        f"the release is for Python {version}, but {_advise(version, sorted(others), directories)}"
    )


def _advise(version: str, others: list[str], directories: str) -> str:
    if not others:
        places = " or ".join(directories.split(":"))
        return f"there is no Python in {places}; install it with: sudo apt install python3"
    found = " and ".join(others)
    return (
        f"this computer has {found}; use a release for Python {found}, or install python{version}"
    )


def _read_version(program: str) -> str | None:
    """Return the version of a Python, if it can create virtual environments."""
    try:
        done = subprocess.run(  # noqa: S603 - a Python of the system
            [program, "-I", "-c", _PRINT_VERSION],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None

"""What to do if the server has no configuration file to run."""

from __future__ import annotations

import shlex
from pathlib import Path

VIAM_CONFIG = Path("/etc/viam.json")
"""Where viam-server has its configuration."""


def is_missing(file: Path) -> bool:
    """Whether the file does not exist; False if it exists but cannot be read."""
    try:
        file.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def describe_missing_file(file: Path, viam_config: Path) -> str:
    if not is_missing(viam_config):
        command = _migration_command(viam_config, file)
        return f"{file} does not exist; to make it from {viam_config}, run: {command}"
    return f"{file} does not exist; check the path given with -config, or create the file"


def suggest_config(viam_config: Path) -> str:
    """Return a sentence for a user who names no configuration; empty if there is none to use."""
    if is_missing(viam_config):
        return ""
    command = _migration_command(viam_config, Path("machine.json"))
    return f"to make a configuration from {viam_config}, run: {command}"


def _migration_command(viam_config: Path, file: Path) -> str:
    return shlex.join(("cogwork", "config", "migrate", str(viam_config), "-o", str(file)))

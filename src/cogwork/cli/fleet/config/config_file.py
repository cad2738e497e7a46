"""A configuration that the user gives as a file or on standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from cogwork.cli.client.grpc_client import CommandError
from cogwork.config.text.file import MAX_FILE_SIZE, Unreadable, decode_text, read_text


def read_config_file(file: str) -> str:
    """Return the text of a file, or of standard input for `-`. Raise CommandError."""
    try:
        if file == "-":
            return decode_text(sys.stdin.buffer.read(MAX_FILE_SIZE + 1))
        return read_text(Path(file))
    except Unreadable as error:
        name = "standard input" if file == "-" else file
        raise CommandError(f"{name}: {error}") from None

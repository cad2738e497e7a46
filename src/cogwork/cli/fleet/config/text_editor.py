"""The user's text editor."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.fleet.config.config_file import read_config_file
from cogwork.core.os_error_text import os_reason

_FALLBACKS = ("nano", "vi")


class TextEditor:
    """Edits one text, in a file that no other user can read."""

    def __init__(self, name: str, text: str) -> None:
        """Find the user's editor. Raise CommandError if there is none."""
        self._command = _find_editor()
        directory = Path(tempfile.mkdtemp(prefix="cogwork-"))
        self.file = directory / f"{name}.json"
        self.file.write_bytes(text.encode())

    def edit(self) -> str:
        """Open the editor, wait for its end and return the text. Raise CommandError."""
        try:
            code = subprocess.call([*self._command, str(self.file)])  # noqa: S603 - the user's own
        except OSError as error:
            raise CommandError(
                f"cannot start {self._command[0]}: {os_reason(error)}; set EDITOR to your editor"
            ) from None
        if code != 0:
            raise CommandError(
                f"{self._command[0]} ended with code {code}; nothing was saved, your text is in "
                f"{self.file}"
            )
        return read_config_file(str(self.file))

    def discard(self) -> None:
        """Delete the file."""
        shutil.rmtree(self.file.parent, ignore_errors=True)


def _find_editor() -> list[str]:
    for name in ("VISUAL", "EDITOR"):
        if words := shlex.split(os.environ.get(name, "")):
            return words
    for program in _FALLBACKS:
        if shutil.which(program) is not None:
            return [program]
    raise CommandError("there is no editor; set EDITOR, or give the text with --file")

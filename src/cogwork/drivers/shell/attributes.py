"""What the shell services read from their configuration."""

from __future__ import annotations

from cogwork.config.fields import Attributes


class BuiltinShellAttributes(Attributes):
    shell: str = ""
    """The program that people talk to, such as `/bin/bash`. Empty is the one of the server's user,
    or `/bin/sh`."""
    directory: str = ""
    """Where it starts, and what paths of copied files are relative to. Empty is the home directory
    of the server's user."""

"""Attributes of the shell service models."""

from __future__ import annotations

from cogwork.config.schema.fields import Attributes


class BuiltinShellAttributes(Attributes):
    shell: str = ""
    """Program to run as the shell, such as `/bin/bash`. If empty, the login shell of the server's
    user, or `/bin/sh`."""
    directory: str = ""
    """Directory that the shell starts in and that relative paths of copied files refer to. If
    empty, the home directory of the server's user."""

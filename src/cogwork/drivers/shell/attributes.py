"""Attributes of the shell service models."""

from __future__ import annotations

from cogwork.config.schema.fields import Attributes


class BuiltinShellAttributes(Attributes):
    """A shell on this computer and file copies, with the permissions of the server's user."""

    shell: str = ""
    """Program to run as the shell, such as `/bin/bash`. Defaults to the login shell of the server's
    user, or to `/bin/sh`."""
    directory: str = ""
    """Directory in which the shell starts, and to which relative paths of copied files refer.
    Defaults to the home directory of the server's user."""

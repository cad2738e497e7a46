"""Errors of the installation."""

from __future__ import annotations

from cogwork.core.errors import CogworkError


class CannotInstallService(CogworkError):
    """The server cannot be installed or removed."""

    status = "FAILED_PRECONDITION"

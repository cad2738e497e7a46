"""The errors of packages."""

from __future__ import annotations

from cogwork.core.errors import CogworkError


class PackageUnavailable(CogworkError):
    """A package cannot be had now, but perhaps later."""

    status = "UNAVAILABLE"


class BadPackage(CogworkError):
    """What arrived is not the package, so that another attempt soon would not help."""

    status = "FAILED_PRECONDITION"

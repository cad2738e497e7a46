"""Errors of packages."""

from __future__ import annotations

from cogwork.core.errors import CogworkError


class PackageUnavailable(CogworkError):
    """A package is unavailable now. A retry may succeed."""

    status = "UNAVAILABLE"


class BadPackage(CogworkError):
    """The archive is not the expected package, so a retry will not help soon."""

    status = "FAILED_PRECONDITION"

"""Errors of the connection to a cloud."""

from __future__ import annotations

from cogwork.core.errors import CogworkError


class CloudUnavailable(CogworkError):
    """The cloud does not answer, or refuses."""

    status = "UNAVAILABLE"


class MethodMissing(CloudUnavailable):
    """The cloud does not have this method."""

    status = "UNIMPLEMENTED"

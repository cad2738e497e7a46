"""Errors of the connection to a cloud."""

from __future__ import annotations

from cogwork.core.errors import CogworkError


class CloudUnavailable(CogworkError):
    """The cloud does not answer, or refuses the call."""

    status = "UNAVAILABLE"


class RetryLater(CloudUnavailable):
    """The cloud refuses the call because of a quota, and says when to try again."""

    status = "RESOURCE_EXHAUSTED"

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds until the next attempt."""


class MethodMissing(CloudUnavailable):
    """The cloud does not have this method."""

    status = "UNIMPLEMENTED"


class CredentialsRefused(CloudUnavailable):
    """The secret of this machine was replaced, or the machine was deleted from the cloud."""

    status = "UNAUTHENTICATED"

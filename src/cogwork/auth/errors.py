"""Errors of authentication. Clients of the public API match on some of these texts."""

from __future__ import annotations

from cogwork.core.errors import CogworkError, InvalidRequest


class Unauthenticated(CogworkError):
    """The caller has not proved who it is."""

    status = "UNAUTHENTICATED"


class NotListed(Unauthenticated):
    """The cloud vouches for the caller, but the access list of this machine does not have it.

    The list may be older than the caller's access.
    """


class RoleTooLow(CogworkError):
    """The caller's role does not allow the call."""

    status = "PERMISSION_DENIED"


class TooManyAttempts(CogworkError):
    """Logins fail too often. Correct ones are accepted all the same, unless the secret is short."""

    status = "RESOURCE_EXHAUSTED"


class InvalidLogin(InvalidRequest):
    """The request to log in is incomplete or misplaced."""

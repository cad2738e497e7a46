"""Errors of authentication. Clients of the public API match on some of these texts."""

from __future__ import annotations

from cogwork.core.errors import CogworkError, InvalidRequest


class Unauthenticated(CogworkError):
    """The caller has not proved its identity."""

    status = "UNAUTHENTICATED"


class NotListed(Unauthenticated):
    """The cloud has authenticated the caller, but the caller is not on this machine's access list.

    The list may be outdated: the caller may have got access since.
    """


class RoleTooLow(CogworkError):
    """The caller's role does not allow the call."""

    status = "PERMISSION_DENIED"


class TooManyAttempts(CogworkError):
    """Too many logins have failed. Correct secrets are still accepted, unless they are short."""

    status = "RESOURCE_EXHAUSTED"


class InvalidLogin(InvalidRequest):
    """The login request is incomplete, or not allowed here."""

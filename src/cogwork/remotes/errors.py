"""What can go wrong with another machine."""

from __future__ import annotations

from cogwork.core.errors import CogworkError


class RemoteUnavailable(CogworkError):
    """Another machine cannot be used now."""

    status = "UNAVAILABLE"

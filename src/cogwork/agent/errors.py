"""Why the agent does not do something."""

from __future__ import annotations

from cogwork.core.errors import CogworkError


class BadRelease(CogworkError):
    """A release cannot be trusted, or does not suit this computer."""


class DiskFull(CogworkError):
    """There is not enough free space for a version."""


class InstallFailed(CogworkError):
    """A release could not be installed."""


class BadState(CogworkError):
    """The agent's record of versions cannot be read."""


class ServerSilent(CogworkError):
    """The server does not answer."""


class SwitchFailed(CogworkError):
    """A new version did not prove itself, and the former one runs again."""


class SourceUnavailable(CogworkError):
    """Where updates come from cannot be reached, or does not answer as it should."""

    status = "UNAVAILABLE"


class BadSettings(CogworkError):
    """The settings of the agent cannot be used."""


class AgentRunning(CogworkError):
    """Another agent runs already."""


class CannotInstallAgent(CogworkError):
    """The agent cannot be installed or removed."""

    status = "FAILED_PRECONDITION"


class CannotJoin(CogworkError):
    """The machine cannot join a cloud."""

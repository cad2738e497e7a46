"""Errors of the agent."""

from __future__ import annotations

from cogwork.core.errors import CogworkError


class BadRelease(CogworkError):
    """A release cannot be trusted, or is not for this computer."""


class DiskFull(CogworkError):
    """The disk does not have enough free space for a version."""


class InstallFailed(CogworkError):
    """A release could not be installed."""


class BadState(CogworkError):
    """The stored state of the versions cannot be read."""


class ServerSilent(CogworkError):
    """The server does not answer."""


class SwitchFailed(CogworkError):
    """A new version failed its trial, and the former one runs again."""


class SourceUnavailable(CogworkError):
    """The source of updates cannot be reached, or its response is not valid."""

    status = "UNAVAILABLE"


class BadSettings(CogworkError):
    """The settings of the agent cannot be used."""


class AgentRunning(CogworkError):
    """Another agent already runs."""


class CannotInstallAgent(CogworkError):
    """The agent cannot be installed or removed."""

    status = "FAILED_PRECONDITION"


class CannotJoin(CogworkError):
    """The machine cannot join a cloud."""

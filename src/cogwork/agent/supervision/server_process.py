"""The interface between the agent and the process of the server."""

from __future__ import annotations

from typing import Protocol


class ServerProcess(Protocol):
    """The process of the server. It keeps running when the agent ends; the next agent finds it."""

    @property
    def process_id(self) -> int | None:
        """The process ID of the server; None if it is not running."""

    async def start(self) -> None:
        """Start the current version, if the server is not running. Raise OSError."""

    async def stop(self, timeout: float | None = None) -> None:
        """Stop the server. Kill it after `timeout` seconds, or after the stop timeout."""

    async def wait(self) -> str:
        """Wait until the server ends. Return a description of its end."""

"""The server's process, as the agent sees it."""

from __future__ import annotations

from typing import Protocol


class ServerProcess(Protocol):
    """Starts and stops the current version. It outlives the agent, which finds it again."""

    @property
    def process_id(self) -> int | None:
        """None if it is not running."""

    async def start(self) -> None:
        """Start the current version, unless the server is running already. Raise OSError."""

    async def stop(self, timeout: float | None = None) -> None:
        """Stop the server, by force if it does not end within so many seconds.

        Without them, it gets the time that it may need.
        """

    async def wait(self) -> str:
        """Wait until the server ends, and return how."""

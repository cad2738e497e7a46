"""Exclusive control of a moving component: the newest command preempts the one before it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from cogwork.core.clock import Clock, Waitable
from cogwork.core.errors import Interrupted

T = TypeVar("T")


class CommandLock:
    """The lock of one component. A newer command preempts the running one, which fails with
    Interrupted."""

    def __init__(self, display_name: str) -> None:
        """`display_name` names the component in errors, such as `base "b"`."""
        self._display_name = display_name
        self._lease = CommandLease(display_name, "")

    def acquire(self, command: str) -> CommandLease:
        """Revoke the current lease immediately and return a new one."""
        self._lease.revoked_by.set_result(command)
        self._lease = CommandLease(self._display_name, command)
        return self._lease


class CommandLease:
    """The right of one command to move the component, until a newer command revokes it."""

    def __init__(self, display_name: str, command: str) -> None:
        self.command = command
        self.revoked_by: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Resolves to the name of the command that revoked the lease."""
        self._display_name = display_name

    @property
    def is_revoked(self) -> bool:
        return self.revoked_by.done()

    def raise_if_revoked(self) -> None:
        if self.is_revoked:
            raise Interrupted(
                f"{self._display_name} did not finish {self.command}: "
                f"interrupted by {self.revoked_by.result()}"
            )

    async def wait(self, clock: Clock, seconds: float | None, *waitables: Waitable) -> None:
        """Wait until the timeout expires or a waitable is done. Raise Interrupted if the lease is
        revoked."""
        await clock.wait([self.revoked_by, *waitables], seconds)
        self.raise_if_revoked()

    async def run(self, awaitable: Awaitable[T]) -> T:
        """Return the result of the awaitable. If the lease is revoked, cancel the awaitable and
        raise Interrupted."""
        task = asyncio.ensure_future(awaitable)
        try:
            await asyncio.wait((task, self.revoked_by), return_when=asyncio.FIRST_COMPLETED)
            self.raise_if_revoked()
            return task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

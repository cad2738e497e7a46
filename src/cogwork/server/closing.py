"""The order in which the parts of a server are closed, and their time limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple

from cogwork.core.clock import Clock
from cogwork.server.assembly import SESSIONS_TASK, ServerParts
from cogwork.serving.shutdown import SHUTDOWN_TIMEOUT

CLOSE_BUDGET: Final = 45.0
"""Seconds to close all resources."""
_CLOSE_MARGIN: Final = 10.0
"""Seconds of the shutdown timeout that are reserved to kill processes and close the other parts."""


class ClosingStep(NamedTuple):
    name: str
    close: Callable[[float], Awaitable[Iterable[object] | None]]
    """Function that closes one part and returns the names of unfinished items. Its argument is the
    number of seconds that processes have left to end."""


def list_closing_steps(parts: ServerParts) -> Sequence[ClosingStep]:
    """Return the closing steps in order. New clients are refused first; connected clients are
    disconnected only after all resources are closed."""

    async def stop_answering(_: float) -> None:
        if parts.webrtc is not None:
            parts.webrtc.stop_answering()

    async def close_webrtc(_: float) -> None:
        if parts.webrtc is not None:
            await parts.webrtc.aclose()

    async def close_discovery(_: float) -> None:
        if parts.discovery is not None:
            await parts.discovery.aclose()

    return (
        ClosingStep("new connections", lambda _: parts.listeners.stop_accepting()),
        ClosingStep("offers of WebRTC clients", stop_answering),
        # Before anything that waits for a disk, which may hang.
        ClosingStep("motion and jobs", lambda _: parts.machine.halt()),
        # A client may disconnect while resources close, so stop the session watcher only
        # afterwards.
        ClosingStep("background tasks", lambda _: parts.tasks.cancel(keep={SESSIONS_TASK})),
        ClosingStep("configuration watcher", lambda _: parts.config_watcher.aclose()),
        ClosingStep("packages", lambda _: parts.applier.aclose()),
        ClosingStep("resources", lambda _: parts.machine.aclose(CLOSE_BUDGET)),
        ClosingStep("session watcher", lambda _: parts.tasks.cancel()),
        ClosingStep("modules", lambda _: parts.modules.aclose()),
        ClosingStep("processes", parts.processes.aclose),
        ClosingStep("programs", lambda _: parts.programs.aclose()),
        ClosingStep("remotes", lambda _: parts.remotes.aclose()),
        ClosingStep("calls of modules", lambda _: parts.parent.aclose()),
        ClosingStep("connections", lambda _: parts.listeners.aclose()),
        ClosingStep("WebRTC clients", close_webrtc),
        ClosingStep("discovery", close_discovery),
    )


async def close_all(steps: Iterable[ClosingStep], clock: Clock) -> list[object]:
    """Run the steps in order. Return the names of items that did not close in time."""
    deadline = clock.monotonic() + SHUTDOWN_TIMEOUT - _CLOSE_MARGIN
    unfinished: list[object] = []
    for step in steps:
        unfinished += await step.close(max(0.0, deadline - clock.monotonic())) or ()
    return unfinished

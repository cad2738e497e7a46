"""Throttles HTTP requests, so that a burst of requests does not block the event loop."""

from __future__ import annotations

from typing import Any

from cogwork.core.limits.loop_throttle import LoopThrottle
from cogwork.wire.transports.asgi import Application


class ThrottledApp:
    """ASGI middleware in which each request waits for the throttle."""

    def __init__(self, application: Application, throttle: LoopThrottle) -> None:
        self._application = application
        self._throttle = throttle

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._throttle.acquire()
        await self._application(scope, receive, send)

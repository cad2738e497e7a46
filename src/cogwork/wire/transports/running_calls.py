"""The calls that gRPC servers work on, including calls that their clients have cancelled."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from grpc.aio import ServicerContext

from cogwork.front.peer_name import connection_number


class RunningCalls:
    def __init__(self) -> None:
        self._calls: dict[asyncio.Task[Any], ServicerContext[Any, Any]] = {}

    def begin(self, task: asyncio.Task[Any], context: ServicerContext[Any, Any]) -> None:
        self._calls[task] = context

    def end(self, task: asyncio.Task[Any]) -> None:
        del self._calls[task]

    def count_cancelled(self) -> Counter[int]:
        """Return how many cancelled calls each relayed connection has, by the number of the
        connection."""
        numbers = (
            connection_number(context.peer())
            for task, context in self._calls.items()
            if task.cancelling()
        )
        return Counter(number for number in numbers if number is not None)

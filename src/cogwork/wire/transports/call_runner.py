"""Runs a call that one of Cogwork's own transports has received, and returns its status."""

from __future__ import annotations

import asyncio
from typing import Protocol

from grpclib.const import Status
from grpclib.metadata import Deadline

from cogwork.wire.table.handlers import Handler, Method, NoReply, Stream
from cogwork.wire.table.status import status_of


class RunnableCall(Stream, Protocol):
    @property
    def has_replied(self) -> bool: ...

    @property
    def deadline(self) -> Deadline | None: ...

    async def select_handler(self, method: Method) -> Handler:
        """Return the handler for the resource that the first message names."""


async def run_call(method: Method, call: RunnableCall) -> tuple[Status, str]:
    """Run the call and return its status.

    Every error becomes a status, even SystemExit: a driver that calls sys.exit must not end the
    server. Only the cancellation of the task itself is raised.
    """
    try:
        remaining = call.deadline.time_remaining() if call.deadline is not None else None
        async with asyncio.timeout(remaining):
            handle = await call.select_handler(method)
            await handle(call)
    except BaseException as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return status_of(error, method.path)
    if not method.cardinality.server_streaming and not call.has_replied:
        return status_of(NoReply(method.path), method.path)
    return Status.OK, ""

"""The open calls of the cloud, which end when the access of their actor ends."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from cogwork.auth.errors import Unauthenticated
from cogwork.cloud.identity.actor import Actor
from cogwork.wire.table.handlers import Handler, Method, Stream


@dataclass(eq=False, slots=True)
class _OpenCall:
    task: asyncio.Task[None] | None = field(default_factory=asyncio.current_task)
    actor_id: str = ""
    is_ended: bool = False

    def end(self) -> None:
        # Cancel only once, because `wrap` calls `uncancel` only once.
        if self.task is not None and not self.is_ended:
            self.is_ended = True
            self.task.cancel()


_current: Final[ContextVar[_OpenCall | None]] = ContextVar("open call of the cloud", default=None)


class OpenCalls:
    def __init__(self) -> None:
        self._calls: defaultdict[str, set[_OpenCall]] = defaultdict(set)
        """Open calls by the ID of the actor."""

    def wrap(self, _: Method, handle: Handler) -> Handler:
        """Wrap a handler of the handler table, as middleware."""

        async def wrapper(stream: Stream) -> None:
            call = _OpenCall()
            token = _current.set(call)
            try:
                await handle(stream)
            except asyncio.CancelledError:
                if not call.is_ended:
                    raise
                assert call.task is not None  # only a call with a task can be ended
                call.task.uncancel()
                raise Unauthenticated(
                    "unauthenticated: the access of this call was changed or removed; log in again"
                ) from None
            finally:
                _current.reset(token)
                self._remove(call)

        return wrapper

    def assign(self, actor: Actor) -> None:
        """Record the actor of the current call."""
        call = _current.get()
        if call is not None and not call.actor_id:
            call.actor_id = actor.id
            self._calls[actor.id].add(call)

    def end(self, ids: Iterable[str]) -> None:
        """End the calls of actors with these IDs, except the current call, which has removed their
        access."""
        for actor_id in ids:
            for call in tuple(self._calls.get(actor_id, ())):
                if call is not _current.get():
                    call.end()

    def end_all(self) -> None:
        """End all calls, because the key of their tokens was stolen."""
        self.end(tuple(self._calls))

    def _remove(self, call: _OpenCall) -> None:
        calls = self._calls.get(call.actor_id)
        if calls is not None:
            calls.discard(call)
            if not calls:
                del self._calls[call.actor_id]

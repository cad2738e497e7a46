"""Calls of an actor end with its access."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from tests.support.waiting import run_others

from cogwork.auth.errors import Unauthenticated
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.identity.open_calls import OpenCalls
from cogwork.wire.table.handlers import Method, Stream

METHOD, STREAM = cast("Method", None), cast("Stream", None)


class Waiting:
    """A call that lasts until it is ended."""

    def __init__(self, calls: OpenCalls, key: str) -> None:
        self.began = asyncio.Event()

        async def handle(_: Any) -> None:
            calls.assign(Actor(ActorType.API_KEY, key))
            self.began.set()
            await asyncio.Event().wait()

        async def answer() -> None:
            await calls.wrap(METHOD, handle)(STREAM)

        self.task = asyncio.create_task(answer())


async def test_only_the_calls_of_the_actor_end() -> None:
    calls = OpenCalls()
    waiting = [Waiting(calls, key) for key in ("a", "a", "b")]
    for each in waiting:
        await each.began.wait()
    calls.end(["a", "unknown"])
    for each in waiting[:2]:
        with pytest.raises(Unauthenticated, match="log in again"):
            await each.task
    assert not waiting[2].task.done()
    waiting[2].task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting[2].task
    assert not calls._calls


async def test_an_actor_that_removes_itself_gets_its_reply() -> None:
    calls, replies = OpenCalls(), []

    async def delete_own_key(_: Any) -> None:
        calls.assign(Actor(ActorType.API_KEY, "a"))
        calls.end(["a"])
        await run_others()
        replies.append("deleted")

    await asyncio.create_task(calls.wrap(METHOD, delete_own_key)(STREAM))  # type: ignore[arg-type]
    assert replies == ["deleted"]


async def test_ended_call_leaves_no_cancellation_behind() -> None:
    """Timeouts around the call would take it for one of their own, or pass it on."""
    calls, began = OpenCalls(), asyncio.Event()

    async def handle(_: Any) -> None:
        calls.assign(Actor(ActorType.API_KEY, "a"))
        began.set()
        await asyncio.Event().wait()

    async def answer() -> int:
        with pytest.raises(Unauthenticated):
            await calls.wrap(METHOD, handle)(STREAM)
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    answering = asyncio.create_task(answer())
    await began.wait()
    calls.end(["a"])
    calls.end(["a"])
    assert await answering == 0

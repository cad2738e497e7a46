from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf.message import Message
from grpclib.const import Cardinality
from hypothesis import example, given
from hypothesis import strategies as st

from cogwork.core.clock import ManualClock
from cogwork.resource import sdk
from cogwork.wire.concurrency_limit import (
    ConcurrencyLimiter,
    ConcurrencyLimits,
    SlotQueue,
    TooManyCalls,
)
from cogwork.wire.handlers import Handler, Method, Stream

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.common.v1.common_pb2 import GetReadingsRequest  # noqa: E402

CLIENTS = ("a", "b", "c", "d")
PATH = "/test.Sensor/Read"

clients = st.sampled_from(CLIENTS)
shares = st.builds(
    lambda running, waiting: ConcurrencyLimits(running, waiting, 2.0),
    st.integers(1, 12),
    st.integers(1, 5),
)
steps = st.lists(
    st.tuples(st.sampled_from(["call", "call", "call", "end", "leave"]), clients), max_size=80
)


@dataclass
class Ledger:
    """What the clients of some places know about them."""

    places: SlotQueue
    held: Counter[str] = field(default_factory=Counter)
    waiting: dict[str, deque[asyncio.Future[None]]] = field(default_factory=dict)
    turns: list[str] = field(default_factory=list)
    """Whose turn came, in order."""

    def call(self, client: str) -> None:
        if self.places.try_acquire(client):
            self.held[client] += 1
            return
        turn = self.places.enqueue(client)
        line = self.waiting.setdefault(client, deque())
        if turn is None:
            assert len(line) == self.places.limits.waiting
        else:
            line.append(turn)

    def end(self, client: str) -> None:
        if self.held[client]:
            self.held[client] -= 1
            self.places.release(client)
            self._notice()

    def leave(self, client: str) -> None:
        """Out of patience. Whoever waits longest is the first to lose it."""
        if self.waiting.get(client):
            turn = self.waiting[client].popleft()
            assert not self.places.leave_queue(client, turn)

    def step(self, what: str, client: str) -> None:
        {"call": self.call, "end": self.end, "leave": self.leave}[what](client)

    def end_all(self) -> None:
        while self.held.total():
            for client in CLIENTS:
                self.end(client)

    def check(self) -> None:
        places, shares = self.places, self.places.limits
        assert places.running == self.held.total() <= shares.running
        assert places.held == +self.held
        assert {client: list(line) for client, line in places.queues.items()} == {
            client: list(line) for client, line in self.waiting.items() if line
        }
        free = shares.running - places.running
        for client in places.queues:
            assert not (free and not places.held_by(client)), f"{client} has nothing at all"
            assert not places._can_acquire(client), f"{client} waits for a place it may have"

    def _notice(self) -> None:
        for client, line in self.waiting.items():
            while line and line[0].done():
                line.popleft()
                self.held[client] += 1
                self.turns.append(client)


def on_a_loop(work: Callable[[], object]) -> None:
    """Turns are futures, and those belong to a loop."""

    async def main() -> None:
        work()

    asyncio.run(main())


@given(shares, steps)
@example(ConcurrencyLimits(1), [("call", "a")])
@example(ConcurrencyLimits(12), [("call", c) for c in "aaaaabbbbccdd" + "dd"] + [("end", "b")] * 4)
def test_nobody_waits_for_a_place_that_is_free(
    shares: ConcurrencyLimits, steps: list[tuple[str, str]]
) -> None:
    def play() -> None:
        ledger = Ledger(SlotQueue(shares))
        for what, client in steps:
            ledger.step(what, client)
            ledger.check()
        ledger.end_all()
        ledger.check()
        assert ledger.places.is_idle
        assert not ledger.places.held

    on_a_loop(play)


@given(st.integers(1, 12), st.integers(2, 40), st.sampled_from([1, 2, 3]))
def test_turns_go_round(running: int, waiting: int, others: int) -> None:
    """One with a single call waits for one turn of each who waits already, and no more."""

    def play() -> None:
        ledger = Ledger(SlotQueue(ConcurrencyLimits(running, waiting)))
        busy, single = CLIENTS[:others], CLIENTS[-1]
        for client in busy:
            for _ in range(running + waiting):
                ledger.call(client)
        assert ledger.places.running <= running
        ledger.turns.clear()
        ledger.call(single)
        while not ledger.held[single]:
            for client in busy:
                ledger.end(client)
                ledger.check()
        before = Counter(ledger.turns[: ledger.turns.index(single)] if ledger.turns else [])
        assert all(count <= 1 for count in before.values()), before

    on_a_loop(play)


def test_a_place_is_kept_for_the_first_call_of_everybody() -> None:
    """Also when there are as many clients as places."""

    def play() -> None:
        places = SlotQueue(ConcurrencyLimits(running=100))
        assert all(places.try_acquire(f"client {number}") for number in range(100))
        assert not places.try_acquire("one too many")

    on_a_loop(play)


def test_too_many_waiting() -> None:
    def play() -> None:
        places = SlotQueue(ConcurrencyLimits(running=1, waiting=3))
        assert places.try_acquire("a")
        assert [places.enqueue("a") is not None for _ in range(5)] == [True] * 3 + [False] * 2
        assert places.enqueue("b") is not None

    on_a_loop(play)


@dataclass(eq=False)
class Call:
    """One call under way, which ends when it is told to."""

    task: asyncio.Task[None] = field(init=False)
    finish: asyncio.Event = field(default_factory=asyncio.Event)
    entered: bool = False


class Calls:
    """What is called, with nothing but fairness around it."""

    def __init__(self, shares: ConcurrencyLimits) -> None:
        self.clock = ManualClock()
        self.fairness = ConcurrencyLimiter(self.clock, shares)
        self.all: list[Call] = []
        self.inside = 0
        self.most_inside = 0

    def start(
        self,
        client: str,
        request: Message | None = None,
        kind: Cardinality = Cardinality.UNARY_UNARY,
    ) -> Call:
        request = request or GetReadingsRequest(name="s")
        call = Call()
        method = Method(PATH, kind, self._serving(call), type(request))
        stream: Any = SimpleNamespace(
            peer=client, request=None if kind.client_streaming else request
        )
        handle = self.fairness.wrap(method, method.handle)
        call.task = asyncio.ensure_future(handle(stream))
        self.all.append(call)
        return call

    async def end_all(self) -> list[BaseException | None]:
        for call in self.all:
            call.finish.set()
        await self.clock.settle()
        return await asyncio.gather(*(call.task for call in self.all), return_exceptions=True)

    def _serving(self, call: Call) -> Handler:
        async def serve(_: Stream) -> None:
            call.entered = True
            self.inside += 1
            self.most_inside = max(self.inside, self.most_inside)
            try:
                await call.finish.wait()
            finally:
                self.inside -= 1

        return serve


async def test_patience_runs_on_the_clock_and_says_why() -> None:
    calls = Calls(ConcurrencyLimits(running=1, timeout=2.0))
    calls.start("a")
    late = calls.start("a")
    await calls.clock.advance(1.99)
    assert not late.task.done()
    await calls.clock.advance(0.02)
    with pytest.raises(TooManyCalls, match="s has 1 calls in flight, 1 of them yours") as told:
        await late.task
    assert told.value.status == "RESOURCE_EXHAUSTED"
    await calls.end_all()
    assert not calls.fairness._queues


async def test_too_many_waiting_are_told_at_once() -> None:
    calls = Calls(ConcurrencyLimits(running=1, waiting=2))
    started = [calls.start("a") for _ in range(4)]
    await calls.clock.settle()
    with pytest.raises(TooManyCalls, match="2 of your calls waiting"):
        await started[3].task
    await calls.end_all()
    assert not calls.fairness._queues


async def test_a_call_that_is_cancelled_just_when_its_turn_came_leaves_its_place() -> None:
    calls = Calls(ConcurrencyLimits(running=1))
    holder = calls.start("a")
    unlucky = calls.start("b")
    third = calls.start("c")
    await calls.clock.settle()
    holder.task.add_done_callback(lambda _: unlucky.task.cancel())
    holder.finish.set()
    await calls.clock.settle()
    assert unlucky.task.cancelled()
    assert not unlucky.entered
    assert third.entered, "the place of a call that was cancelled was lost"
    await calls.end_all()
    assert not calls.fairness._queues


async def test_resources_have_places_of_their_own() -> None:
    calls = Calls(ConcurrencyLimits(running=1))
    entered = [
        calls.start("a", request)
        for request in (
            GetReadingsRequest(name="s"),
            GetReadingsRequest(name="t"),
            GetReadingsRequest(),
        )
    ]
    await calls.clock.settle()
    assert all(call.entered for call in entered)
    await calls.end_all()
    assert not calls.fairness._queues


@pytest.mark.parametrize("kind", list(Cardinality))
async def test_every_kind_of_method(kind: Cardinality) -> None:
    """A client that sends many requests has named nothing when the call begins."""
    calls = Calls(ConcurrencyLimits())
    call = calls.start("a", GetReadingsRequest(name="s"), kind)
    await calls.clock.settle()
    assert call.entered
    assert await calls.end_all() == [None]
    assert not calls.fairness._queues


@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.lists(
        st.tuples(st.sampled_from(["start", "start", "end", "cancel", "settle", "late"]), clients),
        max_size=60,
    ),
)
def test_calls_that_come_end_and_are_cancelled_at_any_moment(
    running: int, waiting: int, steps: list[tuple[str, str]]
) -> None:
    async def play() -> None:
        calls = Calls(ConcurrencyLimits(running, waiting, timeout=2.0))
        for number, (what, client) in enumerate(steps):
            if what == "start":
                calls.start(client)
            elif what == "settle":
                await calls.clock.settle()
            elif what == "late":
                await calls.clock.advance(1.0)
            elif calls.all:
                chosen = calls.all[number % len(calls.all)]
                if what == "end":
                    chosen.finish.set()
                    # One turn of the loop: what follows hits calls whose turn is just coming.
                    await asyncio.sleep(0)
                else:
                    chosen.task.cancel()
        ends = await calls.end_all()
        assert calls.most_inside <= running
        assert all(isinstance(e, TooManyCalls | asyncio.CancelledError | None) for e in ends), ends
        assert not calls.fairness._queues, "a place was lost"

    asyncio.run(play())

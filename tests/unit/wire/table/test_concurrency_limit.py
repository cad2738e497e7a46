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
from tests.support.waiting import run_others

from cogwork.core.clock import ManualClock
from cogwork.resource.sdk import clean_import as sdk
from cogwork.wire.table.concurrency_limit import (
    ConcurrencyLimiter,
    ConcurrencyLimits,
    SlotQueue,
    TooManyCalls,
)
from cogwork.wire.table.handlers import Handler, Method, Stream

assert sdk.VERSION  # the SDK must be imported first
from viam.gen.common.v1.common_pb2 import GetReadingsRequest  # noqa: E402

CLIENTS = ("a", "b", "c", "d")
PATH = "/test.Sensor/Read"
TICKS = "/viam.component.board.v1.BoardService/StreamTicks"

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
class ClientLedger:
    """The slots from the view of the clients, as a model for the tests."""

    slots: SlotQueue
    held: Counter[str] = field(default_factory=Counter)
    waiting: dict[str, deque[asyncio.Future[None]]] = field(default_factory=dict)
    turn_order: list[str] = field(default_factory=list)
    """The clients whose turn came, in order."""

    def call(self, client: str) -> None:
        if self.slots.try_acquire(client):
            self.held[client] += 1
            return
        turn = self.slots.enqueue(client)
        line = self.waiting.setdefault(client, deque())
        if turn is None:
            assert len(line) == self.slots.limits.waiting
        else:
            line.append(turn)

    def end(self, client: str) -> None:
        if self.held[client]:
            self.held[client] -= 1
            self.slots.release(client)
            self._collect_turns()

    def leave(self, client: str) -> None:
        """Time out. The call that has waited longest leaves first."""
        if self.waiting.get(client):
            turn = self.waiting[client].popleft()
            assert not self.slots.leave_queue(client, turn)

    def step(self, what: str, client: str) -> None:
        {"call": self.call, "end": self.end, "leave": self.leave}[what](client)

    def end_all(self) -> None:
        while self.held.total():
            for client in CLIENTS:
                self.end(client)

    def check(self) -> None:
        slots, shares = self.slots, self.slots.limits
        assert slots.running == self.held.total() <= shares.running
        assert slots.held == +self.held
        assert {client: list(line) for client, line in slots.queues.items()} == {
            client: list(line) for client, line in self.waiting.items() if line
        }
        free = shares.running - slots.running
        for client in slots.queues:
            assert not (free and not slots.held_by(client)), f"{client} has nothing at all"
            assert not slots._can_acquire(client), f"{client} waits for a place it may have"

    def _collect_turns(self) -> None:
        for client, line in self.waiting.items():
            while line and line[0].done():
                line.popleft()
                self.held[client] += 1
                self.turn_order.append(client)


def run_on_loop(work: Callable[[], object]) -> None:
    """Run the work on a loop, because turns are futures of a loop."""

    async def main() -> None:
        work()

    asyncio.run(main())


@given(shares, steps)
@example(ConcurrencyLimits(1), [("call", "a")])
@example(ConcurrencyLimits(12), [("call", c) for c in "aaaaabbbbccdd" + "dd"] + [("end", "b")] * 4)
def test_no_client_waits_while_it_may_have_a_slot(
    shares: ConcurrencyLimits, steps: list[tuple[str, str]]
) -> None:
    def run_steps() -> None:
        ledger = ClientLedger(SlotQueue(shares))
        for what, client in steps:
            ledger.step(what, client)
            ledger.check()
        ledger.end_all()
        ledger.check()
        assert ledger.slots.is_idle
        assert not ledger.slots.held

    run_on_loop(run_steps)


@given(st.integers(1, 12), st.integers(2, 40), st.sampled_from([1, 2, 3]))
def test_waiting_clients_take_turns(running: int, waiting: int, others: int) -> None:
    """A client with a single call waits for at most one turn of each waiting client."""

    def run_steps() -> None:
        ledger = ClientLedger(SlotQueue(ConcurrencyLimits(running, waiting)))
        busy, single = CLIENTS[:others], CLIENTS[-1]
        for client in busy:
            for _ in range(running + waiting):
                ledger.call(client)
        assert ledger.slots.running <= running
        ledger.turn_order.clear()
        ledger.call(single)
        while not ledger.held[single]:
            for client in busy:
                ledger.end(client)
                ledger.check()
        before = Counter(
            ledger.turn_order[: ledger.turn_order.index(single)] if ledger.turn_order else []
        )
        assert all(count <= 1 for count in before.values()), before

    run_on_loop(run_steps)


def test_first_call_of_every_client_gets_a_slot() -> None:
    """This holds also with as many clients as slots."""

    def run_steps() -> None:
        slots = SlotQueue(ConcurrencyLimits(running=100))
        assert all(slots.try_acquire(f"client {number}") for number in range(100))
        assert not slots.try_acquire("one too many")

    run_on_loop(run_steps)


def test_queue_of_each_client_is_limited() -> None:
    def run_steps() -> None:
        slots = SlotQueue(ConcurrencyLimits(running=1, waiting=3))
        assert slots.try_acquire("a")
        assert [slots.enqueue("a") is not None for _ in range(5)] == [True] * 3 + [False] * 2
        assert slots.enqueue("b") is not None

    run_on_loop(run_steps)


@dataclass(eq=False)
class RunningCall:
    """A running call that ends when `finish` is set."""

    task: asyncio.Task[None] = field(init=False)
    finish: asyncio.Event = field(default_factory=asyncio.Event)
    entered: bool = False


class LimitedCalls:
    """Calls with only the concurrency limiter around them."""

    def __init__(self, shares: ConcurrencyLimits) -> None:
        self.clock = ManualClock()
        self.limiter = ConcurrencyLimiter(self.clock, shares)
        self.all: list[RunningCall] = []
        self.inside = 0
        self.most_inside = 0

    def start(
        self,
        client: str,
        request: Message | None = None,
        kind: Cardinality = Cardinality.UNARY_UNARY,
        path: str = PATH,
    ) -> RunningCall:
        request = request or GetReadingsRequest(name="s")
        call = RunningCall()
        method = Method(path, kind, self._make_handler(call), type(request))
        stream: Any = SimpleNamespace(
            peer=client, request=None if kind.client_streaming else request
        )
        handle = self.limiter.wrap(method, method.handle)
        call.task = asyncio.ensure_future(handle(stream))
        self.all.append(call)
        return call

    async def end_all(self) -> list[BaseException | None]:
        for call in self.all:
            call.finish.set()
        await self.clock.settle()
        return await asyncio.gather(*(call.task for call in self.all), return_exceptions=True)

    def _make_handler(self, call: RunningCall) -> Handler:
        async def serve(_: Stream) -> None:
            call.entered = True
            self.inside += 1
            self.most_inside = max(self.inside, self.most_inside)
            try:
                await call.finish.wait()
            finally:
                self.inside -= 1

        return serve


async def test_waiting_call_times_out_with_a_reason() -> None:
    calls = LimitedCalls(ConcurrencyLimits(running=1, timeout=2.0))
    calls.start("a")
    late = calls.start("a")
    await calls.clock.advance(1.99)
    assert not late.task.done()
    await calls.clock.advance(0.02)
    with pytest.raises(TooManyCalls, match="s has 1 calls in flight, 1 of them yours") as raised:
        await late.task
    assert raised.value.status == "RESOURCE_EXHAUSTED"
    await calls.end_all()
    assert not calls.limiter._slots._queues


async def test_call_over_the_queue_limit_fails_at_once() -> None:
    calls = LimitedCalls(ConcurrencyLimits(running=1, waiting=2))
    started = [calls.start("a") for _ in range(4)]
    await calls.clock.settle()
    with pytest.raises(TooManyCalls, match="2 of your calls already wait for"):
        await started[3].task
    await calls.end_all()
    assert not calls.limiter._slots._queues


async def test_call_cancelled_when_its_turn_comes_releases_its_slot() -> None:
    calls = LimitedCalls(ConcurrencyLimits(running=1))
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
    assert not calls.limiter._slots._queues


async def test_each_resource_has_its_own_slots() -> None:
    calls = LimitedCalls(ConcurrencyLimits(running=1))
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
    assert not calls.limiter._slots._queues


@pytest.mark.parametrize("kind", list(Cardinality))
async def test_every_cardinality_is_handled(kind: Cardinality) -> None:
    """The resource of a client-streaming call is unknown when the call starts."""
    calls = LimitedCalls(ConcurrencyLimits())
    call = calls.start("a", GetReadingsRequest(name="s"), kind)
    await calls.clock.settle()
    assert call.entered
    assert await calls.end_all() == [None]
    assert not calls.limiter._slots._queues


async def test_streams_of_events_have_slots_only_while_they_open() -> None:
    calls = LimitedCalls(ConcurrencyLimits(running=2))
    kind = Cardinality.UNARY_STREAM
    streams = [calls.start("a", kind=kind, path=TICKS) for _ in range(10)]
    await calls.clock.settle()
    assert sum(each.entered for each in streams) == 1, "more than the share of one client open"
    await calls.clock.advance(2.6)
    assert all(each.entered for each in streams)
    late = calls.start("a", kind=kind, path=TICKS)
    await calls.clock.settle()
    assert late.entered, "open streams hold slots"
    await calls.end_all()
    assert not calls.limiter._slots._queues


async def test_slots_are_shared_with_streams_that_are_open_already() -> None:
    """An open stream has no slot, but its resource still has the same slots for all calls."""
    calls = LimitedCalls(ConcurrencyLimits(running=2))
    stream = calls.start("a", kind=Cardinality.UNARY_STREAM, path=TICKS)
    await calls.clock.advance(0.3)
    short = calls.start("b", kind=Cardinality.UNARY_STREAM, path=TICKS)
    short.finish.set()
    await calls.clock.advance(0.3)
    for client in "bc":
        calls.start(client, kind=Cardinality.UNARY_STREAM, path=TICKS)
    await calls.clock.settle()
    stream.finish.set()
    await calls.clock.settle()
    late = calls.start("d", kind=Cardinality.UNARY_STREAM, path=TICKS)
    await calls.clock.settle()
    assert not late.entered, "the end of the stream made slots anew"
    await calls.end_all()


@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.lists(
        st.tuples(st.sampled_from(["start", "start", "end", "cancel", "settle", "late"]), clients),
        max_size=60,
    ),
)
def test_random_starts_ends_and_cancellations_lose_no_slot(
    running: int, waiting: int, steps: list[tuple[str, str]]
) -> None:
    async def run_steps() -> None:
        calls = LimitedCalls(ConcurrencyLimits(running, waiting, timeout=2.0))
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
                    # One turn of the loop, so that the next step hits calls whose turn is coming.
                    await run_others()
                else:
                    chosen.task.cancel()
        ends = await calls.end_all()
        assert calls.most_inside <= running
        assert all(isinstance(e, TooManyCalls | asyncio.CancelledError | None) for e in ends), ends
        assert not calls.limiter._slots._queues, "a place was lost"

    asyncio.run(run_steps())

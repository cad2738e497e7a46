from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.waiting import run_others

from cogwork.wire.table.event_streams import (
    EventStreamLimits,
    EventStreams,
    TooManyStreams,
    declares_events,
)

CLIENTS = ("a", "b", "c", "d")
_TURNS = 6
"""Turns of the loop until a stream that lost its place has ended."""


class OpenStreams:
    """Streams that stay open until they are ended, with the reasons of those that were refused."""

    def __init__(self, limits: EventStreamLimits) -> None:
        self._streams = EventStreams(limits)
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        self.refusals: list[str] = []

    async def open(self, client: str) -> None:
        self._tasks.setdefault(client, []).append(asyncio.ensure_future(self._stay_open(client)))
        await run_others(_TURNS)

    async def end(self, client: str) -> None:
        """End the oldest stream of a client."""
        if running := self._running(client):
            running[0].cancel()
            await run_others(_TURNS)

    def count(self) -> dict[str, int]:
        return {each: len(running) for each in self._tasks if (running := self._running(each))}

    async def end_all(self) -> None:
        for client in CLIENTS:
            while self._running(client):
                await self.end(client)
        assert not self._streams._streams
        assert not self._streams._count

    def _running(self, client: str) -> list[asyncio.Task[None]]:
        return [each for each in self._tasks.get(client, ()) if not each.done()]

    async def _stay_open(self, client: str) -> None:
        try:
            async with self._streams.hold(client):
                await asyncio.Event().wait()
        except TooManyStreams as error:
            self.refusals.append(str(error))


async def test_client_has_a_limit_of_its_own() -> None:
    streams = OpenStreams(EventStreamLimits(per_client=3, total=10))
    for _ in range(5):
        await streams.open("a")
    await streams.open("b")
    assert streams.count() == {"a": 3, "b": 1}
    assert streams.refusals == ["3 event streams are open on this connection; end some of them"] * 2
    await streams.end_all()


async def test_new_client_gets_the_newest_place_of_the_client_with_most() -> None:
    streams = OpenStreams(EventStreamLimits(per_client=4, total=6))
    for client in "aaaabb":
        await streams.open(client)
    await streams.open("c")
    assert streams.count() == {"a": 3, "b": 2, "c": 1}
    assert streams.refusals == [
        "this stream was ended, because there are 6 open event streams and other clients have "
        "fewer than you; open fewer"
    ]
    await streams.end_all()


async def test_no_place_is_taken_from_clients_with_as_few() -> None:
    streams = OpenStreams(EventStreamLimits(per_client=4, total=4))
    for client in "aabb":
        await streams.open(client)
    for client in "cc":  # the second would have as many as a, then
        await streams.open(client)
    assert streams.count() == {"a": 1, "b": 2, "c": 1}
    assert streams.refusals[1:] == [
        "all 4 event streams are in use, and no other client has more than its fair share; "
        "try again later"
    ]
    await streams.end_all()


async def test_time_out_within_a_stream_is_its_own() -> None:
    with pytest.raises(TimeoutError):
        async with EventStreams().hold("a"):
            raise TimeoutError


@given(
    st.integers(1, 6),
    st.integers(1, 12),
    st.lists(st.tuples(st.booleans(), st.sampled_from(CLIENTS)), max_size=60),
)
def test_no_client_has_less_than_its_share(
    per_client: int, total: int, steps: list[tuple[bool, str]]
) -> None:
    async def run_steps() -> None:
        streams = OpenStreams(EventStreamLimits(per_client, total))
        for opens, client in steps:
            before = Counter(streams.count())
            await (streams.open(client) if opens else streams.end(client))
            after = Counter(streams.count())
            assert after.total() <= total
            assert max(after.values(), default=0) <= per_client
            if opens and after[client] <= before[client]:
                full = before.total() == total
                assert before[client] == per_client or (
                    full and before[client] + 1 >= max(before.values())
                )
        await streams.end_all()

    asyncio.run(run_steps())


def test_others_declare_events_by_the_name_of_a_stream_of_replies() -> None:
    from viam.gen.component.audioin.v1 import audioin_pb2
    from viam.gen.component.board.v1 import board_pb2
    from viam.gen.robot.v1 import robot_pb2

    board = board_pb2.DESCRIPTOR.services_by_name["BoardService"].methods_by_name
    robot = robot_pb2.DESCRIPTOR.services_by_name["RobotService"].methods_by_name
    audio = audioin_pb2.DESCRIPTOR.services_by_name["AudioInService"].methods_by_name
    assert declares_events(board["StreamTicks"])
    assert not declares_events(board["GetGPIO"])
    assert not declares_events(robot["Tunnel"])
    assert not declares_events(audio["GetAudio"]), "it transfers sound"

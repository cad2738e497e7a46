"""The memory of large requests that have not arrived completely."""

from __future__ import annotations

import pytest

from cogwork.core.limits.byte_budget import ByteBudget
from cogwork.front.http2_frames import ProtocolViolation
from cogwork.front.uploads import SMALL_SIZE, ConnectionUploads, Uploads

MIB = 1 << 20
LARGE = 8 * MIB


class Site:
    """Uploads with memory for two large requests of a client, and for four of all."""

    def __init__(self) -> None:
        self.budget = ByteBudget("uploads", total=4 * LARGE, per_client=2 * LARGE)
        self.uploads = Uploads(self.budget)
        self.granted: list[str] = []

    def open(self, client: str) -> ConnectionUploads:
        return self.uploads.open(client, lambda: self.granted.append(client))


@pytest.fixture
def site() -> Site:
    return Site()


def begin(connection: ConnectionUploads, *streams: int, size: int = LARGE) -> list[bool]:
    """Begin requests, and return which of them wait."""
    for stream in streams:
        connection.begin(stream, size)
    return [connection.withhold(stream, size) for stream in streams]


def test_client_has_memory_for_some_requests_and_the_others_wait(site: Site) -> None:
    connection = site.open("a")
    assert begin(connection, 1, 3, 5, 7) == [False, False, True, True]
    assert [connection.is_waiting(stream) for stream in (1, 3, 5, 7)] == [False, False, True, True]
    connection.end(1)
    assert site.granted == ["a"]
    assert connection.take_granted() == {5: LARGE}
    assert connection.take_granted() == {}
    assert not connection.is_waiting(5)


def test_window_of_a_request_with_memory_is_not_withheld_again(site: Site) -> None:
    connection = site.open("a")
    assert begin(connection, 1, 3, 5) == [False, False, True]
    assert not connection.withhold(1, 100)
    assert connection.withhold(5, 100)
    connection.end(1)
    assert connection.take_granted() == {5: LARGE + 100}


def test_small_and_unknown_requests_do_not_wait(site: Site) -> None:
    connection = site.open("a")
    begin(connection, 1, 3, 5)
    assert begin(connection, 7, size=SMALL_SIZE) == [False]
    assert not connection.withhold(99, LARGE)


def test_clients_take_turns(site: Site) -> None:
    greedy, first, second = site.open("greedy"), site.open("a"), site.open("b")
    begin(greedy, 1, 3, 5, 7, 9)
    begin(first, 1, 3, 5)
    begin(second, 1, 3, 5)
    for connection in (greedy, first, second):
        connection.end(1)
    assert sorted(site.granted) == ["a", "b", "greedy"]


def test_client_without_requests_is_served_although_another_waits(site: Site) -> None:
    begin(site.open("greedy"), *range(1, 99, 2))
    assert begin(site.open("a"), 1) == [False]


def test_request_that_ends_while_it_waits_gets_no_memory(site: Site) -> None:
    connection = site.open("a")
    begin(connection, 1, 3, 5, 7)
    connection.end(5)
    connection.end(1)
    assert connection.take_granted() == {7: LARGE}


def test_connection_that_closes_gives_everything_back(site: Site) -> None:
    connection, other = site.open("a"), site.open("a")
    begin(connection, 1, 3, 5)
    assert begin(other, 1) == [True]
    connection.receive(7, 1000)
    connection.close()
    assert other.take_granted() == {1: LARGE}
    other.close()
    assert site.budget.held.total == 0
    assert site.budget.held.by_client == {}


def test_request_larger_than_the_memory_waits_until_there_are_no_others(site: Site) -> None:
    """The server refuses it then, with a status."""
    connection, other = site.open("a"), site.open("b")
    begin(other, 1)
    assert begin(connection, 1, size=1 << 32) == [True]
    other.end(1)
    assert connection.take_granted() == {1: 1 << 32}


def test_connection_may_hold_a_quarter_in_small_requests(site: Site) -> None:
    connection = site.open("a")
    most = site.budget.most // 4
    for stream in range(most // SMALL_SIZE):
        connection.receive(stream, SMALL_SIZE)
    with pytest.raises(ProtocolViolation, match=f"take up too much memory: {most + 1} bytes"):
        connection.receive(999_999, 1)


def test_all_connections_together_hold_no_more_than_the_budget_in_small_requests(
    site: Site,
) -> None:
    part = site.budget.most // 8
    for client in range(8):
        site.open(str(client)).receive(1, part)
    modest = site.open("modest")
    modest.receive(1, SMALL_SIZE)
    with pytest.raises(ProtocolViolation):
        modest.receive(3, 1)


def test_small_requests_that_end_do_not_count(site: Site) -> None:
    connection = site.open("a")
    for stream in range(1000):
        connection.receive(stream, SMALL_SIZE)
        connection.end(stream)


def test_large_request_does_not_count_as_small_once_there_is_memory(site: Site) -> None:
    connection = site.open("a")
    for stream in range(1000):
        connection.begin(stream, LARGE)
        connection.receive(stream, SMALL_SIZE)
        assert not connection.withhold(stream, LARGE)
        connection.receive(stream, LARGE)
        connection.end(stream)

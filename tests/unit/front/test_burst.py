"""The places of requests that began a moment ago."""

from __future__ import annotations

import pytest

from cogwork.front.burst import Burst, Bursts


class Clock:
    now = 0.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bursts(clock: Clock) -> Bursts:
    return Bursts(lambda: clock.now, lambda: None)


def places(bursts: Bursts, burst: Burst, clock: Clock) -> int:
    """Return how many requests the connection may begin at once."""
    clock.now += 0.1  # the shares are computed again
    begun = 0
    while not burst.is_full(clock.now):
        burst.begin(1000 + begun, clock.now)
        begun += 1
    for number in range(begun):
        burst.end(1000 + number)
    return begun


def test_answered_request_gives_its_place_back() -> None:
    burst = Burst(lambda: 1)
    burst.begin(1, 0.0)
    assert burst.is_full(0.0)
    burst.end(1)
    assert not burst.is_full(0.0)


def test_request_has_a_place_for_a_quarter_of_a_second_at_most() -> None:
    burst = Burst(lambda: 1)
    burst.begin(1, 0.0)
    assert burst.is_full(0.2)
    assert not burst.is_full(0.25)


def test_server_is_asked_once_about_a_cancelled_request_with_a_place() -> None:
    cancelled: list[bool] = []
    burst = Burst(lambda: 1, lambda: cancelled.append(True))
    burst.begin(1, 0.0)
    burst.cancel(1, 0.0)
    burst.cancel(1, 0.0)
    burst.cancel(3, 0.0)
    assert cancelled == [True]


def test_request_that_was_cancelled_just_now_keeps_its_place() -> None:
    burst = Burst(lambda: 2)
    burst.begin(1, 0.0)
    burst.begin(3, 0.0)
    burst.cancel(1, 0.0)
    burst.cancel(3, 0.005)  # the server may not have noticed it
    burst.ask(0.01)
    burst.settle(working=0)
    assert burst.count(0.0) == 1
    assert burst.has_cancelled
    burst.ask(0.02)
    burst.settle(working=0)
    assert burst.count(0.0) == 0


def test_requests_that_the_server_works_on_keep_their_places() -> None:
    burst = Burst(lambda: 8)
    for stream in (1, 3, 5, 7):
        burst.begin(stream, 0.0)
    for stream in (5, 3, 1):
        burst.cancel(stream, 0.0)
    burst.ask(0.01)
    burst.settle(working=2)
    assert burst.count(0.0) == 3  # two of the cancelled, and the other


def test_server_is_not_asked_about_a_long_call_for_ever() -> None:
    burst = Burst(lambda: 8)
    burst.begin(1, 0.0)
    burst.cancel(1, 0.1)
    burst.ask(0.2)
    burst.settle(working=1)
    assert burst.has_cancelled
    burst.ask(0.3)
    assert not burst.has_cancelled


def test_request_that_was_answered_meanwhile_is_not_counted_twice() -> None:
    burst = Burst(lambda: 8)
    for stream in (1, 3):
        burst.begin(stream, 0.0)
        burst.cancel(stream, 0.0)
    burst.ask(0.01)
    burst.end(1)
    burst.settle(working=1)
    assert burst.count(0.0) == 1


def test_connections_that_work_share_the_places(bursts: Bursts, clock: Clock) -> None:
    first, second = bursts.open(1), bursts.open(2)
    assert places(bursts, first, clock) == 64
    second.begin(1, clock.now + 0.1)
    first.begin(1, clock.now + 0.1)
    assert places(bursts, first, clock) == 31  # and the one that is open


def test_connection_with_a_long_call_does_not_take_a_share(bursts: Bursts, clock: Clock) -> None:
    """Such as one that waits for events."""
    for number in range(2, 40):
        bursts.open(number).begin(1, clock.now)
    clock.now += 1.0
    assert places(bursts, bursts.open(1), clock) == 64


def test_connection_that_closes_gives_its_share_back(bursts: Bursts, clock: Clock) -> None:
    first = bursts.open(1)
    bursts.open(2).begin(1, clock.now + 0.1)
    bursts.close(2)
    assert places(bursts, first, clock) == 64


def test_answer_is_taken_by_connection(bursts: Bursts, clock: Clock) -> None:
    first, second = bursts.open(1), bursts.open(2)
    for burst in (first, second):
        burst.begin(1, 0.0)
        burst.cancel(1, 0.0)
    clock.now = 0.01
    bursts.ask()
    bursts.settle({2: 1})
    assert (first.count(0.0), second.count(0.0)) == (0, 1)
    assert bursts.has_cancelled

from __future__ import annotations

from cogwork.discovery.query_limiter import SOURCE, TOTAL, QueryLimiter


class Network:
    def __init__(self) -> None:
        self.now = 0.0
        self.limiter = QueryLimiter(lambda: self.now)

    def flood(self, source: str, seconds: float, rate: int) -> int:
        """Return how many queries of one address are admitted."""
        began, admitted = self.now, 0
        for number in range(int(seconds * rate)):
            self.now = began + number / rate
            admitted += self.limiter.admit(source)
        return admitted


def test_one_address_leaves_room_for_others() -> None:
    network = Network()
    admitted = network.flood("192.0.2.1", 10, 5000)
    assert admitted <= SOURCE.burst + 10 * SOURCE.per_second
    assert all(network.limiter.admit("192.0.2.2") for _ in range(int(SOURCE.burst)))


def test_forged_addresses_are_limited_together() -> None:
    network = Network()
    admitted = 0
    for number in range(5000):
        network.now = number / 1000
        admitted += network.limiter.admit(f"192.0.2.{number % 1000}")
    assert admitted <= TOTAL.burst + 5 * TOTAL.per_second


def test_client_that_asks_three_times_a_second_is_always_admitted() -> None:
    network = Network()
    assert network.flood("192.0.2.1", 60, 3) == 180

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from cogwork.wire.connections import ConnectionLimits, Connections, ConnectionState

LIMITS = ConnectionLimits(total=4, per_host=3)


@dataclass(eq=False)
class Open:
    registry: Connections
    host: str = "a"
    state: ConnectionState = ConnectionState.IDLE
    last_active: float = 0.0
    closed: bool = False

    def close(self) -> None:
        self.closed = True
        self.registry.remove(self)


@dataclass
class Port:
    limits: ConnectionLimits = LIMITS
    now: float = 0.0
    registry: Connections = field(init=False)

    def __post_init__(self) -> None:
        self.registry = Connections(lambda: self.now, self.limits)

    def come(
        self,
        host: str = "a",
        standing: ConnectionState = ConnectionState.IDLE,
        active: float = 0.0,
        urgent: bool = False,
    ) -> Open | None:
        """None: it was refused. Each comes long after the one before."""
        self.now += 1
        connection = Open(self.registry, host, standing, active)
        return connection if self.registry.admit(connection, urgent=urgent) else None


def test_the_least_used_gives_way() -> None:
    port = Port(ConnectionLimits(total=4, per_host=4))
    standings = (
        ConnectionState.BUSY,
        ConnectionState.IDLE,
        ConnectionState.UNUSED,
        ConnectionState.UNDETECTED,
    )
    busy, idle, unused, silent = (port.come(standing=each) for each in standings)
    for gone in (silent, unused, idle):
        assert gone is not None
        assert not gone.closed
        assert port.come(standing=ConnectionState.BUSY) is not None
        assert gone.closed
    assert busy is not None
    assert not busy.closed
    assert port.come() is None
    assert len(port.registry) == 4


def test_of_equals_the_one_that_was_idle_longest_gives_way() -> None:
    port = Port(ConnectionLimits(total=3, per_host=3))
    first, second, third = (port.come(active=each) for each in (2.0, 1.0, 3.0))
    port.come()
    assert second is not None
    assert second.closed
    assert first is not None
    assert not first.closed
    assert third is not None
    assert not third.closed


def test_one_that_was_just_answered_gives_way_only_if_it_is_urgent() -> None:
    port = Port(ConnectionLimits(total=2, per_host=2))
    port.come(standing=ConnectionState.BUSY)
    in_use = port.come(active=9.9)
    assert in_use is not None
    port.now = 9.0
    assert port.come() is None
    assert not in_use.closed
    assert port.come(urgent=True) is not None
    assert in_use.closed


def test_one_host_does_not_take_the_places_of_others() -> None:
    port = Port()
    assert all(port.come("a", ConnectionState.BUSY) for _ in range(3))
    assert port.come("a") is None
    assert port.come("b") is not None


def test_the_host_with_most_connections_gives_way_first() -> None:
    port = Port()
    mine = port.come("b", active=0.0)
    others = [port.come("a", active=1.0) for _ in range(3)]
    assert port.come("c") is not None
    assert mine is not None
    assert not mine.closed
    assert sum(other.closed for other in others if other is not None) == 1


def test_what_became_busy_since_the_ranking_stays() -> None:
    port = Port(ConnectionLimits(total=2, per_host=2))
    first, second = port.come(active=1.0), port.come(active=2.0)
    newcomer = Open(port.registry)
    assert port.registry.admit(newcomer)
    assert first is not None
    assert first.closed
    assert second is not None
    second.state = ConnectionState.BUSY
    # The ranking is still the one of before.
    assert port.come(standing=ConnectionState.UNDETECTED) is not None
    assert not second.closed


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(ConnectionState), st.booleans()),
        max_size=60,
    )
)
def test_the_count_is_exact_whatever_comes_and_goes(
    events: list[tuple[str, ConnectionState, bool]],
) -> None:
    port = Port()
    seen: list[Open] = []
    for host, standing, leaves in events:
        if leaves and seen:
            seen[len(seen) // 2].close()
        if connection := port.come(host, standing):
            seen.append(connection)
        still_open = [each for each in seen if not each.closed]
        assert len(port.registry) == len(still_open) <= LIMITS.total
        for name in "abc":
            assert sum(each.host == name for each in still_open) <= LIMITS.per_host

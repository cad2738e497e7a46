from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from cogwork.front.connections import ConnectionLimits, Connections, ConnectionState

LIMITS = ConnectionLimits(total=4, per_host=3)


@dataclass(eq=False)
class OpenConnection:
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

    def connect(
        self,
        host: str = "a",
        state: ConnectionState = ConnectionState.IDLE,
        active: float = 0.0,
        urgent: bool = False,
    ) -> OpenConnection | None:
        """Return the connection, or None if it was refused. Each comes long after the last."""
        self.now += 1
        connection = OpenConnection(self.registry, host, state, active)
        return connection if self.registry.admit(connection, urgent=urgent) else None


def test_least_used_connection_is_closed_first() -> None:
    port = Port(ConnectionLimits(total=4, per_host=4))
    states = (
        ConnectionState.BUSY,
        ConnectionState.IDLE,
        ConnectionState.UNUSED,
        ConnectionState.UNDETECTED,
    )
    busy, idle, unused, silent = (port.connect(state=each) for each in states)
    for gone in (silent, unused, idle):
        assert gone is not None
        assert not gone.closed
        assert port.connect(state=ConnectionState.BUSY) is not None
        assert gone.closed
    assert busy is not None
    assert not busy.closed
    assert port.connect() is None
    assert len(port.registry) == 4


def test_longest_idle_connection_is_closed_first() -> None:
    port = Port(ConnectionLimits(total=3, per_host=3))
    first, second, third = (port.connect(active=each) for each in (2.0, 1.0, 3.0))
    port.connect()
    assert second is not None
    assert second.closed
    assert first is not None
    assert not first.closed
    assert third is not None
    assert not third.closed


def test_recently_active_connection_is_closed_only_for_an_urgent_one() -> None:
    port = Port(ConnectionLimits(total=2, per_host=2))
    port.connect(state=ConnectionState.BUSY)
    in_use = port.connect(active=9.9)
    assert in_use is not None
    port.now = 9.0
    assert port.connect() is None
    assert not in_use.closed
    assert port.connect(urgent=True) is not None
    assert in_use.closed


def test_one_host_cannot_use_all_connections() -> None:
    port = Port()
    assert all(port.connect("a", ConnectionState.BUSY) for _ in range(3))
    assert port.connect("a") is None
    assert port.connect("b") is not None


def test_host_with_most_connections_loses_one_first() -> None:
    port = Port()
    mine = port.connect("b", active=0.0)
    others = [port.connect("a", active=1.0) for _ in range(3)]
    assert port.connect("c") is not None
    assert mine is not None
    assert not mine.closed
    assert sum(other.closed for other in others if other is not None) == 1


def test_connection_that_became_busy_after_the_ranking_stays() -> None:
    port = Port(ConnectionLimits(total=2, per_host=2))
    first, second = port.connect(active=1.0), port.connect(active=2.0)
    newcomer = OpenConnection(port.registry)
    assert port.registry.admit(newcomer)
    assert first is not None
    assert first.closed
    assert second is not None
    second.state = ConnectionState.BUSY
    # The ranking was computed before.
    assert port.connect(state=ConnectionState.UNDETECTED) is not None
    assert not second.closed


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(ConnectionState), st.booleans()),
        max_size=60,
    )
)
def test_connection_counts_stay_exact_and_within_the_limits(
    events: list[tuple[str, ConnectionState, bool]],
) -> None:
    port = Port()
    seen: list[OpenConnection] = []
    for host, state, leaves in events:
        if leaves and seen:
            seen[len(seen) // 2].close()
        if connection := port.connect(host, state):
            seen.append(connection)
        open_connections = [each for each in seen if not each.closed]
        assert len(port.registry) == len(open_connections) <= LIMITS.total
        for name in "abc":
            assert sum(each.host == name for each in open_connections) <= LIMITS.per_host


def test_connections_through_a_proxy_count_for_their_clients() -> None:
    port = Port(ConnectionLimits(total=8, per_host=2))

    def forward(client: str) -> OpenConnection | None:
        connection = port.connect("proxy", ConnectionState.BUSY)
        assert connection is not None
        if not port.registry.move(connection, client):
            connection.close()
            return None
        connection.host = client
        return connection

    first, second, refused = (forward("client") for _ in range(3))
    assert first is not None
    assert second is not None
    assert refused is None
    assert forward("another") is not None
    first.close()
    assert forward("client") is not None
    assert len(port.registry) == 3

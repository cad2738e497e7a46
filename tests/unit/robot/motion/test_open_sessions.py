from __future__ import annotations

import pytest

from cogwork.graph.name import ResourceName
from cogwork.net.peer import host_of
from cogwork.robot.motion.open_sessions import (
    OpenSessions,
    Session,
    SessionLimits,
    TooManySessions,
    owner_of,
)

MOTOR = ResourceName.parse("rdk:component:motor/m")
LIMITS = SessionLimits(total=10, per_owner=6, per_client=3)


def make_session(peer: str, heard: float = 0.0, *, moves: bool = False) -> Session:
    return Session(owner_of(peer), peer, heard, moved={MOTOR} if moves else set())


@pytest.mark.parametrize(
    ("peer", "host", "owner"),
    [
        ("ipv4:10.0.0.7:1234", "ipv4:10.0.0.7", "10.0.0.7"),
        ("ipv6:[2001:db8::7]:1234", "ipv6:[2001:db8::7]", "2001:db8::7"),
        ("ipv6:[fe80::7%eth0]:1234", "ipv6:[fe80::7%eth0]", "fe80::7%eth0"),
        ("ipv4:127.0.0.1:1234", "ipv4:127.0.0.1", "localhost"),
        ("ipv6:[::1]:1234", "ipv6:[::1]", "localhost"),
        ("webrtc:127.0.0.1:3", "webrtc:127.0.0.1", "localhost"),
        ("webrtc:10.0.0.7:3", "webrtc:10.0.0.7", "10.0.0.7"),
        ("module:acme", "module:acme", "module:acme"),
        ("unix:", "unix:", "unix:"),
        ("", "", ""),
    ],
)
def test_host_and_owner_of_a_peer(peer: str, host: str, owner: str) -> None:
    assert (host_of(peer), owner_of(peer)) == (host, owner)


def test_client_replaces_its_own_idle_sessions() -> None:
    sessions = OpenSessions(LIMITS)
    mine = [make_session("a:1", 1, moves=True), make_session("a:1", 3), make_session("a:1", 2)]
    other = make_session("b:1", 0)
    for each in (*mine, other, make_session("a:1", 4)):
        sessions.add(each)
    assert [each.id in sessions for each in (*mine, other)] == [True, True, False, True]


def test_moving_session_is_never_evicted() -> None:
    sessions = OpenSessions(LIMITS)
    for _ in range(3):
        sessions.add(make_session("a:1", moves=True))
    with pytest.raises(TooManySessions, match="all 3 sessions are moving something"):
        sessions.add(make_session("a:1"))
    sessions.add(make_session("a:2"))
    assert len(sessions) == 4


def test_client_with_most_sessions_loses_one() -> None:
    sessions = OpenSessions(LIMITS)
    modest = make_session("ipv4:10.0.0.7:1", heard=0)
    greedy = [make_session(f"ipv4:10.0.0.7:{2 + number // 3}", heard=number) for number in range(5)]
    for each in (modest, *greedy):
        sessions.add(each)
    sessions.add(make_session("ipv4:10.0.0.7:9"))
    assert modest.id in sessions
    assert greedy[0].id not in sessions
    assert len(sessions) == LIMITS.per_owner


def test_no_owner_can_use_all_sessions() -> None:
    sessions = OpenSessions(LIMITS)
    for number in range(40):
        sessions.add(make_session(f"ipv4:10.0.0.{number % 2}:{number}", heard=number))
    assert len(sessions) == LIMITS.total
    newcomer = make_session("ipv4:10.0.0.9:1", heard=99)
    sessions.add(newcomer)
    assert newcomer.id in sessions
    assert len(sessions) == LIMITS.total
    for each in sessions.all():
        sessions.remove(each)
    assert not sessions._by_client
    assert not sessions._per_owner

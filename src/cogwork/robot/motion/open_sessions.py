"""The open sessions: enforces their limits, and evicts idle sessions for new ones."""

from __future__ import annotations

import ipaddress
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from cogwork.core.errors import CogworkError
from cogwork.graph.name import ResourceName
from cogwork.net.peer import host_of

LOOPBACK = "localhost"
"""The owner of sessions from the machine's own computer, if no login is required."""

_LABEL_LENGTH = 8
"""Length of the id's first group, which logs show. The rest of the id, 90 random bits, is
secret."""


class TooManySessions(CogworkError):
    status = "RESOURCE_EXHAUSTED"


@dataclass(frozen=True, slots=True)
class SessionLimits:
    total: int = 4096
    per_owner: int = 2048
    """Maximum sessions of one owner. High, because a thousand programs may run on one computer."""
    per_client: int = 8


@dataclass(eq=False, slots=True)
class Session:
    owner: str
    peer: str
    """The connection that started the session."""
    last_heard: float
    """Time of the last heartbeat."""
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    moved: set[ResourceName] = field(default_factory=set)
    """Resources that this session was the last to move, unless they were stopped since."""

    @property
    def label(self) -> str:
        """Label of the session for logs. It does not reveal the id, which is the client's
        secret."""
        return self.id[:_LABEL_LENGTH]


class OpenSessions:
    """The open sessions.

    When a limit is reached, an idle session is evicted. A flood of sessions cannot lock out other
    clients, and never stops a motion.
    """

    def __init__(self, limits: SessionLimits | None = None) -> None:
        self._limits = limits or SessionLimits()
        self._by_id: dict[str, Session] = {}
        self._by_client: dict[str, dict[str, Session]] = {}
        self._per_owner = Counter[str]()

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._by_id

    def all(self) -> list[Session]:
        return list(self._by_id.values())

    def find(self, session_id: str, owner: str) -> Session | None:
        session = self._by_id.get(session_id)
        return session if session is not None and session.owner == owner else None

    def add(self, session: Session) -> None:
        """Add a session. Raise TooManySessions if a limit is reached and no session is idle."""
        self._enforce_limits(session)
        self._by_id[session.id] = session
        self._by_client.setdefault(session.peer, {})[session.id] = session
        self._per_owner[session.owner] += 1

    def remove(self, session: Session) -> None:
        del self._by_id[session.id]
        of_client = self._by_client[session.peer]
        del of_client[session.id]
        if not of_client:
            del self._by_client[session.peer]
        self._per_owner[session.owner] -= 1
        if not self._per_owner[session.owner]:
            del self._per_owner[session.owner]

    def _enforce_limits(self, new: Session) -> None:
        limits, sessions = self._limits, self._by_id.values()
        of_client = self._by_client.get(new.peer, {})
        if len(of_client) >= limits.per_client:
            self._evict(of_client.values(), limits.per_client)
        elif self._per_owner[new.owner] >= limits.per_owner:
            of_owner = (each for each in sessions if each.owner == new.owner)
            self._evict(of_owner, limits.per_owner)
        elif len(self._by_id) >= limits.total:
            self._evict(sessions, limits.total)

    def _evict(self, candidates: Iterable[Session], limit: int) -> None:
        """Remove one of the sessions that move nothing: of the client with the most sessions, the
        session whose last heartbeat is the oldest."""
        idle = [session for session in candidates if not session.moved]
        if not idle:
            raise TooManySessions(
                f"too many concurrent sessions: all {limit} sessions are moving something; "
                "close some clients"
            )
        self.remove(min(idle, key=lambda each: (-len(self._by_client[each.peer]), each.last_heard)))


def owner_of(peer: str) -> str:
    """Return the owner of a session without authentication: the client's host.

    The full address would differ between heartbeats and calls: the SDK sends them over different
    connections (WebRTC and gRPC), even from different loopback addresses.
    """
    host = host_of(peer)
    try:
        address = ipaddress.ip_address(host.partition(":")[2].strip("[]"))
    except ValueError:
        return host
    return LOOPBACK if address.is_loopback else str(address)

"""Sessions: stops what a client moved when its heartbeats stop.

A client opens a session and sends heartbeats. Calls that set something in motion, which the public
API marks, name their session; the session of the latest such call owns the resource. A session
expires when it is silent for longer than the heartbeat window.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Container, Mapping
from typing import Any

from google.protobuf import descriptor_pool
from grpclib import GRPCError

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.graph.name import Api, ResourceName
from cogwork.robot.open_sessions import OpenSessions, Session, owner_of
from cogwork.robot.operations import current_identity
from cogwork.wire.handlers import Handler, Method, Stream
from cogwork.wire.raw_request import read_resource_name

SESSION_ID_KEY = "viam-sid"
"""Metadata key with which a call names its session."""

_REFUSAL_STATUSES = ("INVALID_ARGUMENT", "NOT_FOUND", "UNIMPLEMENTED", "FAILED_PRECONDITION")

_log = logging.getLogger("rdk.networking.session_manager")


class SessionExpired(CogworkError):
    """The session has expired. Clients match on this message to open another one."""

    status = "INVALID_ARGUMENT"

    def __init__(self) -> None:
        super().__init__("SESSION_EXPIRED")


StopResources = Callable[[Collection[ResourceName], str], Awaitable[Collection[ResourceName]]]
"""Stops those of the resources that move, ends the calls that move them with the given reason, and
returns the stopped resources."""


def session_id_of(stream: Stream) -> str | None:
    """Return the id of the session that a call names, if it names one."""
    given = stream.metadata.get(SESSION_ID_KEY)
    return given if isinstance(given, str) else None


class SessionManager:
    def __init__(
        self,
        clock: Clock,
        window: Callable[[], float],
        apis: Mapping[str, Api],
        known: Container[ResourceName],
        stop_resources: StopResources,
        resolve: Callable[[ResourceName], ResourceName] = lambda name: name,
    ) -> None:
        """`window` returns the seconds of silence after which a session expires. `apis` are the
        APIs by gRPC service. `known` are the resources that clients can move. `resolve` returns
        the full name of one that a request names."""
        self._clock = clock
        self._window = window
        self._apis = apis
        self._known = known
        self._stop_resources = stop_resources
        self.resolve = resolve
        self._open = OpenSessions()
        self._movers: dict[ResourceName, Session] = {}
        self._session_started = asyncio.Event()
        self._stop_tasks: set[asyncio.Future[Collection[ResourceName]]] = set()

    @property
    def window(self) -> float:
        return self._window()

    @property
    def count(self) -> int:
        return len(self._open)

    def all(self) -> list[Session]:
        return self._open.all()

    def start(self, peer: str, resume: str = "") -> Session:
        """Return the session to resume, or a new one if that has expired.

        Raise TooManySessions if a limit is reached and no session is idle.
        """
        owner, now = _caller_of(peer), self._clock.monotonic()
        session = self._open.find(resume, owner)
        if session is None:
            session = Session(owner, peer, now)
            self._open.add(session)
            self._session_started.set()
        session.last_heard = now
        return session

    def heartbeat(self, session_id: str, peer: str) -> None:
        self.find(session_id, peer).last_heard = self._clock.monotonic()

    def wrap(self, method: Method, handle: Handler) -> Handler:
        """Middleware that tracks which session moves which resource."""
        api = self._apis.get(method.service)
        if api is None or not sets_in_motion(method):
            return handle
        streams = method.cardinality.client_streaming

        async def wrapper(stream: Stream) -> None:
            claim = _Claim(self, session_id_of(stream), stream.peer, api)
            if streams:
                # The first message names the resource.
                stream = _TappedStream(stream, claim.acquire)
            else:
                claim.acquire(stream.request)
            try:
                await handle(stream)
            except (CogworkError, GRPCError, NotImplementedError) as error:
                if _is_refusal(error):
                    claim.release()
                raise

        return wrapper

    async def watch(self) -> None:
        """Expire sessions that are silent for too long. Run until cancelled."""
        try:
            while True:
                await self._wait_until_due()
                self._expire_silent()
        finally:
            for stopping in self._stop_tasks:
                stopping.cancel()
            await asyncio.gather(*self._stop_tasks, return_exceptions=True)

    async def _wait_until_due(self) -> None:
        if not self._open:
            self._session_started.clear()
            await self._session_started.wait()
        earliest = min(session.last_heard for session in self._open.all())
        # Wake up often: a new configuration may shorten the window.
        left = earliest + self._window() - self._clock.monotonic()
        await self._clock.sleep(max(0.001, min(left, 0.5)))

    def _expire_silent(self) -> None:
        latest = self._clock.monotonic() - self._window()
        for session in [each for each in self._open.all() if each.last_heard <= latest]:
            self._open.remove(session)
            for name in session.moved:
                del self._movers[name]
            if session.moved:
                self._stop_moved(session)

    def _stop_moved(self, session: Session) -> None:
        _log.warning(
            "session %s of %s expired: no heartbeat for %gs",
            session.id,
            session.peer,
            self._window(),
        )
        why = "stopped, because the client that moved it sent no heartbeat"
        # Not awaited: a resource that does not stop must not delay the expiry of other sessions.
        stopping = asyncio.ensure_future(self._stop_resources(sorted(session.moved), why))
        self._stop_tasks.add(stopping)
        stopping.add_done_callback(lambda done: self._on_stopped(session, done))

    def _on_stopped(
        self, session: Session, stopping: asyncio.Future[Collection[ResourceName]]
    ) -> None:
        self._stop_tasks.discard(stopping)
        if stopping.cancelled():
            return
        if (error := stopping.exception()) is not None:
            _log.error("could not stop what session %s had moved: %s", session.id, error)
        elif stopped := stopping.result():
            listed = ", ".join(name.short for name in sorted(stopped))
            _log.warning("stopped %s, which session %s had moved", listed, session.id)

    def find(self, session_id: str, peer: str) -> Session:
        """Return a session. Raise SessionExpired, also if it belongs to another owner."""
        session = self._open.find(session_id, _caller_of(peer))
        if session is None:
            raise SessionExpired
        return session

    def claim(self, session: Session | None, name: ResourceName) -> Session | None:
        """Make a session the owner of a resource, or no session. Return the previous owner."""
        before = self._movers.pop(name, None)
        if before is not None:
            before.moved.discard(name)
        if session is not None and session.id in self._open and name in self._known:
            self._movers[name] = session
            session.moved.add(name)
        return before

    def mover(self, name: ResourceName) -> Session | None:
        return self._movers.get(name)


class _Claim:
    """One call's claim to a resource, released if the call is refused and so moved nothing."""

    def __init__(
        self, sessions: SessionManager, session_id: str | None, peer: str, api: Api
    ) -> None:
        self._sessions = sessions
        self._session_id = session_id
        self._peer = peer
        self._api = api
        self._acquired: tuple[ResourceName, Session | None, Session | None] | None = None

    def acquire(self, request: Any) -> None:
        """Claim the resource that the request names.

        Raise SessionExpired, also if the session ended between the call and its first message.
        """
        session = (
            self._sessions.find(self._session_id, self._peer)
            if self._session_id is not None
            else None
        )
        short = read_resource_name(request) if isinstance(request, bytes) else request.name
        name = self._sessions.resolve(ResourceName.from_short(self._api, short or ""))
        self._acquired = (name, session, self._sessions.claim(session, name))

    def release(self) -> None:
        if self._acquired is None:
            return
        name, session, before = self._acquired
        if self._sessions.mover(name) is session:
            self._sessions.claim(before, name)


class _TappedStream:
    """A stream that passes its first message to a callback as well."""

    def __init__(self, stream: Stream, on_first_message: Callable[[Any], None]) -> None:
        self._stream = stream
        self._on_first_message: Callable[[Any], None] | None = on_first_message

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def recv_message(self) -> Any:
        message = await self._stream.recv_message()
        if self._on_first_message is not None and message is not None:
            self._on_first_message(message)
            self._on_first_message = None
        return message

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.recv_message()) is not None:
            yield message


def _caller_of(peer: str) -> str:
    """Return who owns the sessions that the current call starts and uses."""
    identity = current_identity()
    return str(identity) if identity is not None else owner_of(peer)


def _is_refusal(error: Exception) -> bool:
    """Return whether the call was rejected before it did anything."""
    status = getattr(error, "status", "UNIMPLEMENTED")
    return (status if isinstance(status, str) else status.name) in _REFUSAL_STATUSES


def sets_in_motion(method: Method) -> bool:
    """Return whether the public API marks a method as one that sets something in motion."""
    if method.is_unregistered:
        return False
    from viam.gen.common.v1.common_pb2 import safety_heartbeat_monitored

    pool: Any = descriptor_pool.Default()  # type: ignore[no-untyped-call]
    descriptor = pool.FindMethodByName(method.path.lstrip("/").replace("/", "."))
    return bool(descriptor.GetOptions().Extensions[safety_heartbeat_monitored])

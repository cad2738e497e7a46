"""Sessions: if a client's heartbeats stop, the machine stops everything that the client moved.

A client opens a session and sends heartbeats. A call that causes motion names its session, which
then owns the resource until the resource is stopped or another session moves it. A session expires
when no heartbeat arrives within the heartbeat window.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from grpclib import GRPCError

from cogwork.auth.identity import Identity
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.graph.name import Api, ResourceName
from cogwork.robot.middleware.access import module_of
from cogwork.robot.middleware.operations import current_identity
from cogwork.robot.motion.claims import Claim, MotionClaims, MotionPlan, describe_mover
from cogwork.robot.motion.moving_methods import (
    MOTION_API,
    is_motion_service_move,
    read_component,
    read_transforms,
    sets_in_motion,
)
from cogwork.robot.motion.open_sessions import OpenSessions, Session, owner_of
from cogwork.robot.motion.session_stopper import SessionStopper, StopMotion
from cogwork.wire.messages.raw_request import read_resource_name
from cogwork.wire.table.handlers import Handler, Method, Stream

SESSION_ID_KEY = "viam-sid"
"""Metadata key with which a call names its session."""

_STOP_METHODS = ("/Stop", "/StopPlan")
_REFUSAL_STATUSES = ("INVALID_ARGUMENT", "NOT_FOUND", "UNIMPLEMENTED", "FAILED_PRECONDITION")

_log = logging.getLogger("rdk.networking.session_manager")


class SessionExpired(CogworkError):
    """The session has expired. Clients recognize this message and open a new session."""

    status = "INVALID_ARGUMENT"

    def __init__(self) -> None:
        super().__init__("SESSION_EXPIRED")


FindMoved = Callable[[MotionPlan, Iterable[Any]], ResourceName]
"""A function that returns the resource that a plan moves, given the additional frames of the
call."""


def session_id_of(stream: Stream) -> str | None:
    """Return the session id in the metadata of a call; None if the call names no session."""
    given = stream.metadata.get(SESSION_ID_KEY)
    return given if isinstance(given, str) else None


class MotionTarget(NamedTuple):
    """The resource that a call moves or stops, and the plan."""

    name: ResourceName
    plan: MotionPlan | None = None
    """The plan, if a motion service moves the resource; None otherwise."""


class SessionManager:
    def __init__(
        self,
        clock: Clock,
        window: Callable[[], float],
        apis: Mapping[str, Api],
        known: Container[ResourceName],
        claims: MotionClaims,
        stop_motion: StopMotion,
        resolve: Callable[[ResourceName], ResourceName] = lambda name: name,
        find_moved: FindMoved = lambda plan, _: plan.service,
        is_live: Callable[[ResourceName], bool] = lambda _: True,
    ) -> None:
        """Create a manager without sessions.

        `window` returns the seconds without a heartbeat after which a session expires. `apis` are
        the APIs by gRPC service. `known` are the resources that clients can move. `resolve` returns
        the full name of a resource in a request. `is_live` returns whether a resource is built.
        """
        self._clock = clock
        self._window = window
        self._apis = apis
        self._known = known
        self.resolve = resolve
        self.find_moved = find_moved
        self.claims = claims
        self._open = OpenSessions()
        self._session_started = asyncio.Event()
        self._stopper = SessionStopper(clock, self.claims, known, is_live, stop_motion)

    @property
    def window(self) -> float:
        return self._window()

    @property
    def count(self) -> int:
        return len(self._open)

    def all(self) -> list[Session]:
        return self._open.all()

    def start(self, peer: str, resume: str = "") -> Session:
        """Return the session with the id `resume`, or a new session if it has expired.

        Raise TooManySessions if a limit is reached and no session is idle.
        """
        owner, now = owner_of_caller(peer, current_identity()), self._clock.monotonic()
        session = self._open.find(resume, owner)
        if session is None:
            session = Session(owner, peer, now)
            self._open.add(session)
            self._session_started.set()
        session.last_heard = now
        return session

    def end(self, session_id: str, owner: str) -> None:
        """End an owner's session, if it exists, and stop everything that it moved."""
        session = self._open.find(session_id, owner)
        if session is not None:
            self._end(
                session,
                f"session {session.id} of {session.peer} was ended by its client",
                "stopped, because the page that moved it was hidden or closed",
            )

    def heartbeat(self, session_id: str, peer: str) -> None:
        self.find(session_id, peer).last_heard = self._clock.monotonic()

    def wrap(self, method: Method, handle: Handler) -> Handler:
        """Return a handler that records the session that moves or stops the resource."""
        api = self._apis.get(method.service)
        if api is None or method.is_unregistered:
            return handle
        if is_motion_service_move(method) or sets_in_motion(method):
            return self._wrap_move(method, api, handle)
        if method.path.endswith(_STOP_METHODS):
            return self._wrap_stop(method, api, handle)
        return handle

    def _wrap_move(self, method: Method, api: Api, handle: Handler) -> Handler:
        streams = method.cardinality.client_streaming

        async def wrapper(stream: Stream) -> None:
            attempt = _ClaimAttempt(self, stream)

            def acquire(request: Any) -> None:
                attempt.acquire(lambda: self.read_target(method, api, request))

            with attempt.undone_if_refused():
                if streams:
                    # The first message names the resource, so wait for it.
                    stream = _TappedStream(stream, acquire)
                else:
                    acquire(stream.request)
                await handle(stream)

        return wrapper

    @contextlib.contextmanager
    def claimed(self, name: ResourceName, stream: Stream) -> Iterator[None]:
        """Claim a resource for a call that moves it, and undo the claim if the call is refused.

        Use this for methods that only the provider of the resource knows. Raise SessionExpired.
        """
        attempt = _ClaimAttempt(self, stream)
        attempt.acquire(lambda: MotionTarget(name))
        with attempt.undone_if_refused():
            yield

    def _wrap_stop(self, method: Method, api: Api, handle: Handler) -> Handler:
        """Return a handler that releases the claims of stopped resources.

        When the session that moved such a resource expires, the resource is not stopped again:
        another client, or a service such as navigation, may move it by then.
        """

        async def wrapper(stream: Stream) -> None:
            name, plan = self.read_target(method, api, stream.request)
            if plan is not None:
                stopped = self.claims.find_plan(plan)
            else:
                claim = self.claims.find(name)
                stopped = {name: claim} if claim is not None else {}
            await handle(stream)
            for each, claim in stopped.items():
                self.claims.release(each, claim)

        return wrapper

    def read_target(self, method: Method, api: Api, request: Any) -> MotionTarget:
        """Return the target of a call that moves or stops something."""
        short = read_resource_name(request) if isinstance(request, bytes) else request.name
        name = self.resolve(ResourceName.from_short(api, short or ""))
        if api != MOTION_API:
            return MotionTarget(name)
        plan = MotionPlan(name, read_component(method, request))
        return MotionTarget(self.find_moved(plan, read_transforms(method, request)), plan)

    async def watch(self) -> None:
        """Expire sessions without heartbeats. Run until cancelled."""
        try:
            while True:
                await self._wait_until_due()
                self._expire_silent()
        finally:
            await self._stopper.aclose()

    async def _wait_until_due(self) -> None:
        if not self._open:
            self._session_started.clear()
            await self._session_started.wait()
        earliest = min(session.last_heard for session in self._open.all())
        # Sleep only briefly: a new configuration may shorten the window.
        left = earliest + self._window() - self._clock.monotonic()
        await self._clock.sleep(max(0.001, min(left, 0.5)))

    def _expire_silent(self) -> None:
        window = self._window()
        latest = self._clock.monotonic() - window
        for session in [each for each in self._open.all() if each.last_heard <= latest]:
            self._end(
                session,
                f"session {session.id} of {session.peer} expired: no heartbeat for {window:g}s",
                "stopped, because the client that moved it sent no heartbeat",
            )

    def _end(self, session: Session, message: str, why: str) -> None:
        """End a session and stop everything that it moved. Log `message`, and end its calls with
        `why`."""
        self._open.remove(session)
        if session.moved:
            _log.warning("%s", message)
            self._stopper.stop(session, why)

    def find(self, session_id: str, peer: str) -> Session:
        """Return a session. Raise SessionExpired if it has ended or belongs to another owner."""
        session = self._open.find(session_id, owner_of_caller(peer, current_identity()))
        if session is None:
            raise SessionExpired
        return session

    def claim(self, name: ResourceName, claim: Claim) -> Claim | None:
        """Record the latest caller that moves a resource. Return the previous claim."""
        is_open = claim.session is None or claim.session.id in self._open
        return self.claims.take(name, claim if is_open and name in self._known else None)

    def restore(self, name: ResourceName, claim: Claim) -> None:
        """Restore the claim that a refused call has replaced.

        If the claim's session has ended meanwhile, stop the resource: it still moves for that
        session's client.
        """
        if name not in self._known:
            return
        self.claims.take(name, claim)
        if claim.session is not None and claim.session.id not in self._open:
            self._stopper.stop(
                claim.session, "stopped, because the session that moved it has ended"
            )

    def take_over(self, name: ResourceName, mover: str) -> None:
        """Record that a part of the machine moves a resource. The end of a session does not stop
        this motion."""
        self.claim(name, Claim(mover))


class _ClaimAttempt:
    """A call's claim to a resource. If the call is refused, it moves nothing, so the claim is
    undone."""

    def __init__(self, sessions: SessionManager, stream: Stream) -> None:
        self._sessions = sessions
        self._session_id = session_id_of(stream)
        self._peer = stream.peer
        self._acquired: tuple[ResourceName, Claim, Claim | None] | None = None

    def acquire(self, read_target: Callable[[], MotionTarget]) -> None:
        """Claim the target of the call, which `read_target` returns.

        Raise SessionExpired if the session has ended, even if that was after the call began.
        """
        sessions, session = self._sessions, None
        if self._session_id is not None:
            session = sessions.find(self._session_id, self._peer)
        name, plan = read_target()
        if session is None and self._is_part_of_plan(name):
            return
        claim = Claim(describe_mover(self._peer, current_identity()), session, plan)
        self._acquired = (name, claim, sessions.claim(name, claim))

    @contextlib.contextmanager
    def undone_if_refused(self) -> Iterator[None]:
        """Run the call, and undo the claim if it is refused."""
        try:
            yield
        except (CogworkError, GRPCError, NotImplementedError) as error:
            if _is_refusal(error):
                self.undo()
            raise

    def undo(self) -> None:
        if self._acquired is None:
            return
        name, claim, before = self._acquired
        if self._sessions.claims.find(name) is claim:
            self._sessions.claims.take(name, None)
            if before is not None:
                self._sessions.restore(name, before)

    def _is_part_of_plan(self, name: ResourceName) -> bool:
        """Return whether a module's motion service moves the resource for a client.

        If so, the claim of the plan must stay, because the module does not know the client's
        session.
        """
        claim = self._sessions.claims.find(name)
        return bool(module_of(self._peer)) and claim is not None and claim.plan is not None


class _TappedStream:
    """A stream that also passes its first message to a callback."""

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


def owner_of_caller(peer: str, identity: Identity | None) -> str:
    """Return the owner of the sessions that a caller starts and uses."""
    return str(identity) if identity is not None else owner_of(peer)


def _is_refusal(error: Exception) -> bool:
    """Return whether the call was rejected before it had any effect."""
    status = getattr(error, "status", "UNIMPLEMENTED")
    return (status if isinstance(status, str) else status.name) in _REFUSAL_STATUSES

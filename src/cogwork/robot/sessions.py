"""Who moves what: clients that have to be heard of, or what they moved last is stopped.

A client opens a session and sends heartbeats. Calls that set something in motion, which are marked
in the public API, name the session; the newest of them has the resource. A session that falls
silent for longer than the window is over.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Container, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import descriptor_pool
from grpclib import GRPCError

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.graph.name import Api, ResourceName
from cogwork.wire.foreign import name_in
from cogwork.wire.handlers import Handle, Method, Stream

ID = "viam-sid"
"""The metadata by which a call names its session."""
MOST = 1024

_REFUSALS = ("INVALID_ARGUMENT", "NOT_FOUND", "UNIMPLEMENTED", "FAILED_PRECONDITION")

_log = logging.getLogger("rdk.networking.session_manager")


class Expired(CogworkError):
    """The words are what clients match on to open another session."""

    status = "INVALID_ARGUMENT"

    def __init__(self) -> None:
        super().__init__("SESSION_EXPIRED")


class TooManySessions(CogworkError):
    status = "RESOURCE_EXHAUSTED"


Halt = Callable[[Collection[ResourceName], str], Awaitable[Collection[ResourceName]]]
"""Stops what moves of these resources, and tells whoever moves it why. Returns what it was."""


def owner_of(_: Stream) -> str:
    """The entity that logged in: a client sends its heartbeats by another connection than its
    calls. Until there is a login, everybody is the same one."""
    return ""


@dataclass(eq=False, slots=True)
class Session:
    owner: str
    peer: str
    heard: float
    """When it was last heard of."""
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    moved: set[ResourceName] = field(default_factory=set)
    """The resources that it was the last to move."""


class Sessions:
    def __init__(
        self,
        clock: Clock,
        window: Callable[[], float],
        apis: Mapping[str, Api],
        known: Container[ResourceName],
        halt: Halt,
    ) -> None:
        """`window`: seconds of silence that end a session. `apis`: by the names of their services.
        `known`: what a client can move at all."""
        self._clock = clock
        self._window = window
        self._apis = apis
        self._known = known
        self._halt = halt
        self._open: dict[str, Session] = {}
        self._movers: dict[ResourceName, Session] = {}
        self._begun = asyncio.Event()
        self._halting: set[asyncio.Future[Collection[ResourceName]]] = set()

    @property
    def window(self) -> float:
        return self._window()

    def all(self) -> list[Session]:
        return list(self._open.values())

    def start(self, owner: str, peer: str, resume: str = "") -> Session:
        """The one to resume, if it is not over yet; otherwise another."""
        session = self._open.get(resume)
        if session is None or session.owner != owner:
            if len(self._open) >= MOST:
                raise TooManySessions(
                    f"too many concurrent sessions: {MOST} are open; close some clients"
                )
            session = Session(owner, peer, self._clock.monotonic())
            self._open[session.id] = session
            self._begun.set()
        session.heard = self._clock.monotonic()
        return session

    def heartbeat(self, session_id: str, owner: str) -> None:
        self.find(session_id, owner).heard = self._clock.monotonic()

    def around(self, method: Method, handle: Handle) -> Handle:
        """A layer around the handler table."""
        api = self._apis.get(method.service)
        if api is None or not sets_in_motion(method):
            return handle
        streams = method.cardinality.client_streaming

        async def monitored(stream: Stream) -> None:
            given = stream.metadata.get(ID)
            claim = _Claim(self, given if isinstance(given, str) else None, owner_of(stream), api)
            if streams:
                # Its name comes with the first of the messages.
                stream = _Overheard(stream, claim.make)
            else:
                claim.make(stream.request)
            try:
                await handle(stream)
            except (CogworkError, GRPCError, NotImplementedError) as error:
                if _refuses(error):
                    claim.give_back()
                raise

        return monitored

    async def watch(self) -> None:
        """End those that are silent for too long. Runs until cancelled."""
        try:
            while True:
                await self._until_due()
                self._end_silent()
        finally:
            for halting in self._halting:
                halting.cancel()
            await asyncio.gather(*self._halting, return_exceptions=True)

    async def _until_due(self) -> None:
        if not self._open:
            self._begun.clear()
            await self._begun.wait()
        earliest = min(session.heard for session in self._open.values())
        # Not too long at once: the window may be shortened by a new configuration.
        left = earliest + self._window() - self._clock.monotonic()
        await self._clock.sleep(max(0.001, min(left, 0.5)))

    def _end_silent(self) -> None:
        latest = self._clock.monotonic() - self._window()
        for session in [each for each in self._open.values() if each.heard <= latest]:
            del self._open[session.id]
            for name in session.moved:
                del self._movers[name]
            if session.moved:
                self._stop(session)

    def _stop(self, session: Session) -> None:
        _log.warning(
            "session %s of %s is over: nothing was heard of it for %gs",
            session.id,
            session.peer,
            self._window(),
        )
        why = "stopped, because nothing was heard of the client that moved it"
        # Not awaited here: one that does not stop must not keep another from being stopped.
        halting = asyncio.ensure_future(self._halt(sorted(session.moved), why))
        self._halting.add(halting)
        halting.add_done_callback(lambda halted: self._halted(session, halted))

    def _halted(self, session: Session, halting: asyncio.Future[Collection[ResourceName]]) -> None:
        self._halting.discard(halting)
        if halting.cancelled():
            return
        if (error := halting.exception()) is not None:
            _log.error("what a lost client moved was not stopped: %s", error)
        elif stopped := halting.result():
            listed = ", ".join(name.short for name in sorted(stopped))
            _log.warning("stopped %s, which session %s had moved", listed, session.id)

    def find(self, session_id: str, owner: str) -> Session:
        session = self._open.get(session_id)
        if session is None or session.owner != owner:
            raise Expired
        return session

    def claim(self, session: Session | None, name: ResourceName) -> Session | None:
        """The last to move it is who it depends on, if there is a session at all. Returns who that
        was before."""
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
    """What one call takes over, and gives back if it is refused: it has moved nothing then."""

    def __init__(self, sessions: Sessions, session_id: str | None, owner: str, api: Api) -> None:
        self._sessions = sessions
        self._session_id = session_id
        self._owner = owner
        self._api = api
        self._taken: tuple[ResourceName, Session | None, Session | None] | None = None

    def make(self, request: Any) -> None:
        """Raises Expired: also a session that ended between the call and its first message."""
        session = (
            self._sessions.find(self._session_id, self._owner)
            if self._session_id is not None
            else None
        )
        short = name_in(request) if isinstance(request, bytes) else request.name
        name = ResourceName.of(self._api, short or "")
        self._taken = (name, session, self._sessions.claim(session, name))

    def give_back(self) -> None:
        if self._taken is None:
            return
        name, session, before = self._taken
        if self._sessions.mover(name) is session:
            self._sessions.claim(before, name)


class _Overheard:
    """A stream whose first message is shown to somebody on its way."""

    def __init__(self, stream: Stream, show: Callable[[Any], None]) -> None:
        self._stream = stream
        self._show: Callable[[Any], None] | None = show

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def recv_message(self) -> Any:
        message = await self._stream.recv_message()
        if self._show is not None and message is not None:
            self._show(message)
            self._show = None
        return message

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.recv_message()) is not None:
            yield message


def _refuses(error: Exception) -> bool:
    """Whether the call was not carried out at all, rather than ended in the middle."""
    status = getattr(error, "status", "UNIMPLEMENTED")
    return (status if isinstance(status, str) else status.name) in _REFUSALS


def sets_in_motion(method: Method) -> bool:
    """As the public API marks its methods; of others it says nothing."""
    if method.foreign:
        return False
    from viam.gen.common.v1.common_pb2 import safety_heartbeat_monitored

    pool: Any = descriptor_pool.Default()  # type: ignore[no-untyped-call]
    described = pool.FindMethodByName(method.path.lstrip("/").replace("/", "."))
    return bool(described.GetOptions().Extensions[safety_heartbeat_monitored])

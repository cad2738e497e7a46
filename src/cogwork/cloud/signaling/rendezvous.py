"""Connects clients with the machines that they call. The machines wait for calls."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from viam.gen.proto.rpc.webrtc.v1.signaling_pb2 import (
    AnswerRequestInitStage,
    AnswerResponse,
    CallUpdateRequest,
)

from cogwork.cloud.identity.access import CloudRole
from cogwork.core.errors import CogworkError, NotFound
from cogwork.core.limits.fair_places import Holder, choose_displaced, choose_next

T = TypeVar("T")

CALL_TIMEOUT: Final = 10.0
"""Seconds from an offer to the last message of the machine."""
_MAX_CALLERS: Final = 50
"""Maximum number of callers that wait for one machine."""
_MAX_MESSAGES: Final = 256
"""Maximum number of unread messages from one side."""


class HostOffline(CogworkError):
    """The machine is not connected to the cloud."""

    status = "NOT_FOUND"

    def __init__(self, host: str) -> None:
        super().__init__(
            f"host {host} appears to be offline; check that the machine runs and reaches the cloud"
        )


class TooManyMessages(CogworkError):
    """One side of a call sends more messages than the other reads."""

    status = "RESOURCE_EXHAUSTED"


class TooManyCallers(CogworkError):
    """More clients call a machine than it can answer."""

    status = "UNAVAILABLE"


@dataclass(eq=False, slots=True)
class SignalingCall:
    """A call of a client to a machine, with the messages of both sides."""

    offer: AnswerRequestInitStage
    caller: Holder
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    answers: asyncio.Queue[AnswerResponse | TooManyCallers] = field(
        default_factory=lambda: asyncio.Queue(_MAX_MESSAGES)
    )
    """Messages of the machine, or the error if another client has replaced this call."""
    updates: asyncio.Queue[CallUpdateRequest] = field(
        default_factory=lambda: asyncio.Queue(_MAX_MESSAGES)
    )

    def add_answer(self, answer: AnswerResponse) -> None:
        _put(self.answers, answer)

    def add_update(self, update: CallUpdateRequest) -> None:
        _put(self.updates, update)


@dataclass(eq=False, slots=True)
class _Machine:
    """The streams of one part, and the calls to the part."""

    idle: list[asyncio.Future[SignalingCall]] = field(default_factory=list)
    """Streams that wait for a call, the longest waiting first."""
    streams: int = 0
    """Number of streams that wait for a call or answer one."""
    waiting: dict[SignalingCall, Holder] = field(default_factory=dict)
    """Calls that no stream has accepted yet, the oldest first."""
    served: Counter[str] = field(default_factory=Counter)
    """Number of calls that are being answered, by the identity of the caller."""

    def match(self) -> None:
        """Assign waiting calls to idle streams."""
        while self.idle:
            # Keep the last idle stream for owners: a machine of another vendor has two streams,
            # and a call that never connects occupies one of them for ten seconds.
            is_last = len(self.idle) == 1 < self.streams
            found = {
                call: holder
                for call, holder in self.waiting.items()
                if holder.rank >= CloudRole.OWNER or not is_last
            }
            call = choose_next(found, self.served)
            if call is None:
                return
            del self.waiting[call]
            self.served[call.caller.identity] += 1
            self.idle.pop(0).set_result(call)


class Rendezvous:
    """All machines and calls of this process. Machines are identified by the IDs of their parts."""

    def __init__(self) -> None:
        self._machines: dict[str, _Machine] = {}
        """Machines with a stream or a call, by part ID."""
        self._calls: dict[str, SignalingCall] = {}

    def is_online(self, part_id: str) -> bool:
        machine = self._machines.get(part_id)
        return machine is not None and machine.streams > 0

    @contextlib.contextmanager
    def wait_at(self, part_id: str) -> Iterator[asyncio.Future[SignalingCall]]:
        """Yield a future for the next call to a part. The block answers the call."""
        stream: asyncio.Future[SignalingCall] = asyncio.get_running_loop().create_future()
        machine = self._machines.setdefault(part_id, _Machine())
        machine.streams += 1
        machine.idle.append(stream)
        machine.match()
        try:
            yield stream
        finally:
            machine.streams -= 1
            if stream.done():
                call = stream.result()
                self._calls.pop(call.id, None)
                machine.served[call.caller.identity] -= 1
            else:
                machine.idle.remove(stream)
                stream.cancel()
            machine.match()
            self._forget_unused(part_id)

    @contextlib.contextmanager
    def call(
        self, part_id: str, offer: AnswerRequestInitStage, caller: Holder
    ) -> Iterator[SignalingCall]:
        """Yield a call to a part that is online. The block reads the answers.

        Updates of the client are accepted until the machine ends its side.
        """
        machine = self._machines[part_id]
        if len(machine.waiting) >= _MAX_CALLERS:
            displaced = choose_displaced(machine.waiting, caller)
            if displaced is None:
                raise _too_many_callers()
            del machine.waiting[displaced], self._calls[displaced.id]
            displaced.answers.put_nowait(_too_many_callers())
        call = SignalingCall(offer, caller)
        self._calls[call.id] = call
        machine.waiting[call] = caller
        machine.match()
        try:
            yield call
        finally:
            if call in machine.waiting:
                del machine.waiting[call], self._calls[call.id]
                self._forget_unused(part_id)

    def find(self, call_id: str) -> SignalingCall:
        try:
            return self._calls[call_id]
        except KeyError:
            raise NotFound(f'there is no call "{call_id[:64]}"; it may have ended') from None

    def _forget_unused(self, part_id: str) -> None:
        machine = self._machines[part_id]
        if not machine.streams and not machine.waiting:
            del self._machines[part_id]


def _too_many_callers() -> TooManyCallers:
    return TooManyCallers("too many clients wait for this machine; try again later")


def _put(queue: asyncio.Queue[T], message: T) -> None:
    try:
        queue.put_nowait(message)
    except asyncio.QueueFull:
        raise TooManyMessages(
            f"the other side has not read {queue.maxsize} messages of this call; call again"
        ) from None

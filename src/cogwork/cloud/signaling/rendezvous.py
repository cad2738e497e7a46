"""Where clients that call a machine meet the machine that waits for them."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from viam.gen.proto.rpc.webrtc.v1.signaling_pb2 import (
    AnswerRequestInitStage,
    AnswerResponse,
    CallUpdateRequest,
)

from cogwork.core.errors import CogworkError, NotFound

T = TypeVar("T")

CALL_TIMEOUT: Final = 10.0
"""Seconds from an offer to the last message of the machine."""
_MAX_CALLERS: Final = 50
"""Callers that wait for one machine."""
_MAX_MESSAGES: Final = 256
"""Messages of one side that the other has not read."""


class HostOffline(CogworkError):
    """The machine is not connected to the cloud."""

    status = "NOT_FOUND"

    def __init__(self, host: str) -> None:
        super().__init__(
            f"host {host} appears to be offline; check that the machine runs and reaches the cloud"
        )


class TooManyMessages(CogworkError):
    """One side of a call sends more than the other reads."""

    status = "RESOURCE_EXHAUSTED"


class TooManyCallers(CogworkError):
    """More clients call a machine than it can answer."""

    status = "UNAVAILABLE"


@dataclass(eq=False, slots=True)
class SignalingCall:
    """A call of a client to a machine, with what the two have sent."""

    offer: AnswerRequestInitStage
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    answers: asyncio.Queue[AnswerResponse] = field(
        default_factory=lambda: asyncio.Queue(_MAX_MESSAGES)
    )
    updates: asyncio.Queue[CallUpdateRequest] = field(
        default_factory=lambda: asyncio.Queue(_MAX_MESSAGES)
    )

    def add_answer(self, answer: AnswerResponse) -> None:
        _put(self.answers, answer)

    def add_update(self, update: CallUpdateRequest) -> None:
        _put(self.updates, update)


class Rendezvous:
    """In one process."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[asyncio.Future[SignalingCall]]] = defaultdict(list)
        """The streams that wait for a call, by host, the longest waiting first."""
        self._connected: dict[str, int] = defaultdict(int)
        """Streams of each host, waiting or busy."""
        self._callers: dict[str, list[SignalingCall]] = defaultdict(list)
        """Calls that no machine has taken yet, by host."""
        self._calls: dict[str, SignalingCall] = {}

    def is_online(self, host: str) -> bool:
        return host in self._connected

    @contextlib.contextmanager
    def wait_at(self, hosts: Sequence[str]) -> Iterator[asyncio.Future[SignalingCall]]:
        """Wait for a call to one of the hosts: the future has it. The block answers it."""
        waiting: asyncio.Future[SignalingCall] = asyncio.get_running_loop().create_future()
        for host in hosts:
            self._connected[host] += 1
            self._waiting[host].append(waiting)
        try:
            self._match(hosts)
            yield waiting
        finally:
            if waiting.done():
                self._calls.pop(waiting.result().id, None)
            waiting.cancel()
            for host in hosts:
                self._waiting[host].remove(waiting)
                self._connected[host] -= 1
                if not self._connected[host]:
                    del self._connected[host], self._waiting[host]

    @contextlib.contextmanager
    def call(self, host: str, offer: AnswerRequestInitStage) -> Iterator[SignalingCall]:
        """Call a host. The block reads its answers.

        The client's updates are accepted until the machine ends its side.
        """
        if not self.is_online(host):
            raise HostOffline(host)
        callers = self._callers[host]
        if len(callers) >= _MAX_CALLERS:
            raise TooManyCallers(f"too many clients wait for {host}; try again later")
        made = SignalingCall(offer)
        self._calls[made.id] = made
        callers.append(made)
        try:
            self._match([host])
            yield made
        finally:
            if made in callers:
                callers.remove(made)
                del self._calls[made.id]
            if not callers:
                self._callers.pop(host, None)

    def find(self, call_id: str) -> SignalingCall:
        try:
            return self._calls[call_id]
        except KeyError:
            raise NotFound(f'there is no call "{call_id[:64]}"; it has ended') from None

    def _match(self, hosts: Sequence[str]) -> None:
        """Give calls to streams that wait for them."""
        for host in hosts:
            callers = self._callers.get(host, [])
            for stream in self._waiting.get(host, ()):
                if callers and not stream.done():
                    stream.set_result(callers.pop(0))


def _put(queue: asyncio.Queue[T], message: T) -> None:
    try:
        queue.put_nowait(message)
    except asyncio.QueueFull:
        raise TooManyMessages(
            f"the other side has not read {queue.maxsize} messages of this call; call again"
        ) from None

"""Detects problems of a part's connection: a wrong clock, a wrong secret, or a second server."""

from __future__ import annotations

import logging
import math
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cogwork.core.clock import Clock
from cogwork.core.clock_offset import describe_clock_offset
from cogwork.net.peer import host_of
from cogwork.wire.messages.follow_method import HOST_METADATA, INSTANCE_METADATA
from cogwork.wire.table.handlers import Stream

_MAX_PARTS: Final = 100_000
_MAX_LENGTH: Final = 64
_MAX_INSTANCES: Final = 8
"""Maximum number of instances of a part to track. The least recently seen one is dropped."""
_IN_FLIGHT: Final = 5.0
"""For this many seconds after an instance has started, calls of the former one may still arrive."""
_CONFLICT_SECONDS: Final = 300.0
"""Seconds to show a conflict after a call that reveals it. Machines call every 30 seconds."""
_SUSPECT_SECONDS: Final = 86_400.0
"""For this many seconds after a second server may have acted as a part, the part gets no new
secret."""
_REFUSED_SECONDS: Final = 86_400.0


_log = logging.getLogger("cloud.parts")


class Instance(NamedTuple):
    """One run of a server: each start is a new instance."""

    id: str
    host: str
    address: str


def instance_of(stream: Stream) -> Instance:
    """Return the instance that makes a call."""
    found = [stream.metadata.get(name, "") for name in (INSTANCE_METADATA, HOST_METADATA)]
    instance, host = (
        each[:_MAX_LENGTH] if isinstance(each, str) and each.isprintable() else "" for each in found
    )
    return Instance(instance, host, host_of(stream.peer).partition(":")[2])


@dataclass(slots=True)
class _Seen:
    first: float
    last: float
    host: str
    address: str


@dataclass(slots=True)
class _State:
    instances: OrderedDict[str, _Seen] = field(default_factory=OrderedDict)
    """Instances by ID, in the order of their first calls."""
    conflict: tuple[_Seen, _Seen] | None = None
    conflict_at: float = 0.0
    shown_until: float = -math.inf
    """The monotonic time until which the conflict is shown."""
    unnamed_at: float = -math.inf
    """The time of the last call without an instance ID, from another vendor's server or a thief."""
    clock_offset: float = 0.0
    refused_at: float = 0.0
    refused_from: str = ""


class PartWatch:
    """The state of all parts. Threads may read it while the event loop changes it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._states: OrderedDict[str, _State] = OrderedDict()
        self._secrets: Counter[tuple[str, str]] = Counter()
        """Number of streams that use a secret, by part and secret."""

    def note_call(self, part: str, instance: Instance) -> bool:
        """Record a call of an instance. Return whether it reveals a new conflict.

        A restarted server is a new instance, and its former instance never calls again. So if an
        earlier instance calls after a later one has started, two computers use the same
        credentials.
        """
        now, state = self._clock.monotonic(), self._find_state(part)
        if not instance.id:
            state.unnamed_at = now
            return False
        seen = state.instances.get(instance.id)
        if seen is None:
            seen = state.instances[instance.id] = _Seen(now, now, instance.host, instance.address)
            if len(state.instances) > _MAX_INSTANCES:
                del state.instances[min(state.instances, key=lambda key: state.instances[key].last)]
            return False
        seen.last = now
        later = [each for each in state.instances.values() if each.first > seen.first]
        if not later or now - later[0].first <= _IN_FLIGHT:
            return False
        was_known = self._has_conflict(part)
        state.conflict, state.conflict_at = (seen, later[-1]), now
        state.shown_until = now + _CONFLICT_SECONDS
        if not was_known:
            _log.warning("part %s has a problem: %s", part, self.describe_conflict(part))
        return not was_known

    def end_conflict(self, part: str) -> None:
        """Forget the instances of a part, because one of its secrets was deleted."""
        state = self._states.get(part)
        if state is not None:
            state.instances.clear()
            state.shown_until = -math.inf

    def note_clock(self, part: str, seconds: float) -> None:
        """Record by how many seconds the clock of a part is ahead."""
        state = self._find_state(part)
        sentence = describe_clock_offset(seconds)
        if sentence is not None and describe_clock_offset(state.clock_offset) is None:
            _log.warning("part %s has a problem: %s", part, sentence)
        state.clock_offset = seconds

    def note_refusal(self, part: str, address: str) -> None:
        """Record a failed login as this part."""
        state = self._find_state(part)
        state.refused_at, state.refused_from = self._clock.monotonic(), address

    def note_login(self, part: str, address: str) -> None:
        """Record a successful login, which clears an earlier failure at the same address."""
        state = self._states.get(part)
        if state is not None and state.refused_from == address:
            state.refused_from = ""

    @contextmanager
    def using(self, part: str, secret_id: str) -> Iterator[None]:
        """Count a stream that uses a secret, for the duration of the block."""
        key = part, secret_id
        self._secrets[key] += 1
        try:
            yield
        finally:
            self._secrets[key] -= 1
            if not self._secrets[key]:
                del self._secrets[key]

    def is_only_user(self, part: str, secret_id: str) -> bool:
        """Return whether only one server uses a secret. Only then may it get the next secret."""
        return self._secrets[part, secret_id] == 1 and not self._had_other_server(part)

    def list_notices(self, part: str) -> list[str]:
        """Return warnings for the owner of a part."""
        state = self._states.get(part)
        if state is None:
            return []
        found = []
        if (offset := describe_clock_offset(state.clock_offset)) is not None:
            found.append(offset)
        if (conflict := self.describe_conflict(part)) is not None:
            found.append(conflict)
        is_recent = self._clock.monotonic() - state.refused_at < _REFUSED_SECONDS
        if state.refused_from and is_recent:
            address = state.refused_from.partition(":")[2]
            found.append(
                f"a computer at {address} tries to log in as this part with a secret "
                "that is not valid: if it is the machine, its secret was replaced; start it with "
                f"the file that has the new one, or let it join again: cogwork fleet claim {part}"
            )
        return found

    def describe_conflict(self, part: str) -> str | None:
        if not self._has_conflict(part):
            return None
        conflict = self._states[part].conflict
        assert conflict is not None  # `_has_conflict` is True only after a conflict was recorded
        one, other = (f"{each.host or 'a computer'} at {each.address}" for each in conflict)
        return (
            f"two computers use the credentials of this part, {one} and {other}: a copied disk, or "
            "a stolen secret; stop one of them, or replace the secret, which neither of them gets: "
            f"cogwork fleet part rotate {part}"
        )

    def _had_other_server(self, part: str) -> bool:
        """Return whether a second server may have acted as this part within a day."""
        state = self._states.get(part)
        if state is None:
            return False
        since = self._clock.monotonic() - _SUSPECT_SECONDS
        return state.unnamed_at > since or (
            state.conflict is not None and state.conflict_at > since
        )

    def _has_conflict(self, part: str) -> bool:
        state = self._states.get(part)
        return state is not None and self._clock.monotonic() < state.shown_until

    def _find_state(self, part: str) -> _State:
        state = self._states.setdefault(part, _State())
        self._states.move_to_end(part)
        if len(self._states) > _MAX_PARTS:
            self._states.popitem(last=False)
        return state

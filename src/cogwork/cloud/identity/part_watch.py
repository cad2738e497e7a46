"""Notices what is wrong with how a part connects: its clock, its secret, and who else has it."""

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
"""Of a part that are remembered. The one that was not seen for longest is forgotten."""
_IN_FLIGHT: Final = 5.0
"""Seconds in which calls of a server that has been restarted may still arrive."""
_CONFLICT_SECONDS: Final = 300.0
"""How long a conflict is shown after it was last noticed. Machines call every 30 seconds."""
_SUSPECT_SECONDS: Final = 86_400.0
"""How long a part gets no new secret after another server may have acted as it."""
_REFUSED_SECONDS: Final = 86_400.0


_log = logging.getLogger("cloud.parts")


class Instance(NamedTuple):
    """A running server: each start is another one."""

    id: str
    host: str
    address: str


def instance_of(stream: Stream) -> Instance:
    """Return the server that makes a call."""
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
    """By the ID, in the order in which they were first seen."""
    conflict: tuple[_Seen, _Seen] | None = None
    conflict_at: float = 0.0
    shown_until: float = -math.inf
    """Until when the conflict is shown."""
    unnamed_at: float = -math.inf
    """When a server called that does not tell which one it is: one of another make, or a thief."""
    clock_offset: float = 0.0
    refused_at: float = 0.0
    refused_from: str = ""


class PartWatch:
    """Of one process. Threads may read it while the event loop changes it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._states: OrderedDict[str, _State] = OrderedDict()
        self._secrets: Counter[tuple[str, str]] = Counter()
        """How many streams use a secret of a part."""

    def note_call(self, part: str, instance: Instance) -> bool:
        """Note that a server has called as this part; return whether there is a conflict now.

        A restarted server is another instance, and its former one never comes back. If it does,
        two computers have the same credentials.
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
            _log.warning("part %s: %s", part, self.describe_conflict(part))
        return not was_known

    def end_conflict(self, part: str) -> None:
        """Forget who has used a secret of this part, because it was deleted."""
        state = self._states.get(part)
        if state is not None:
            state.instances.clear()
            state.shown_until = -math.inf

    def note_clock(self, part: str, seconds: float) -> None:
        """Note by how much the clock of a part is ahead."""
        state = self._find_state(part)
        sentence = describe_clock_offset(seconds)
        if sentence is not None and describe_clock_offset(state.clock_offset) is None:
            _log.warning("part %s: %s", part, sentence)
        state.clock_offset = seconds

    def note_refusal(self, part: str, address: str) -> None:
        """Note a login as this part with a secret that is not valid."""
        state = self._find_state(part)
        state.refused_at, state.refused_from = self._clock.monotonic(), address

    def note_login(self, part: str, address: str) -> None:
        """Note a login that succeeded: the computer there has the secret now."""
        state = self._states.get(part)
        if state is not None and state.refused_from == address:
            state.refused_from = ""

    @contextmanager
    def using(self, part: str, secret_id: str) -> Iterator[None]:
        """Count a stream that uses a secret while the block runs."""
        key = part, secret_id
        self._secrets[key] += 1
        try:
            yield
        finally:
            self._secrets[key] -= 1
            if not self._secrets[key]:
                del self._secrets[key]

    def is_only_user(self, part: str, secret_id: str) -> bool:
        """Return whether exactly one server uses a secret, so that it may get the next one."""
        return self._secrets[part, secret_id] == 1 and not self._had_other_server(part)

    def list_notices(self, part: str) -> list[str]:
        """Return sentences for the owner of a part."""
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
        assert conflict is not None  # there is one
        one, other = (f"{each.host or 'a computer'} at {each.address}" for each in conflict)
        return (
            f"two computers use the credentials of this part, {one} and {other}: a copied disk, or "
            "a stolen secret; stop one of them, or replace the secret, which neither of them gets: "
            f"cogwork fleet part rotate {part}"
        )

    def _had_other_server(self, part: str) -> bool:
        """Return whether another server may have acted as this part within a day."""
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

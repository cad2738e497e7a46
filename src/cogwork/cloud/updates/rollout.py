"""A staged rollout of a version: which machines get it, and when it goes on or stops.

Everything here is a function of values. A part belongs to a stage by a hash, so that the same parts
are in it whenever they ask, and stay in it in all later stages.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from cogwork.core.versions.product import Product
from cogwork.wire.messages.update_method import Outcome

MIN_REPORTS: Final = 3
"""Reports that decide something; fewer if no more machines were offered the version."""
_MIN_SETTLED: Final = 0.5
"""The share of the machines of a wave that must have reported before the next wave."""
_WAVE_TIME: Final = 300_000_000
"""Microseconds that a wave lasts at least, so that all its machines have asked for versions."""
_HUNDRED: Final = 100


class RolloutState(enum.StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETE = "complete"
    """Every machine is offered the version."""
    SUPERSEDED = "superseded"
    """Another version took its place before it was complete."""


@dataclass(frozen=True, slots=True)
class Rollout:
    id: str
    channel: str
    product: Product
    version: str
    stages: tuple[int, ...]
    """Percent of the machines, ascending; the last is 100."""
    stage_time: int
    """Microseconds for which each stage lasts at least."""
    max_failures: int
    """Percent. If more of the machines that report have failed, the rollout pauses."""
    stage: int
    """The index of the current stage."""
    stage_began: int
    """Microseconds since 1970."""
    reach: int
    """Percent of the machines that are offered the version so far. In each stage but the first, it
    doubles until it is the share of the stage, so that most of them wait for what others report."""
    widened_at: int
    """Since then, the reach is what it is. Microseconds since 1970."""
    paused_at: int | None = None
    pause_reason: str = ""
    counted_from: int = 0
    """Reports before this time do not count: someone has seen them, and resumed the rollout."""
    is_superseded: bool = False
    is_rollback: bool = False
    """Whether machines with a newer version go back."""

    @property
    def share(self) -> int:
        """Percent of the machines that are offered the version in this stage."""
        return self.stages[self.stage]

    @property
    def state(self) -> RolloutState:
        if self.paused_at is not None:
            return RolloutState.PAUSED
        if self.reach == _HUNDRED:
            return RolloutState.COMPLETE
        return RolloutState.SUPERSEDED if self.is_superseded else RolloutState.RUNNING


@dataclass(frozen=True, slots=True)
class Trial:
    """How a part did in a rollout. Before an offer, everything is empty."""

    version_before: str = ""
    """What it ran when it was offered the version; empty for nothing."""
    outcome: Outcome | None = None
    """None if it was not offered the version."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Machines that were offered the version, by what they report."""

    good: int = 0
    failed: int = 0
    waiting: int = 0

    @property
    def reported(self) -> int:
        return self.good + self.failed

    @property
    def offered(self) -> int:
        return self.reported + self.waiting


def percentile_of(rollout_id: str, part_id: str) -> float:
    """Return where a part stands among all parts in a rollout, from 0 to less than 100."""
    digest = hashlib.sha256(f"{rollout_id}/{part_id}".encode()).digest()
    return int.from_bytes(digest[:6]) / (1 << 48) * _HUNDRED


def is_reached(rollout: Rollout, part_id: str) -> bool:
    return percentile_of(rollout.id, part_id) < rollout.reach


class Choice(NamedTuple):
    version: str
    """Empty if there is none for the part."""
    rollout: Rollout | None = None
    """The rollout that offers it; None if the part only keeps what it has."""


def choose_version(rollouts: Sequence[tuple[Rollout, Trial]], part_id: str, current: str) -> Choice:
    """Return the version that a part gets.

    `rollouts` are those of its channel, newest first, with how the part did in each. A part that
    the newest does not reach yet gets what the one before gives it. `current` is the version that
    the part has; empty for none.
    """
    if not rollouts:
        return Choice(current)
    (rollout, trial), *earlier = rollouts
    if trial.outcome is not None and trial.outcome.is_failure:
        if current not in ("", rollout.version):
            return Choice(current)
        return choose_version(earlier, part_id, trial.version_before)
    if current == rollout.version:
        return Choice(current)
    goes_on = rollout.state in (RolloutState.RUNNING, RolloutState.COMPLETE)
    if goes_on and is_reached(rollout, part_id):
        return Choice(rollout.version, rollout)
    found = choose_version(earlier, part_id, current)
    # A part without any version has nothing to lose.
    return Choice(rollout.version, rollout) if goes_on and not found.version else found


def pause_if_failing(rollout: Rollout, counts: Counts, now: int) -> Rollout:
    """Return the rollout, paused if too many machines have failed."""
    if rollout.is_superseded or rollout.paused_at is not None:
        return rollout
    enough = min(MIN_REPORTS, counts.offered)
    if counts.failed and counts.reported >= enough and _exceeds(rollout, counts):
        return replace(rollout, paused_at=now, pause_reason=_explain(rollout, counts))
    return rollout


def widen(rollout: Rollout, wave: Counts, now: int) -> Rollout:
    """Return the rollout, with more machines if it is time and the last ones are well.

    `wave` counts the machines that were offered the version since the rollout was last widened.
    """
    is_well = (
        wave.good >= min(MIN_REPORTS, wave.offered) and wave.reported >= wave.offered * _MIN_SETTLED
    )
    is_early = now - rollout.widened_at < _WAVE_TIME
    if (
        rollout.state is not RolloutState.RUNNING
        or rollout.is_superseded
        or not is_well
        or is_early
    ):
        return rollout
    if rollout.reach == rollout.share:
        if now - rollout.stage_began < rollout.stage_time:
            return rollout
        rollout = replace(rollout, stage=rollout.stage + 1, stage_began=now)
    return replace(rollout, reach=min(2 * rollout.reach, rollout.share), widened_at=now)


def resume(rollout: Rollout, now: int) -> Rollout:
    """Return the rollout without its pause. Its stage begins again, and so does the counting."""
    return replace(rollout, paused_at=None, pause_reason="", stage_began=now, counted_from=now)


def _exceeds(rollout: Rollout, counts: Counts) -> bool:
    return counts.failed * _HUNDRED > rollout.max_failures * counts.reported


def _explain(rollout: Rollout, counts: Counts) -> str:
    share = counts.failed * _HUNDRED / counts.reported
    return (
        f"{counts.failed} of {counts.reported} machines failed ({share:.1f} %, and "
        f"{rollout.max_failures} % are allowed)"
    )

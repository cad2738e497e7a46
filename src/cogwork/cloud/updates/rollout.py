"""Staged rollouts of versions: their stages, waves and pauses.

All functions here are pure. A hash assigns each part to a stage, so that a part always gets the
same answer, and stays included in all later stages.
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
"""Number of reports needed for a decision; fewer if fewer machines were offered the version."""
_MIN_SETTLED: Final = 0.5
"""The share of a wave's machines that must have reported before the next wave."""
_WAVE_TIME: Final = 300_000_000
"""Minimum duration of a wave in microseconds, in which all of its machines ask for updates."""
_HUNDRED: Final = 100


class RolloutState(enum.StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETE = "complete"
    """Every machine that asks is offered the version. The status shows this state only once a
    machine is updated and none is waiting."""
    SUPERSEDED = "superseded"
    """A later rollout replaced this one before it was complete."""


@dataclass(frozen=True, slots=True)
class Rollout:
    id: str
    channel: str
    product: Product
    version: str
    stages: tuple[int, ...]
    """Percent of the machines in each stage, ascending. The last is 100."""
    stage_time: int
    """Minimum duration of a stage in microseconds."""
    max_failures: int
    """Percent of the reporting machines that may fail before the rollout pauses."""
    stage: int
    """The index of the current stage."""
    stage_began: int
    """The beginning of the stage, in microseconds since 1970."""
    reach: int
    """Percent of the machines that are offered the version so far. It doubles with each wave, up to
    the share of the stage, so that most machines wait for the reports of others."""
    widened_at: int
    """The time when the reach was last increased, in microseconds since 1970."""
    paused_at: int | None = None
    pause_reason: str = ""
    counted_from: int = 0
    """The time when an operator last resumed the rollout, or 0. Earlier reports do not count."""
    is_superseded: bool = False
    is_rollback: bool = False
    """Whether machines with a newer version should go back to this one."""

    @property
    def share(self) -> int:
        """Percent of the machines in the current stage."""
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
    """The result of a part in a rollout. All fields are empty before an offer."""

    version_before: str = ""
    """The version of the part before the offer; empty if it had none."""
    outcome: Outcome | None = None
    """The outcome; None if the part was not offered the version."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of machines that were offered the version, by the outcome that they reported."""

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
    """Return the position of a part among all parts in a rollout, at least 0 and below 100."""
    digest = hashlib.sha256(f"{rollout_id}/{part_id}".encode()).digest()
    return int.from_bytes(digest[:6]) / (1 << 48) * _HUNDRED


def is_reached(rollout: Rollout, part_id: str) -> bool:
    return percentile_of(rollout.id, part_id) < rollout.reach


class Choice(NamedTuple):
    version: str
    """The version; empty if no version is available for the part."""
    rollout: Rollout | None = None
    """The rollout that offers the version; None if the part keeps its version."""


def choose_version(rollouts: Sequence[tuple[Rollout, Trial]], part_id: str, current: str) -> Choice:
    """Return the version for a part.

    `rollouts` are the rollouts of its channel, newest first, each with the result of the part. A
    part that the newest rollout does not reach yet gets the version of the rollout before it.
    `current` is the version of the part; empty for none.
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
    # Offer the version early to a part without any: it has no working version to lose.
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
    """Return the rollout, with more machines if the last wave has succeeded and is old enough.

    `wave` counts the machines that were offered the version since the last increase.
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
    """Return the rollout without its pause. The stage and its counts begin again."""
    return replace(rollout, paused_at=None, pause_reason="", stage_began=now, counted_from=now)


def _exceeds(rollout: Rollout, counts: Counts) -> bool:
    return counts.failed * _HUNDRED > rollout.max_failures * counts.reported


def _explain(rollout: Rollout, counts: Counts) -> str:
    share = counts.failed * _HUNDRED / counts.reported
    return (
        f"{counts.failed} of {counts.reported} machines failed ({share:.1f} %, and "
        f"{rollout.max_failures} % are allowed)"
    )

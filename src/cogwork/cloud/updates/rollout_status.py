"""The status of rollouts for the operator of the cloud: failed machines, and the reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query
from cogwork.cloud.storage.tables import TrialRow
from cogwork.cloud.updates.rollout import Counts, Rollout, RolloutState
from cogwork.cloud.updates.rollouts import count_trials, list_newest
from cogwork.core.escape import escape
from cogwork.wire.messages.update_method import Outcome


class TrialReport(NamedTuple):
    """A machine whose update has failed or is not finished."""

    machine: str
    part: str
    part_id: str
    organization: str
    outcome: Outcome
    reason: str
    since: str
    """The time of the outcome in ISO 8601; empty if unknown."""
    running: str
    """The running version; empty if unknown."""

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


class RolloutStatus(NamedTuple):
    rollout: Rollout
    counts: Counts
    failed: Sequence[TrialReport]
    waiting: Sequence[TrialReport]

    @property
    def state(self) -> RolloutState:
        state, counts = self.rollout.state, self.counts
        is_settled = counts.good and not counts.waiting
        return RolloutState.RUNNING if state is RolloutState.COMPLETE and not is_settled else state

    def as_json(self) -> dict[str, Any]:
        rollout = self.rollout
        return {
            "id": rollout.id,
            "channel": rollout.channel,
            "product": rollout.product,
            "version": rollout.version,
            "is_rollback": rollout.is_rollback,
            "state": self.state,
            "pause_reason": rollout.pause_reason,
            "stage": rollout.stage + 1,
            "stages": rollout.stages,
            "share": rollout.share,
            "reach": rollout.reach,
            "stage_began": _format_time(rollout.stage_began),
            "stage_hours": rollout.stage_time / 3.6e9,
            "max_failures": rollout.max_failures,
            "updated": self.counts.good,
            "failed": self.counts.failed,
            "waiting": self.counts.waiting,
            "failed_parts": [each.as_json() for each in self.failed],
            "waiting_parts": [each.as_json() for each in self.waiting],
        }


def read_status(tx: Transaction) -> list[RolloutStatus]:
    """Return the status of the newest rollout of each channel and product."""
    return [
        RolloutStatus(
            rollout,
            count_trials(tx, rollout, since=0),
            _list_trials(tx, rollout, Outcome.FAILED, Outcome.ROLLED_BACK),
            _list_trials(tx, rollout, Outcome.WAITING, Outcome.WAITING),
        )
        for rollout in list_newest(tx)
    ]


def format_status(found: Sequence[RolloutStatus]) -> str:
    if not found:
        return "nothing was rolled out yet; begin with: cogwork-cloud release rollout -h"
    return "\n\n".join(map(_format_rollout, found))


def _format_rollout(status: RolloutStatus) -> str:
    rollout, counts = status.rollout, status.counts
    reason = f": {rollout.pause_reason}" if rollout.pause_reason else ""
    so_far = f" ({rollout.reach} % so far)" if rollout.reach < rollout.share else ""
    kind = "rollback, " if rollout.is_rollback else ""
    lines = [
        f"{rollout.channel}  {rollout.product} {rollout.version}  {kind}{status.state}{reason}",
        f"  stage {rollout.stage + 1} of {len(rollout.stages)}: {rollout.share} % of the machines"
        f"{so_far}, since {_format_time(rollout.stage_began)}",
        f"  {counts.good} updated, {counts.failed} failed, {counts.waiting} waiting",
    ]
    lines += [f"  failed   {_format_trial(each)}" for each in status.failed]
    lines += [f"  waiting  {_format_trial(each)}" for each in status.waiting if each.reason]
    return "\n".join(lines)


def _format_trial(trial: TrialReport) -> str:
    has = f" (runs {trial.running})" if trial.running else ""
    reason = trial.reason or "it gives no reason"
    return escape(f"{trial.machine}, part {trial.part}{has}: {reason}")


@dataclass(frozen=True, slots=True)
class _NamedTrial(TrialRow):
    part_name: str
    machine_name: str
    organization_name: str
    running: str | None


def _list_trials(tx: Transaction, rollout: Rollout, *outcomes: Outcome) -> list[TrialReport]:
    trials = query(
        tx,
        _NamedTrial,
        "SELECT trial.*, part.name AS part_name, machine.name AS machine_name, "
        "organization.name AS organization_name, part_software.running "
        "FROM trial JOIN part ON part.id = trial.part_id "
        "JOIN machine ON machine.id = part.machine_id "
        "JOIN organization ON organization.id = machine.organization_id "
        "LEFT JOIN part_software ON part_software.part_id = part.id "
        "AND part_software.product = ? "
        "WHERE trial.rollout_id = ? AND trial.outcome IN (?, ?) "
        "ORDER BY trial.reported_at, machine.name, part.id",
        *(rollout.product, rollout.id, *outcomes),
    )
    return [*map(_describe, trials)]


def _describe(trial: _NamedTrial) -> TrialReport:
    return TrialReport(
        trial.machine_name,
        trial.part_name,
        trial.part_id,
        trial.organization_name,
        Outcome(trial.outcome),
        trial.reason,
        _format_time(trial.since if trial.since is not None else trial.reported_at),
        trial.running or "",
    )


def _format_time(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds // 1_000_000, UTC).isoformat()

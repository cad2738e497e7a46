"""The records of rollouts, and of the results of parts in them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple

from cogwork.cloud.operations.operation import new_id, to_microseconds
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import first, query, query_values, select
from cogwork.cloud.storage.tables import RolloutRow
from cogwork.cloud.updates.releases import find_strictest, list_platforms
from cogwork.cloud.updates.rollout import (
    Counts,
    Rollout,
    Trial,
    pause_if_failing,
    resume,
    widen,
)
from cogwork.cloud.updates.version_control import is_channel
from cogwork.core.errors import InvalidRequest, NotFound
from cogwork.core.versions.product import Product
from cogwork.core.versions.version_order import is_older
from cogwork.wire.messages.update_method import Outcome, UpdateReport

DEFAULT_STAGES: Final = (1, 10, 50, 100)
_MAX_STAGES: Final = 20
_KEPT: Final = 8
"""Number of rollouts to keep for each channel and product, including the reports of machines."""


class _OutcomeCount(NamedTuple):
    outcome: Outcome
    parts: int


class RolloutPlan(NamedTuple):
    stages: tuple[int, ...] = DEFAULT_STAGES
    stage_time: int = 24 * 3_600_000_000
    """Minimum duration of a stage in microseconds."""
    max_failures: int = 5
    """Percent of the reporting machines that may fail before the rollout pauses."""
    is_rollback: bool = False
    """Whether machines with a newer version should go back to this one."""


def start_rollout(
    tx: Transaction, channel: str, product: Product, version: str, plan: RolloutPlan, now: int
) -> Rollout:
    """Start a rollout of a version on a channel. It supersedes the former rollout.

    Raise InvalidRequest or NotFound.
    """
    _check_plan(channel, plan)
    if not list_platforms(tx, product, version):
        raise NotFound(
            f"there is no release of {product} {version}; add it with: cogwork-cloud release add "
            "FILE"
        )
    _check_minimum(tx, product, version)
    known = select_rollouts(tx, channel, product)
    if known and known[0].version == version:
        raise InvalidRequest(
            f"{channel} already has {product} {version}; see: cogwork-cloud release status"
        )
    if known and is_older(version, known[0].version) and not plan.is_rollback:
        raise InvalidRequest(
            f"{product} {version} is older than {known[0].version}, which {channel} has; to take "
            f"machines back to it, add --rollback"
        )
    (number,) = query_values(
        tx,
        int,
        "SELECT COALESCE(MAX(number), 0) AS number FROM rollout WHERE channel = ? AND product = ?",
        *(channel, product),
    )
    new = Rollout(
        *(new_id(), channel, product, version),
        *(plan.stages, plan.stage_time, plan.max_failures),
        stage=0,
        stage_began=now,
        reach=plan.stages[0],
        widened_at=now,
        is_rollback=plan.is_rollback,
    )
    tx.execute(
        "UPDATE rollout SET is_superseded = 1 WHERE channel = ? AND product = ?", channel, product
    )
    tx.execute(
        "INSERT INTO rollout (id, channel, product, number, version, stages, stage_time, "
        "max_failures, stage, stage_began, reach, widened_at, pause_reason, counted_from, "
        "is_superseded, created_at, is_rollback) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, '', 0, 0, ?, ?)",
        *(new.id, channel, product, number + 1, version),
        *(",".join(map(str, plan.stages)), plan.stage_time, plan.max_failures),
        *(now, new.reach, now, now, int(plan.is_rollback)),
    )
    _forget_oldest(tx, channel, product, number + 1 - _KEPT)
    return new


def select_rollouts(tx: Transaction, channel: str, product: Product) -> list[Rollout]:
    """Return the rollouts of a channel, newest first."""
    rows = select(
        tx,
        RolloutRow,
        "WHERE channel = ? AND product = ? ORDER BY number DESC",
        *(channel, product),
    )
    return [_from_row(row) for row in rows]


def find_newest(tx: Transaction, channel: str, product: Product) -> Rollout:
    """Return the newest rollout. Raise NotFound."""
    found = select_rollouts(tx, channel, product)
    if not found:
        raise NotFound(
            f"no version of {product} was rolled out on {channel}; see: cogwork-cloud release "
            "status"
        )
    return found[0]


def list_newest(tx: Transaction) -> list[Rollout]:
    """Return the newest rollout of each channel and product."""
    rows = select(tx, RolloutRow, "WHERE is_superseded = 0 ORDER BY channel, product")
    return [_from_row(row) for row in rows]


def pause_rollout(tx: Transaction, channel: str, product: Product, now: int) -> Rollout:
    found = find_newest(tx, channel, product)
    if found.paused_at is None:
        tx.execute(
            "UPDATE rollout SET paused_at = ?, pause_reason = ? WHERE id = ?",
            *(now, "paused by hand", found.id),
        )
    return find_newest(tx, channel, product)


def resume_rollout(tx: Transaction, channel: str, product: Product, now: int) -> Rollout:
    found = find_newest(tx, channel, product)
    if found.paused_at is not None:
        found = resume(found, now)
        _save(tx, found)
    return found


def check_failures(tx: Transaction, rollout: Rollout, now: int) -> Rollout:
    """Pause the rollout if too many machines have failed."""
    found = pause_if_failing(rollout, count_trials(tx, rollout), now)
    if found != rollout:
        _save(tx, found)
    return found


def widen_rollout(tx: Transaction, rollout: Rollout, now: int) -> Rollout:
    """Offer the version to more machines if the last wave has succeeded and is old enough."""
    found = widen(rollout, _count_wave(tx, rollout), now)
    if found != rollout:
        _save(tx, found)
    return found


def count_trials(tx: Transaction, rollout: Rollout, since: int | None = None) -> Counts:
    """Count all waiting machines, and those that have reported since a time: by default, the last
    resume."""
    rows = query(
        tx,
        _OutcomeCount,
        "SELECT outcome, COUNT(*) AS parts FROM trial "
        "WHERE rollout_id = ? AND (outcome = ? OR reported_at >= ?) GROUP BY outcome",
        *(rollout.id, Outcome.WAITING, rollout.counted_from if since is None else since),
    )
    return _to_counts(rows)


def _count_wave(tx: Transaction, rollout: Rollout) -> Counts:
    """Count the machines of the last wave. Failures before the last resume do not count."""
    rows = query(
        tx,
        _OutcomeCount,
        "SELECT outcome, COUNT(*) AS parts FROM trial WHERE rollout_id = ? AND offered_at >= ? "
        "AND (outcome IN (?, ?) OR reported_at >= ?) GROUP BY outcome",
        *(rollout.id, rollout.widened_at, Outcome.WAITING, Outcome.GOOD, rollout.counted_from),
    )
    return _to_counts(rows)


def _to_counts(rows: Sequence[_OutcomeCount]) -> Counts:
    parts = dict(rows)
    return Counts(
        parts.get(Outcome.GOOD, 0),
        parts.get(Outcome.FAILED, 0) + parts.get(Outcome.ROLLED_BACK, 0),
        parts.get(Outcome.WAITING, 0),
    )


def read_trials(
    tx: Transaction, rollouts: Sequence[Rollout], part_id: str
) -> list[tuple[Rollout, Trial]]:
    """Return the rollouts, each with the result of a part."""
    return [(rollout, _read_trial(tx, rollout.id, part_id)) for rollout in rollouts]


def offer(tx: Transaction, rollout: Rollout, part_id: str, version_before: str, now: int) -> None:
    """Record that a part is offered a version."""
    tx.execute(
        "INSERT INTO trial (rollout_id, part_id, version_before, offered_at, outcome, reason, "
        "reported_at) VALUES (?, ?, ?, ?, ?, '', ?) ON CONFLICT (rollout_id, part_id) DO NOTHING",
        *(rollout.id, part_id, version_before, now, Outcome.WAITING, now),
    )


def note_outcome(
    tx: Transaction, rollout: Rollout, part_id: str, report: UpdateReport, now: int
) -> bool:
    """Save the outcome of a part. Return whether it is new. A failure is never replaced."""
    trial = _read_trial(tx, rollout.id, part_id)
    if not _is_next(trial.outcome, report.outcome):
        return False
    offer(tx, rollout, part_id, "", now)
    tx.execute(
        "UPDATE trial SET outcome = ?, reason = ?, since = ?, reported_at = ? "
        "WHERE rollout_id = ? AND part_id = ?",
        *(report.outcome, report.reason, to_microseconds(report.since), now),
        *(rollout.id, part_id),
    )
    return report.outcome is not trial.outcome


def _is_next(known: Outcome | None, reported: Outcome) -> bool:
    if known is None:
        # The part was not offered the version, because it already had it: only a failure counts.
        return reported.is_failure
    is_step_back = known is Outcome.GOOD and reported is Outcome.WAITING
    return not known.is_failure and not is_step_back


def _check_plan(channel: str, plan: RolloutPlan) -> None:
    if not is_channel(channel):
        raise InvalidRequest(
            f'"{channel[:100]}" is not the name of a channel; use up to 32 lowercase letters, '
            "digits and hyphens"
        )
    stages = plan.stages
    is_ascending = all(one < other for one, other in itertools.pairwise(stages))
    if not stages or len(stages) > _MAX_STAGES or not is_ascending or stages[0] < 1:
        raise InvalidRequest("the stages must be ascending percentages, such as 1,10,50,100")
    if stages[-1] != 100:
        raise InvalidRequest("the last stage must be 100, so that every machine gets the version")
    if not 0 <= plan.max_failures <= 100:
        raise InvalidRequest("the share of failures must be from 0 to 100 percent")


def _check_minimum(tx: Transaction, product: Product, version: str) -> None:
    """Raise InvalidRequest if machines would refuse the version because of a minimum version."""
    strictest = find_strictest(tx, product)
    if strictest is not None and is_older(version, strictest.minimum_version):
        raise InvalidRequest(
            f"{product} {version} is older than {strictest.minimum_version}, the minimum_version "
            f"of {strictest.version}, so machines that have had {strictest.version} would refuse "
            f"it; roll out {strictest.minimum_version} or a newer version"
        )


def _forget_oldest(tx: Transaction, channel: str, product: Product, last: int) -> None:
    tx.execute(
        "DELETE FROM trial WHERE rollout_id IN "
        "(SELECT id FROM rollout WHERE channel = ? AND product = ? AND number <= ?)",
        *(channel, product, last),
    )
    tx.execute(
        "DELETE FROM rollout WHERE channel = ? AND product = ? AND number <= ?",
        *(channel, product, last),
    )


def _read_trial(tx: Transaction, rollout_id: str, part_id: str) -> Trial:
    trials = query(
        tx,
        Trial,
        "SELECT version_before, outcome FROM trial WHERE rollout_id = ? AND part_id = ?",
        *(rollout_id, part_id),
    )
    return first(trials) or Trial()


def _save(tx: Transaction, rollout: Rollout) -> None:
    tx.execute(
        "UPDATE rollout SET stage = ?, stage_began = ?, reach = ?, widened_at = ?, "
        "paused_at = ?, pause_reason = ?, counted_from = ? WHERE id = ?",
        *(rollout.stage, rollout.stage_began, rollout.reach, rollout.widened_at),
        *(rollout.paused_at, rollout.pause_reason, rollout.counted_from, rollout.id),
    )


def _from_row(row: RolloutRow) -> Rollout:
    return Rollout(
        row.id,
        row.channel,
        Product(row.product),
        row.version,
        tuple(map(int, row.stages.split(","))),
        row.stage_time,
        row.max_failures,
        row.stage,
        row.stage_began,
        row.reach,
        row.widened_at,
        row.paused_at,
        row.pause_reason,
        row.counted_from,
        row.is_superseded,
        row.is_rollback,
    )

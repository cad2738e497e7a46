"""Widens rollouts to more machines, and pauses failing ones."""

from __future__ import annotations

import logging

from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.updates.rollout import Rollout
from cogwork.cloud.updates.rollouts import check_failures, list_newest, widen_rollout
from cogwork.cloud.updates.update_service import log_pause

_log = logging.getLogger("cloud.updates")


async def review_rollouts(context: CloudContext) -> None:
    """Pause failing rollouts, and offer successful ones to more machines."""

    def work(tx: Transaction) -> list[tuple[Rollout, Rollout]]:
        now = context.now()
        return [
            (each, widen_rollout(tx, check_failures(tx, each, now), now))
            for each in list_newest(tx)
        ]

    for before, after in await context.records.write(work):
        if after.reach != before.reach:
            _log.info(
                "the rollout of %s %s on channel %s now reaches %d %% of the machines",
                *(after.product, after.version, after.channel, after.reach),
            )
        elif after.paused_at != before.paused_at:
            log_pause(after)

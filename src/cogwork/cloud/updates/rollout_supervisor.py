"""Takes rollouts to their next stages, and pauses those that fail."""

from __future__ import annotations

import logging
from typing import Final

from cogwork.cloud.context import CloudContext
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.updates.rollout import Rollout
from cogwork.cloud.updates.rollouts import judge_rollout, list_newest
from cogwork.cloud.updates.update_service import log_pause
from cogwork.core.errors import CogworkError

INTERVAL: Final = 60.0
"""Seconds between two looks at all rollouts."""

_log = logging.getLogger("cloud.updates")


async def supervise_rollouts(context: CloudContext) -> None:
    """Run until cancelled."""
    while True:
        try:
            await judge_rollouts(context)
        except CogworkError as error:
            _log.warning("rollouts stay in their stages: %s; retrying later", error)
        await context.clock.sleep(INTERVAL)


async def judge_rollouts(context: CloudContext) -> None:
    """Pause what fails, and begin the next stage of what succeeds."""

    def work(tx: Transaction) -> list[tuple[Rollout, Rollout]]:
        now = context.now()
        return [(each, judge_rollout(tx, each, now)) for each in list_newest(tx)]

    for before, after in await context.records.write(work):
        if after.stage != before.stage:
            _log.info(
                "the rollout of %s %s on %s goes on with %d %% of the machines",
                *(after.product, after.version, after.channel, after.share),
            )
        elif after.paused_at != before.paused_at:
            log_pause(after)

"""UpdateService, with which agents report the outcomes of updates."""

from __future__ import annotations

import logging

from google.protobuf.empty_pb2 import Empty
from google.protobuf.struct_pb2 import Struct
from grpclib.const import Cardinality

from cogwork.cloud.fleet.part_access import require_own_part
from cogwork.cloud.fleet.part_software import save_report
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.identity.login import ActorLogin
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.tables import PartRow
from cogwork.cloud.updates.agent_section import read_agent_section
from cogwork.cloud.updates.rollout import Rollout
from cogwork.cloud.updates.rollouts import check_failures, note_outcome, select_rollouts
from cogwork.cloud.updates.version_control import Channel, read_source
from cogwork.wire.messages.update_method import REPORT, UpdateReport, parse_report
from cogwork.wire.table.handlers import Method, Stream

_log = logging.getLogger("cloud.updates")


class UpdateService:
    def __init__(self, context: CloudContext, login: ActorLogin) -> None:
        self._context = context
        self._login = login

    def methods(self) -> list[Method]:
        return [Method(REPORT, Cardinality.UNARY_UNARY, self._report, Struct, Empty)]

    async def _report(self, stream: Stream) -> None:
        actor = await self._login.identify(stream)
        report = parse_report(await stream.recv_message())
        now = self._context.now()

        def work(tx: Transaction) -> tuple[PartRow, Rollout | None]:
            part = require_own_part(tx, actor, _find_part(actor, report))
            save_report(tx, part.id, report, now)
            return part, _save_outcome(tx, part, report, now)

        part, paused = await self._context.records.write(work)
        if report.outcome.is_failure:
            _log.warning(
                'part "%s" (%s) could not be updated to %s %s: %s',
                *(part.name, part.id, report.product, report.version, report.reason),
            )
        if paused is not None:
            log_pause(paused)
        await stream.send_message(Empty())


def log_pause(rollout: Rollout) -> None:
    _log.error(
        "paused the rollout of %s %s on channel %s: %s; see: cogwork-cloud release status",
        *(rollout.product, rollout.version, rollout.channel, rollout.pause_reason),
    )


def _find_part(actor: Actor, report: UpdateReport) -> str:
    return report.id or (actor.id if actor.type is ActorType.PART else "")


def _save_outcome(tx: Transaction, part: PartRow, report: UpdateReport, now: int) -> Rollout | None:
    """Save the outcome in its rollout. Return the rollout if the outcome pauses it."""
    source = read_source(read_agent_section(tx, part), report.product)
    if not isinstance(source, Channel):
        return None
    for rollout in select_rollouts(tx, source.name, report.product):
        if rollout.version != report.version:
            continue
        is_news = note_outcome(tx, rollout, part.id, report, now)
        # Only failures can pause the rollout. A periodic task widens it after successes.
        if is_news and report.outcome.is_failure and rollout.paused_at is None:
            found = check_failures(tx, rollout, now)
            return found if found.paused_at is not None else None
        return None
    return None

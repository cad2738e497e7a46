"""Lost log lines: refused and dropped ones are counted apart, and for as long as logs are kept."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.cloud.in_process_cloud import TwoTenantCloud
from viam.gen.common.v1.common_pb2 import LogEntry

from cogwork.cloud.fleet.log_losses import LogLosses, describe_losses, list_losses
from cogwork.cloud.storage.log_store import RETENTION
from cogwork.cloud.storage.records import RecordsUnavailable
from cogwork.logs.spool import LOGGER
from cogwork.logs.upload import DROPPED

DAY = 86_400


def make_notice(dropped: float, logger: str = LOGGER) -> LogEntry:
    entry = LogEntry(logger_name=logger, message="lines were dropped")
    entry.fields.add()[DROPPED] = dropped
    return entry


async def read_losses(cloud: TwoTenantCloud) -> list[tuple[int, int]]:
    found = await cloud.context.records.read(list_losses)
    return [(each.refused, each.dropped) for each in found]


async def test_losses_of_a_day_add_up(cloud: TwoTenantCloud) -> None:
    losses, records, part = LogLosses(cloud.clock), cloud.context.records, cloud.mine.part
    await losses.save(records)
    assert await read_losses(cloud) == []
    losses.note_refused(part, 2)
    losses.note_dropped(part, [make_notice(3), make_notice(4), LogEntry(message="x")])
    await losses.save(records)
    losses.note_refused(part, 5)
    await losses.save(records)
    await losses.save(records)
    assert await read_losses(cloud) == [(7, 7)]
    await cloud.clock.advance(DAY)
    losses.note_refused(part, 1)
    await losses.save(records)
    assert await read_losses(cloud) == [(7, 7), (1, 0)]
    described = await records.read(lambda tx: describe_losses(tx, part))
    assert described == {"refused_lines": 8, "dropped_lines": 7}
    assert await records.read(lambda tx: describe_losses(tx, cloud.other.part)) == {}


async def test_losses_are_forgotten_with_the_logs(cloud: TwoTenantCloud) -> None:
    losses, records = LogLosses(cloud.clock), cloud.context.records
    losses.note_refused(cloud.mine.part, 1)
    await losses.save(records)
    for kept in (True, False):
        await cloud.clock.advance(RETENTION / 1e6 if kept else DAY)
        losses.note_refused(cloud.other.part, 1)
        await losses.save(records)
        found = await records.read(list_losses)
        assert (cloud.mine.part in {each.part_id for each in found}) == kept


@pytest.mark.parametrize(
    ("dropped", "logger", "counted"),
    [(1 << 40, LOGGER, 1 << 40), (1e15, LOGGER, 0), (-1, LOGGER, 0), (5, "rdk", 0)],
)
async def test_claims_of_machines_are_bounded(
    cloud: TwoTenantCloud, dropped: float, logger: str, counted: int
) -> None:
    losses = LogLosses(cloud.clock)
    losses.note_dropped(cloud.mine.part, [make_notice(dropped, logger)])
    await losses.save(cloud.context.records)
    assert await read_losses(cloud) == ([(0, counted)] if counted else [])


class _BrokenRecords:
    async def write(self, _: Any) -> None:
        raise RecordsUnavailable("the disk is full")


async def test_losses_that_could_not_be_saved_are_saved_later(cloud: TwoTenantCloud) -> None:
    losses, broken = LogLosses(cloud.clock), _BrokenRecords()
    losses.note_refused(cloud.mine.part, 2)
    with pytest.raises(RecordsUnavailable):
        await losses.save(broken)  # type: ignore[arg-type]
    losses.note_refused(cloud.mine.part, 3)
    await losses.save(cloud.context.records)
    assert await read_losses(cloud) == [(5, 0)]

"""Deletes the contents of deleted packages and of incomplete uploads."""

from __future__ import annotations

from typing import Final

from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query_values

_MIN_AGE: Final = 24 * 3600.0
"""Minimum age in seconds of blobs to delete. The records of younger blobs may not be written
yet."""


async def sweep_blobs(context: CloudContext) -> int:
    """Delete unused blobs, and return their number."""
    # Note the current time before reading the records, so that blobs with later records are kept.
    before = context.clock.time() - _MIN_AGE
    used = await context.records.read(_list_used)
    return await context.blobs.delete_unused(used.__contains__, before)


def _list_used(tx: Transaction) -> set[str]:
    sql = "SELECT digest FROM package WHERE deleted_at IS NULL UNION SELECT digest FROM release"
    return {*query_values(tx, str, sql)}

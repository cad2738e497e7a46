"""Deletes the contents of packages that were deleted, and of uploads that did not complete."""

from __future__ import annotations

from typing import Final

from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query_values

_MIN_AGE: Final = 24 * 3600.0
"""Seconds. Younger content may belong to an upload whose record is not written yet."""


async def sweep_blobs(context: CloudContext) -> int:
    """Return the number of deleted blobs."""
    # Before the records are read, so that a blob is spared if its record comes in between.
    before = context.clock.time() - _MIN_AGE
    used = await context.records.read(_list_used)
    return await context.blobs.delete_unused(used.__contains__, before)


def _list_used(tx: Transaction) -> set[str]:
    sql = "SELECT digest FROM package WHERE deleted_at IS NULL UNION SELECT digest FROM release"
    return {*query_values(tx, str, sql)}

"""Operations on the logs of parts."""

from __future__ import annotations

import hmac
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

from viam.gen.app.v1 import app_pb2 as pb
from viam.gen.app.v1.robot_pb2 import LogRequest
from viam.gen.common.v1.common_pb2 import LogEntry

from cogwork.cloud.fleet.log_searches import LogSearches
from cogwork.cloud.fleet.parts import find_part, require_log_reader
from cogwork.cloud.identity.actor import Actor
from cogwork.cloud.keys.keyring import Keyring
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.operations.operation import read_timestamp
from cogwork.cloud.storage.bus import log_topic
from cogwork.cloud.storage.log_store import LogPosition, LogQuery
from cogwork.core.errors import InvalidRequest

_DEFAULT_LIMIT: Final = 100
_MAX_LIMIT: Final = 1000
_ERRORS: Final = frozenset({"error", "dpanic", "panic", "fatal"})
_RANGE: Final = re.compile(r"(\d{1,9})([mhd])")
_MICROSECONDS: Final = {"m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_MAX_RANGE: Final = 36_500 * _MICROSECONDS["d"]
_TOKEN: Final = re.compile(r"(\d{4}-\d\d-\d\d)\.(\d{1,18})\.([\w-]{32})", re.ASCII)


async def get_robot_part_logs(
    context: CloudContext, searches: LogSearches, actor: Actor, request: pb.GetRobotPartLogsRequest
) -> pb.GetRobotPartLogsResponse:
    now = context.now()
    query = _read_query(request, now, context.keyring)
    organization = await context.records.read(
        lambda tx: require_log_reader(tx, context.make_call(actor), request.id)
    )
    page = await searches.read(organization, actor, query, now)
    return pb.GetRobotPartLogsResponse(
        logs=map(LogEntry.FromString, page.entries),
        next_page_token=_make_token(page.last, query, context.keyring) if page.last else "",
    )


async def tail_robot_part_logs(
    context: CloudContext, actor: Actor, request: pb.TailRobotPartLogsRequest
) -> AsyncIterator[pb.TailRobotPartLogsResponse]:
    """Yield new lines, each in its own message, because clients disagree about the order of lines
    in a message.

    Never yield an empty message, because the SDK's client would stop there.
    """

    async def check_role() -> None:
        await context.records.read(lambda tx: find_part(tx, context.make_call(actor), request.id))

    await check_role()
    wanted = request.filter.casefold()
    async with context.bus.listen(log_topic(request.id)) as messages:
        async for message in messages:
            shown = [
                entry
                for entry in LogRequest.FromString(message).logs
                if wanted in entry.message.casefold()
                and (not request.errors_only or entry.level.lower() in _ERRORS)
            ]
            if shown:
                await check_role()  # the part may have been deleted meanwhile
                for entry in shown:
                    yield pb.TailRobotPartLogsResponse(logs=[entry])


def _read_query(request: pb.GetRobotPartLogsRequest, now: int, keyring: Keyring) -> LogQuery:
    start = read_timestamp(request.start, "start") if request.HasField("start") else None
    end = read_timestamp(request.end, "end") if request.HasField("end") else None
    if request.range:
        start, end = _resolve_range(request.range, start, end, now)
    levels = _ERRORS if request.errors_only else frozenset(map(str.lower, request.levels))
    query = LogQuery(
        request.id,
        text=request.filter,
        levels=levels,
        logger=request.source,
        start=start,
        end=end,
        oldest_first=request.order == pb.LogOrder.LOG_ORDER_ASCENDING,
        limit=min(request.limit, _MAX_LIMIT) if request.limit > 0 else _DEFAULT_LIMIT,
    )
    if request.page_token:
        return replace(query, after=_read_token(request.page_token, query, keyring))
    return query


def _resolve_range(text: str, start: int | None, end: int | None, now: int) -> tuple[int, int]:
    """Return the start and the end of a range such as `10m`.

    The range begins at `start`, or else ends at `end`, or else ends now."""
    found = _RANGE.fullmatch(text)
    if found is None:
        raise InvalidRequest(f'"{text[:40]}" is not a range; write 10m, 10h or 10d')
    if start is not None and end is not None:
        raise InvalidRequest("give a range with a start or with an end, not with both")
    length = min(int(found[1]) * _MICROSECONDS[found[2]], _MAX_RANGE)
    if start is not None:
        return start, start + length
    end = end if end is not None else now
    return end - length, end


def _make_token(last: LogPosition, query: LogQuery, keyring: Keyring) -> str:
    return f"{last.day}.{last.number}.{_sign(last, query, keyring)}"


def _read_token(token: str, query: LogQuery, keyring: Keyring) -> LogPosition:
    if (found := _TOKEN.fullmatch(token)) is not None:
        position = LogPosition(found[1], int(found[2]))
        if hmac.compare_digest(found[3], _sign(position, query, keyring)):
            return position
    raise InvalidRequest("the page token does not belong to this request; start at the first page")


def _sign(position: LogPosition, query: LogQuery, keyring: Keyring) -> str:
    """Return a signature that makes a position valid only for this log and this order."""
    order = "oldest" if query.oldest_first else "newest"
    return keyring.derive_secret(f"log page {query.part_id} {order} {position}")[:32]

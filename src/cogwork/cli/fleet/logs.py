"""`cogwork fleet logs`: show the latest lines of a part's log and follow new ones."""

from __future__ import annotations

import argparse
import json
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, Final

from google.protobuf.json_format import MessageToDict

from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.fleet.fleet_client import CloudUnreachable, FleetClient, with_fleet
from cogwork.cli.fleet.inventory import find_part
from cogwork.cli.machine.logs import format_entry, parse_time
from cogwork.cli.terminal import EXIT_OK, print_error
from cogwork.core.backoff import Backoff, RetryPolicy
from cogwork.core.escape import escape_json
from cogwork.logs.entry import format_timestamp
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402
from viam.gen.common.v1.common_pb2 import LogEntry  # noqa: E402

LEVELS: Final = ("debug", "info", "warn", "error")
_SEVERE: Final = ("dpanic", "panic", "fatal", "critical")
"""Levels of other programs that are at least as severe as `error`."""
_PAGE: Final = 1000
_REMEMBERED: Final = 5000
"""Number of printed lines that are remembered to recognize duplicates."""
_RETRY: Final = RetryPolicy(first=0.5, maximum=10.0)


def logs(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        query = _make_query(find_part(client, arguments.part).id, arguments)
        printer = _Printer(as_json=arguments.json)
        if arguments.since is None:
            printer.print_new(_read_last(client, query, arguments.lines))
        else:
            printer.print_new(_read_all(client, query))
        if arguments.follow:
            _follow(client, query, printer)
        return EXIT_OK

    return with_fleet(run)


class _Printer:
    """Prints each line once, even if it occurs both in the stored log and in the followed log."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._printed: OrderedDict[bytes, None] = OrderedDict()
        self.last_time: int | None = None
        """The time of the last printed line, in microseconds."""

    def print_new(self, entries: Iterator[LogEntry] | Sequence[LogEntry]) -> None:
        for entry in entries:
            identity = entry.SerializeToString(deterministic=True)
            if identity in self._printed:
                continue
            self._printed[identity] = None
            if len(self._printed) > _REMEMBERED:
                self._printed.popitem(last=False)
            self.last_time = entry.time.ToMicroseconds()
            line = describe_entry(entry)
            text = (
                escape_json(json.dumps(line, ensure_ascii=False))
                if self._as_json
                else format_entry(line)
            )
            print(text, flush=True)


def describe_entry(entry: LogEntry) -> dict[str, Any]:
    """Return a line as JSON, in the format of `cogwork logs --json`."""
    line = {
        "time": format_timestamp(entry.time.ToMicroseconds() / 1e6),
        "level": entry.level.lower(),
        "logger": entry.logger_name,
        "message": entry.message,
    }
    place = _read_place(entry)
    fields = {key: value for each in entry.fields for key, value in MessageToDict(each).items()}
    return (
        line
        | ({"place": place} if place else {})
        | ({"fields": fields} if fields else {})
        | ({"trace": entry.stack} if entry.stack else {})
    )


def _read_place(entry: LogEntry) -> str:
    caller = MessageToDict(entry.caller)
    file, line = caller.get("File"), caller.get("Line")
    return f"{file}:{int(line)}" if file and isinstance(line, float) and line else str(file or "")


def list_levels(least: str | None) -> list[str]:
    """Return a level and all higher levels. Without a level, return an empty list."""
    if least is None:
        return []
    return [*LEVELS[LEVELS.index(least) :], *_SEVERE]


def _make_query(part: str, arguments: argparse.Namespace) -> pb.GetRobotPartLogsRequest:
    query = pb.GetRobotPartLogsRequest(
        id=part, filter=arguments.search or "", levels=list_levels(arguments.level)
    )
    if arguments.since is not None:
        try:
            since = parse_time(arguments.since, time.time())
        except ValueError as error:
            raise CommandError(str(error)) from None
        query.start.FromMicroseconds(int(since * 1e6))
    return query


def _read_last(
    client: FleetClient, query: pb.GetRobotPartLogsRequest, count: int
) -> list[LogEntry]:
    """Return the last lines, oldest first."""
    found: list[LogEntry] = []
    for page in _read_pages(client, query, pb.LogOrder.LOG_ORDER_DESCENDING, min(count, _PAGE)):
        found += page
        if len(found) >= count:
            break
    return found[:count][::-1]


def _read_all(client: FleetClient, query: pb.GetRobotPartLogsRequest) -> Iterator[LogEntry]:
    for page in _read_pages(client, query, pb.LogOrder.LOG_ORDER_ASCENDING, _PAGE):
        yield from page


def _read_pages(
    client: FleetClient,
    query: pb.GetRobotPartLogsRequest,
    order: pb.LogOrder.ValueType,
    limit: int,
) -> Iterator[Sequence[LogEntry]]:
    request = pb.GetRobotPartLogsRequest()
    request.CopyFrom(query)
    request.order, request.limit = order, limit
    while True:
        reply = client.call("GetRobotPartLogs", request, pb.GetRobotPartLogsResponse)
        yield reply.logs
        if not reply.next_page_token:
            return
        request.page_token = reply.next_page_token


def _follow(client: FleetClient, query: pb.GetRobotPartLogsRequest, printer: _Printer) -> None:
    """Print new lines until Ctrl-C, also across restarts of the cloud."""
    tail = pb.TailRobotPartLogsRequest(id=query.id, filter=query.filter)
    levels = frozenset(query.levels)
    backoff = Backoff(_RETRY)
    while True:
        try:
            # Request new lines before reading old ones, so that no line is missed in between.
            replies = client.stream("TailRobotPartLogs", tail, pb.TailRobotPartLogsResponse)
            _catch_up(client, query, printer)
            for reply in replies:
                backoff.reset()
                shown = [e for e in reply.logs if not levels or e.level.lower() in levels]
                printer.print_new(shown)
        except CloudUnreachable:
            if not backoff.failures:
                print_error("lost the connection to the cloud; trying again until Ctrl-C")
        time.sleep(backoff.next_delay())


def _catch_up(client: FleetClient, query: pb.GetRobotPartLogsRequest, printer: _Printer) -> None:
    """Print the lines that were logged after the last printed line."""
    missed = pb.GetRobotPartLogsRequest()
    missed.CopyFrom(query)
    if printer.last_time is not None:
        missed.start.FromMicroseconds(printer.last_time)
    printer.print_new(_read_all(client, missed))

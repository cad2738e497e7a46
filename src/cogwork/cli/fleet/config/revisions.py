"""The revisions of a part's configuration, numbered from 0.

The cloud lists edits. Each edit created a revision, but contains the text before the edit, which is
the text of the previous revision. Revisions are read one by one, newest first, because all texts
together may not fit into memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from google.protobuf.json_format import MessageToDict

from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.fleet.fleet_client import FleetClient
from cogwork.cli.terminal import ProgressLine
from cogwork.config.source.change_summary import summarize_change
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402

_NUMBER = "revision"


class Revision(NamedTuple):
    number: int
    text: str
    """The text as it was saved."""
    part_name: str
    made_at: float | None
    """The time in seconds since 1970; None if the history no longer contains the edit."""
    editor: str
    """The ID of the key that saved the revision; empty for the oldest revision."""
    change: str
    """A summary of the changes since the previous revision, without values."""


def read_revisions(client: FleetClient, part: pb.RobotPart) -> Iterator[Revision]:
    """Read the history page by page. Raise the same errors as `FleetClient.call`."""
    return iterate_revisions(part, _read_history(client, part.id))


def iterate_revisions(
    part: pb.RobotPart, history: Iterable[pb.RobotPartHistoryEntry]
) -> Iterator[Revision]:
    """Yield the revisions, newest first. The edits must also be in this order."""
    state, number = part, 0
    for number, edit in _number_edits(history):
        yield Revision(
            number + 1,
            read_text(state),
            state.name,
            edit.when.ToMicroseconds() / 1e6,
            edit.edited_by.value,
            _describe_change(edit.old, state),
        )
        state = edit.old
    is_first = number == 0
    made_at = part.created_on.ToMicroseconds() / 1e6 if is_first else None
    change = "created" if is_first else "the oldest that the cloud has"
    yield Revision(number, read_text(state), state.name, made_at, "", change)


def find_revision(revisions: Iterable[Revision], wanted: str) -> Revision:
    """Return the revision with this number. Raise CommandError if it does not exist."""
    newest = None
    for each in revisions:
        newest = each.number if newest is None else newest
        if str(each.number) == wanted:
            return each
    raise CommandError(
        f'there is no revision "{wanted}"; the newest is {newest}, list them with: '
        "cogwork fleet config history PART"
    )


def read_text(part: pb.RobotPart) -> str:
    """Return the configuration of a part as it was saved."""
    if part.robot_config_json:
        return part.robot_config_json
    # This cloud does not store the text as it was saved, so format its parsed configuration.
    return json.dumps(MessageToDict(part.robot_config), indent=2) + "\n"


def _read_history(client: FleetClient, part: str) -> Iterator[pb.RobotPartHistoryEntry]:
    request, count = pb.GetRobotPartHistoryRequest(id=part), 0
    with ProgressLine() as progress:
        while True:
            reply = client.call("GetRobotPartHistory", request, pb.GetRobotPartHistoryResponse)
            yield from reply.history
            if not reply.next_page_token:
                return
            count += len(reply.history)
            progress.show(f"reading the history: {count} edits")
            request.page_token = reply.next_page_token


def _number_edits(
    history: Iterable[pb.RobotPartHistoryEntry],
) -> Iterator[tuple[int, pb.RobotPartHistoryEntry]]:
    """Yield each edit with the number of the revision before the edit."""
    edits = iter(history)
    first = next(edits, None)
    if first is None:
        return
    if _NUMBER in first.old.user_supplied_info:
        for each in chain((first,), edits):
            yield int(each.old.user_supplied_info.fields[_NUMBER].number_value), each
        return
    # This cloud does not number the edits. It keeps all of them, so count them.
    listed = [first, *edits]
    yield from zip(reversed(range(len(listed))), listed, strict=True)


def _describe_change(before: pb.RobotPart, after: pb.RobotPart) -> str:
    changes = []
    if before.name != after.name:
        changes.append(f"renamed {before.name} to {after.name}")
    old, new = read_text(before), read_text(after)
    if old != new:
        changes.append(summarize_change(old, new))
    return "; ".join(changes)

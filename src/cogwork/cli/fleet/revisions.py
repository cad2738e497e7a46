"""The revisions of a part's configuration, numbered from 0.

The cloud lists edits, each with the state before it. An edit makes a revision; the state that it
replaced is the one before.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from google.protobuf.json_format import MessageToDict

from cogwork.cli.grpc_client import CommandError
from cogwork.config.change_summary import summarize_change
from cogwork.resource import sdk

assert sdk.VERSION  # `sdk` must be imported before the SDK itself
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402


class Revision(NamedTuple):
    number: int
    text: str
    """Exactly as it was saved."""
    part_name: str
    made_at: float
    """Seconds since 1970."""
    editor: str
    """The ID of the key that saved it; empty for the first."""
    change: str
    """What differs from the revision before, without any value."""


def list_revisions(
    part: pb.RobotPart, history: Sequence[pb.RobotPartHistoryEntry]
) -> list[Revision]:
    """Return all revisions, newest first, given all edits, newest first."""
    states = [part, *(entry.old for entry in history)]
    created = part.created_on.ToMicroseconds() / 1e6
    found = []
    for index, state in enumerate(states):
        edit = history[index] if index < len(history) else None
        found.append(
            Revision(
                len(history) - index,
                read_text(state),
                state.name,
                edit.when.ToMicroseconds() / 1e6 if edit is not None else created,
                edit.edited_by.value if edit is not None else "",
                _describe_change(states[index + 1], state) if edit is not None else "created",
            )
        )
    return found


def find_revision(revisions: Sequence[Revision], wanted: str) -> Revision:
    """Raise CommandError if there is no such revision."""
    for each in revisions:
        if str(each.number) == wanted:
            return each
    raise CommandError(
        f'there is no revision "{wanted}"; the newest is {revisions[0].number}, list them with: '
        "cogwork fleet config history PART"
    )


def read_text(part: pb.RobotPart) -> str:
    """Return the configuration of a part as it was saved."""
    if part.robot_config_json:
        return part.robot_config_json
    # A cloud that does not keep the text.
    return json.dumps(MessageToDict(part.robot_config), indent=2) + "\n"


def _describe_change(before: pb.RobotPart, after: pb.RobotPart) -> str:
    changes = []
    if before.name != after.name:
        changes.append(f"renamed {before.name} to {after.name}")
    old, new = read_text(before), read_text(after)
    if old != new:
        changes.append(summarize_change(old, new))
    return "; ".join(changes)

"""Operations on the configurations of parts, and their history."""

from __future__ import annotations

from typing import Final

from google.protobuf.struct_pb2 import Struct
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.configuration.config_checker import ConfigChecker
from cogwork.cloud.configuration.config_mask import format_masked, require_unmasked
from cogwork.cloud.configuration.config_references import (
    OwnerType,
    require_few_references,
    save_references,
)
from cogwork.cloud.configuration.config_text import parse_config, read_config_text, require_config
from cogwork.cloud.configuration.fragment_lookup import require_no_new_mistakes
from cogwork.cloud.fleet.agent_info import runs_another_make
from cogwork.cloud.fleet.editor import describe_editor
from cogwork.cloud.fleet.history_page import (
    KEPT_REVISIONS,
    KEPT_TIME,
    REMOVED_AT_ONCE,
    read_page,
    read_page_token,
)
from cogwork.cloud.fleet.host_labels import assign_label
from cogwork.cloud.fleet.parts import LocatedPart, describe_part, find_part, owns_part
from cogwork.cloud.identity.access import CloudRole
from cogwork.cloud.identity.actor import Actor
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.operations.names import require_name
from cogwork.cloud.operations.operation import (
    Call,
    CloudOperation,
    read_timestamp,
    reading,
    to_timestamp,
    writing,
)
from cogwork.cloud.storage.insert import insert
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import select_one
from cogwork.cloud.storage.tables import PartHistoryRow
from cogwork.core.errors import CogworkError, InvalidRequest

_DEFAULT_PAGE: Final = 100
_MAX_PAGE: Final = 1000
_HISTORY: Final = "WHERE part_id = ? AND revision <= ?"
REVISION_INFO: Final = "revision"
"""The key of the revision number in a history entry."""


class StaleConfig(CogworkError):
    """Another user has changed the configuration in the meantime."""

    status = "FAILED_PRECONDITION"


async def check_update(
    context: CloudContext, checker: ConfigChecker, actor: Actor, request: pb.UpdateRobotPartRequest
) -> None:
    """Check a new configuration before the transaction, because the check is slow.

    If a fragment is edited between this check and the transaction, the check of that edit finds its
    mistakes.
    """
    if not request.HasField("robot_config_json") and not request.HasField("robot_config"):
        return

    def find_server(tx: Transaction) -> tuple[str, bool]:
        part = find_part(tx, context.make_call(actor), request.id, CloudRole.OWNER)
        return part.organization_id, runs_another_make(tx, part.id)

    organization, is_other = await context.records.read(find_server)
    await checker.check(organization, lambda: _read_bounded(request), is_another_make=is_other)

    def check_content(tx: Transaction) -> None:
        row = find_part(tx, context.make_call(actor), request.id, CloudRole.OWNER)
        text = read_config_text(request)
        if text is not None and text != row.config:
            content = require_config(text)
            require_unmasked(content, parse_config(row.config))
            require_no_new_mistakes(tx, row, content)

    await context.records.read(check_content)


def _read_bounded(request: pb.UpdateRobotPartRequest) -> str:
    """Return the configuration. Raise InvalidRequest if it has too many references to check.

    Accept text that is not JSON: the check reports it, with the place of the mistake.
    """
    text = read_config_text(request) or ""
    try:
        config = parse_config(text)
    except InvalidRequest:
        return text
    require_few_references(config)
    return text


def update_robot_part(
    tx: Transaction, call: Call, request: pb.UpdateRobotPartRequest
) -> pb.UpdateRobotPartResponse:
    """Change the name, the configuration, or both. Add the former state to the history."""
    row = find_part(tx, call, request.id, CloudRole.OWNER)
    if request.HasField("last_known_update"):
        known = read_timestamp(request.last_known_update, "last_known_update")
        if known != row.updated_at:
            raise StaleConfig(
                "someone else changed this configuration after you read it; read it again and "
                "repeat your change"
            )
    name = require_name(request.name) if request.name else row.name
    text = read_config_text(request)
    config = row.config if text is None else text
    if config != row.config:
        save_references(tx, OwnerType.PART, request.id, require_config(config))
    if (name, config) != (row.name, row.config):
        _replace(tx, call, row, name, config)
    return pb.UpdateRobotPartResponse(
        part=describe_part(tx, call, find_part(tx, call, request.id, CloudRole.OWNER))
    )


def get_robot_part_history(
    tx: Transaction, call: Call, request: pb.GetRobotPartHistoryRequest
) -> pb.GetRobotPartHistoryResponse:
    """List edits, newest first, each with the state before it.

    A page has at least one edit, and at most as many as fit into a reply.
    """
    part = find_part(tx, call, request.id)
    limit = min(request.page_limit, _MAX_PAGE) if request.page_limit > 0 else _DEFAULT_PAGE
    bounds: list[tuple[str, int]] = []
    if request.HasField("start"):
        bounds.append(("edited_at >= ?", read_timestamp(request.start, "start")))
    if request.HasField("end"):
        bounds.append(("edited_at < ?", read_timestamp(request.end, "end")))
    conditions = "".join(f" AND {condition}" for condition, _ in bounds)
    rest = f"{_HISTORY}{conditions} ORDER BY revision DESC LIMIT 1"

    def read_next(newest: int) -> PartHistoryRow | None:
        values = (value for _, value in bounds)
        return select_one(tx, PartHistoryRow, rest, request.id, newest, *values)

    token = request.page_token
    newest = read_page_token(token) - 1 if token else part.revision
    page = read_page(read_next, newest, limit)
    is_owner = owns_part(tx, call, part)
    return pb.GetRobotPartHistoryResponse(
        history=[_describe_entry(tx, part, each, is_masked=not is_owner) for each in page.rows],
        next_page_token=str(page.rows[-1].revision) if page.has_more else "",
    )


def _replace(tx: Transaction, call: Call, row: LocatedPart, name: str, config: str) -> None:
    editor = call.actor
    former = PartHistoryRow(
        row.id, row.revision, call.now, editor.type, editor.id, row.name, row.config
    )
    insert(tx, former)
    # Give each edit a later time than the one before, because clients compare the times.
    updated_at = max(call.now, row.updated_at + 1)
    tx.execute(
        "UPDATE part SET name = ?, config = ?, revision = revision + 1, updated_at = ? "
        "WHERE id = ?",
        *(name, config, updated_at, row.id),
    )
    if name != row.name:
        assign_label(tx, call.now, row.id, row.location_id, name)
    _remove_oldest(tx, call, row)
    call.changed_parts.append(row.id)


def _remove_oldest(tx: Transaction, call: Call, row: LocatedPart) -> None:
    tx.execute(
        "DELETE FROM part_history WHERE part_id = ? AND edited_at < ? AND revision IN (SELECT "
        "revision FROM part_history WHERE part_id = ? AND revision < ? ORDER BY revision LIMIT ?)",
        *(row.id, call.now - KEPT_TIME),
        *(row.id, row.revision - KEPT_REVISIONS, REMOVED_AT_ONCE),
    )


def _describe_entry(
    tx: Transaction, part: LocatedPart, row: PartHistoryRow, *, is_masked: bool
) -> pb.RobotPartHistoryEntry:
    text = row.config
    if is_masked:
        text = format_masked(parse_config(text))
    config, info = Struct(), Struct()
    config.update(parse_config(text))
    info.update({REVISION_INFO: row.revision})
    return pb.RobotPartHistoryEntry(
        part=row.part_id,
        robot=part.machine_id,
        when=to_timestamp(row.edited_at),
        edited_by=describe_editor(tx, row.editor_id),
        old=pb.RobotPart(
            id=row.part_id,
            name=row.name,
            robot=part.machine_id,
            location_id=part.location_id,
            robot_config=config,
            robot_config_json=text,
            user_supplied_info=info,
        ),
    )


OPERATIONS: Final[dict[str, CloudOperation]] = {
    "UpdateRobotPart": writing(update_robot_part),
    "GetRobotPartHistory": reading(get_robot_part_history),
}

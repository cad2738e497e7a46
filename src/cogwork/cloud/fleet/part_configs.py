"""Operations on the configurations of parts, and their history."""

from __future__ import annotations

from typing import Final

from google.protobuf.struct_pb2 import Struct
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.configuration.config_checker import ConfigChecker
from cogwork.cloud.configuration.config_references import OwnerType, save_references
from cogwork.cloud.configuration.config_text import parse_config, read_config_text, require_config
from cogwork.cloud.configuration.fragment_lookup import require_no_new_mistakes
from cogwork.cloud.context import CloudContext
from cogwork.cloud.fleet.editor import describe_editor
from cogwork.cloud.fleet.host_labels import assign_label
from cogwork.cloud.fleet.parts import describe_part, find_part
from cogwork.cloud.identity.access import CloudRole
from cogwork.cloud.identity.actor import Actor
from cogwork.cloud.names import require_name
from cogwork.cloud.operation import Call, Operation, reading, to_timestamp, writing
from cogwork.cloud.storage.records import Row, Transaction
from cogwork.core.errors import CogworkError, InvalidRequest

_DEFAULT_PAGE: Final = 100
_MAX_PAGE: Final = 1000


class StaleConfig(CogworkError):
    """The configuration was changed by someone else in the meantime."""

    status = "FAILED_PRECONDITION"


async def check_update(
    context: CloudContext, checker: ConfigChecker, actor: Actor, request: pb.UpdateRobotPartRequest
) -> None:
    """Check a new configuration before the transaction, because that takes a while."""
    if not request.HasField("robot_config_json") and not request.HasField("robot_config"):
        return
    await context.records.read(
        lambda tx: find_part(tx, context.make_call(actor), request.id, CloudRole.OWNER)
    )
    await checker.check(lambda: read_config_text(request) or "")


def update_robot_part(
    tx: Transaction, call: Call, request: pb.UpdateRobotPartRequest
) -> pb.UpdateRobotPartResponse:
    """Changes the name, the configuration, or both. The former state goes into the history."""
    row = find_part(tx, call, request.id, CloudRole.OWNER)
    if request.HasField("last_known_update"):
        known = request.last_known_update.ToMicroseconds()
        if known != row["updated_at"]:
            raise StaleConfig(
                "someone else changed this configuration after you read it; read it again and "
                "repeat your change"
            )
    name = require_name(request.name) if request.name else row["name"]
    text = read_config_text(request)
    config = row["config"] if text is None else text
    if config != row["config"]:
        content = require_config(config)
        require_no_new_mistakes(tx, row, content)
        save_references(tx, OwnerType.PART, request.id, content)
    if (name, config) != (row["name"], row["config"]):
        _replace(tx, call, row, name, config)
    return pb.UpdateRobotPartResponse(
        part=describe_part(tx, call, find_part(tx, call, request.id, CloudRole.OWNER))
    )


def get_robot_part_history(
    tx: Transaction, call: Call, request: pb.GetRobotPartHistoryRequest
) -> pb.GetRobotPartHistoryResponse:
    """Lists edits, newest first, each with the state before it."""
    part = find_part(tx, call, request.id)
    limit = min(request.page_limit, _MAX_PAGE) if request.page_limit > 0 else _DEFAULT_PAGE
    sql, values = "SELECT * FROM part_history WHERE part_id = ?", [request.id]
    bounds: list[tuple[str, int]] = []
    if request.page_token:
        bounds.append(("revision < ?", _read_page_token(request.page_token)))
    if request.HasField("start"):
        bounds.append(("edited_at >= ?", request.start.ToMicroseconds()))
    if request.HasField("end"):
        bounds.append(("edited_at < ?", request.end.ToMicroseconds()))
    conditions = "".join(f" AND {condition}" for condition, _ in bounds)
    rows = tx.query(
        f"{sql}{conditions} ORDER BY revision DESC LIMIT {limit + 1}",
        *values,
        *(value for _, value in bounds),
    )
    shown = rows[:limit]
    return pb.GetRobotPartHistoryResponse(
        history=[_describe_entry(tx, part, each) for each in shown],
        next_page_token=str(shown[-1]["revision"]) if len(rows) > limit else "",
    )


def _replace(tx: Transaction, call: Call, row: Row, name: str, config: str) -> None:
    tx.execute(
        "INSERT INTO part_history (part_id, revision, edited_at, editor_type, editor_id, name, "
        "config) VALUES (?, ?, ?, ?, ?, ?, ?)",
        *(row["id"], row["revision"], call.now, call.actor.type, call.actor.id),
        *(row["name"], row["config"]),
    )
    # Two edits within a microsecond must differ, because clients compare the times.
    updated_at = max(call.now, row["updated_at"] + 1)
    tx.execute(
        "UPDATE part SET name = ?, config = ?, revision = revision + 1, updated_at = ? "
        "WHERE id = ?",
        *(name, config, updated_at, row["id"]),
    )
    if name != row["name"]:
        assign_label(tx, call.now, row["id"], row["location_id"], name)
    call.changed_parts.append(row["id"])


def _read_page_token(token: str) -> int:
    try:
        return int(token)
    except ValueError:
        raise InvalidRequest("the page token is not one of this cloud") from None


def _describe_entry(tx: Transaction, part: Row, row: Row) -> pb.RobotPartHistoryEntry:
    config = Struct()
    config.update(parse_config(row["config"]))
    return pb.RobotPartHistoryEntry(
        part=row["part_id"],
        robot=part["machine_id"],
        when=to_timestamp(row["edited_at"]),
        edited_by=describe_editor(tx, row["editor_id"]),
        old=pb.RobotPart(
            id=row["part_id"],
            name=row["name"],
            robot=part["machine_id"],
            location_id=part["location_id"],
            robot_config=config,
            robot_config_json=row["config"],
        ),
    )


OPERATIONS: Final[dict[str, Operation]] = {
    "UpdateRobotPart": writing(update_robot_part),
    "GetRobotPartHistory": reading(get_robot_part_history),
}

"""Operations on the parts of machines, except their configurations."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, NamedTuple

from google.protobuf.struct_pb2 import Struct
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.configuration.config_mask import format_masked, mask_config
from cogwork.cloud.configuration.config_text import parse_config
from cogwork.cloud.configuration.fragment_lookup import merge_for_part
from cogwork.cloud.fleet.agent_info import read_agent_info
from cogwork.cloud.fleet.host_labels import assign_label, retire_label
from cogwork.cloud.fleet.log_losses import describe_losses
from cogwork.cloud.fleet.part_software import describe_software
from cogwork.cloud.fleet.secrets import (
    SecretOwner,
    add_secret,
    delete_secret,
    delete_secrets,
    list_secrets,
)
from cogwork.cloud.identity.access import CloudRole, ResourceType, find_role, require_role
from cogwork.cloud.identity.public_name import local_name
from cogwork.cloud.operations.names import require_name
from cogwork.cloud.operations.operation import (
    Call,
    CloudOperation,
    new_id,
    reading,
    to_timestamp,
    writing,
)
from cogwork.cloud.registry.resolution import resolve_registry
from cogwork.cloud.storage.insert import insert
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import first, query, query_values, select
from cogwork.cloud.storage.tables import MachineRow, PartRow
from cogwork.core.errors import InvalidRequest, NotFound

_EMPTY: Final = "{}"

_SELECT: Final = (
    "SELECT part.*, machine.location_id, host_label.label FROM part "
    "JOIN machine ON machine.id = part.machine_id "
    "JOIN host_label ON host_label.part_id = part.id AND host_label.until IS NULL "
    "WHERE part.deleted_at IS NULL AND "
)


@dataclass(frozen=True, slots=True)
class LocatedPart(PartRow):
    """A part with its host label and the location of its machine."""

    location_id: str
    label: str


class NamedPart(NamedTuple):
    id: str
    name: str


def add_part(tx: Transaction, call: Call, machine: str, name: str, *, is_main: bool) -> str:
    part, name = new_id(), require_name(name)
    (row,) = select(tx, MachineRow, "WHERE id = ?", machine)
    insert(
        tx,
        PartRow(
            id=part,
            organization_id=row.organization_id,
            machine_id=machine,
            name=name,
            is_main=is_main,
            config=_EMPTY,
            revision=0,
            created_at=call.now,
            updated_at=call.now,
            deleted_at=None,
            restart_requested_at=None,
            last_access_at=None,
        ),
    )
    assign_label(tx, call.now, part, row.location_id, name)
    add_secret(tx, call, SecretOwner.PART, part)
    return part


def delete_part(tx: Transaction, call: Call, part: str) -> None:
    """Delete a part and its credentials. Keep its history and its log."""
    delete_secrets(tx, call, SecretOwner.PART, part)
    retire_label(tx, call.now, part)
    tx.execute("UPDATE part SET deleted_at = ? WHERE id = ?", call.now, part)
    call.changed_parts.append(part)


def list_parts(tx: Transaction, machine: str) -> list[NamedPart]:
    sql = "SELECT id, name FROM part WHERE machine_id = ? AND deleted_at IS NULL"
    return query(tx, NamedPart, sql, machine)


def select_part(tx: Transaction, part: str) -> LocatedPart | None:
    return first(query(tx, LocatedPart, f"{_SELECT} part.id = ?", part))


def find_part(
    tx: Transaction, call: Call, part: str, role: CloudRole = CloudRole.OPERATOR
) -> LocatedPart:
    """Return a part on which the actor has at least this role.

    Raise NotFound or RoleTooLow.
    """
    row = select_part(tx, part)
    found = find_role(tx, call.actor, _machine_of(row)) if row is not None else None
    if row is None or found is None:
        raise NotFound(f'there is no part "{part}", or it is not shared with you')
    if found < role:
        require_role(tx, call.actor, _machine_of(row), role)
    return row


def require_log_reader(tx: Transaction, call: Call, part: str) -> str:
    """Return the organization of a part. Raise NotFound if the actor may not read its log.

    Owners of the organization can read the log of a deleted part until the lines expire.
    """
    sql = "SELECT organization_id FROM part WHERE id = ? AND deleted_at IS NOT NULL"
    for deleted in query_values(tx, str, sql, part):
        organization = (ResourceType.ORGANIZATION, deleted)
        if find_role(tx, call.actor, organization) is CloudRole.OWNER:
            return deleted
    return find_part(tx, call, part).organization_id


def new_robot_part(
    tx: Transaction, call: Call, request: pb.NewRobotPartRequest
) -> pb.NewRobotPartResponse:
    machine = (ResourceType.MACHINE, request.robot_id)
    require_role(tx, call.actor, machine, CloudRole.OWNER)
    part = add_part(tx, call, request.robot_id, request.part_name, is_main=False)
    return pb.NewRobotPartResponse(part_id=part)


def get_robot_parts(
    tx: Transaction, call: Call, request: pb.GetRobotPartsRequest
) -> pb.GetRobotPartsResponse:
    require_role(tx, call.actor, (ResourceType.MACHINE, request.robot_id))
    rows = query(
        tx,
        LocatedPart,
        f"{_SELECT} part.machine_id = ? ORDER BY part.is_main DESC, part.name, part.id",
        request.robot_id,
    )
    return pb.GetRobotPartsResponse(parts=[describe_part(tx, call, row) for row in rows])


def get_robot_part(
    tx: Transaction, call: Call, request: pb.GetRobotPartRequest
) -> pb.GetRobotPartResponse:
    row = find_part(tx, call, request.id)
    part = describe_part(tx, call, row)
    return pb.GetRobotPartResponse(part=part, config_json=_format_config(tx, call, row, part))


def get_robot_part_by_name_and_location(
    tx: Transaction, call: Call, request: pb.GetRobotPartByNameAndLocationRequest
) -> pb.GetRobotPartByNameAndLocationResponse:
    rows = query(
        tx,
        LocatedPart,
        f"{_SELECT} part.name = ? AND machine.location_id = ? ORDER BY part.created_at",
        *(request.name, request.location_id),
    )
    for row in rows:
        if find_role(tx, call.actor, _machine_of(row)) is not None:
            return pb.GetRobotPartByNameAndLocationResponse(part=describe_part(tx, call, row))
    raise NotFound(f'there is no part "{request.name[:100]}" in this location')


def delete_robot_part(
    tx: Transaction, call: Call, request: pb.DeleteRobotPartRequest
) -> pb.DeleteRobotPartResponse:
    row = find_part(tx, call, request.part_id, CloudRole.OWNER)
    if row.is_main:
        raise InvalidRequest("the main part cannot be deleted; make another part the main one")
    delete_part(tx, call, request.part_id)
    return pb.DeleteRobotPartResponse()


def mark_part_as_main(
    tx: Transaction, call: Call, request: pb.MarkPartAsMainRequest
) -> pb.MarkPartAsMainResponse:
    row = find_part(tx, call, request.part_id, CloudRole.OWNER)
    tx.execute(
        "UPDATE part SET is_main = CASE WHEN id = ? THEN 1 ELSE 0 END WHERE machine_id = ?",
        *(request.part_id, row.machine_id),
    )
    return pb.MarkPartAsMainResponse()


def mark_part_for_restart(
    tx: Transaction, call: Call, request: pb.MarkPartForRestartRequest
) -> pb.MarkPartForRestartResponse:
    find_part(tx, call, request.part_id)
    tx.execute("UPDATE part SET restart_requested_at = ? WHERE id = ?", call.now, request.part_id)
    call.changed_parts.append(request.part_id)
    return pb.MarkPartForRestartResponse()


def create_robot_part_secret(
    tx: Transaction, call: Call, request: pb.CreateRobotPartSecretRequest
) -> pb.CreateRobotPartSecretResponse:
    row = find_part(tx, call, request.part_id, CloudRole.OWNER)
    add_secret(tx, call, SecretOwner.PART, request.part_id)
    call.changed_parts.append(request.part_id)
    return pb.CreateRobotPartSecretResponse(part=describe_part(tx, call, row))


def delete_robot_part_secret(
    tx: Transaction, call: Call, request: pb.DeleteRobotPartSecretRequest
) -> pb.DeleteRobotPartSecretResponse:
    find_part(tx, call, request.part_id, CloudRole.OWNER)
    delete_secret(tx, call, SecretOwner.PART, request.part_id, request.secret_id)
    call.changed_parts.append(request.part_id)
    return pb.DeleteRobotPartSecretResponse()


def describe_part(tx: Transaction, call: Call, row: LocatedPart) -> pb.RobotPart:
    """Describe a part. Only owners see secrets, including those in the configuration."""
    is_owner = owns_part(tx, call, row)
    text = row.config
    if not is_owner:
        text = format_masked(parse_config(text))
    config = Struct()
    config.update(parse_config(text))
    seen, info = call.presence.find(row), read_agent_info(tx, row.id)
    found = pb.RobotPart(
        id=row.id,
        name=row.name,
        dns_name=row.label,
        fqdn=call.name.full_name(row),
        local_fqdn=local_name(row),
        robot=row.machine_id,
        location_id=row.location_id,
        robot_config=config,
        robot_config_json=text,
        main_part=row.is_main,
        created_on=to_timestamp(row.created_at),
        last_updated=to_timestamp(row.updated_at),
        online_state=seen.state,
        seconds_since_online=seen.seconds_since,
        last_access=to_timestamp(seen.last_access) if seen.last_access is not None else None,
    )
    if info:
        found.user_supplied_info.update(json.loads(info))
    if software := describe_software(tx, row.id):
        found.user_supplied_info.update({"software": software})
    if notices := call.watch.list_notices(row.id):
        found.user_supplied_info.update({"notices": notices})
    if losses := describe_losses(tx, row.id):
        found.user_supplied_info.update({"log": losses})
    if is_owner:
        secrets = list_secrets(tx, call.keyring, SecretOwner.PART, row.id)
        # Damaged records may have no secret. The part is still shown, and can get a new secret.
        found.secret = secrets[0].secret if secrets else ""
        found.secrets.extend(secrets)
    return found


def owns_part(tx: Transaction, call: Call, row: LocatedPart) -> bool:
    """Return whether the actor may read the secrets of a part, including its configuration."""
    return find_role(tx, call.actor, _machine_of(row)) is CloudRole.OWNER


def _format_config(tx: Transaction, call: Call, row: LocatedPart, part: pb.RobotPart) -> str:
    """Return the configuration as JSON, with the section that the machine uses to log in."""
    merged = merge_for_part(tx, row, parse_config(row.config))
    cloud = {"id": row.id, "app_address": call.name.url}
    config = {**resolve_registry(tx, row, merged.config), "cloud": cloud}
    if not owns_part(tx, call, row):
        config = mask_config(config)
    elif part.secret:
        cloud["secret"] = part.secret
    return json.dumps(config, ensure_ascii=False)


def _machine_of(row: LocatedPart) -> tuple[ResourceType, str]:
    return ResourceType.MACHINE, row.machine_id


OPERATIONS: Final[dict[str, CloudOperation]] = {
    "NewRobotPart": writing(new_robot_part),
    "GetRobotParts": reading(get_robot_parts),
    "GetRobotPart": reading(get_robot_part),
    "GetRobotPartByNameAndLocation": reading(get_robot_part_by_name_and_location),
    "DeleteRobotPart": writing(delete_robot_part),
    "MarkPartAsMain": writing(mark_part_as_main),
    "MarkPartForRestart": writing(mark_part_for_restart),
    "CreateRobotPartSecret": writing(create_robot_part_secret),
    "DeleteRobotPartSecret": writing(delete_robot_part_secret),
}

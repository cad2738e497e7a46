"""The operation with which a client asks for its permissions."""

from __future__ import annotations

from typing import Final

from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.identity.access import CloudRole, find_role, parse_resource
from cogwork.cloud.operations.operation import Call, CloudOperation, reading
from cogwork.cloud.storage.records import Transaction

_OPERATOR_VERBS: Final = frozenset({"read", "view", "list", "get", "control", "operate"})
"""The first words of permissions that operators have. All other permissions require an owner."""


def check_permissions(
    tx: Transaction, call: Call, request: pb.CheckPermissionsRequest
) -> pb.CheckPermissionsResponse:
    """Return the requested permissions that the actor has."""
    granted = []
    for asked in request.permissions:
        role = find_role(tx, call.actor, parse_resource(asked.resource_type, asked.resource_id))
        allowed = [
            each for each in asked.permissions if role is not None and _required_role(each) <= role
        ]
        if allowed:
            granted.append(
                pb.AuthorizedPermissions(
                    resource_type=asked.resource_type,
                    resource_id=asked.resource_id,
                    permissions=allowed,
                )
            )
    return pb.CheckPermissionsResponse(authorized_permissions=granted)


def _required_role(permission: str) -> CloudRole:
    """Return the role that is required for a permission such as `read_robot_logs` or
    `robot:read`."""
    words = permission.lower().replace(":", "_").split("_")
    return CloudRole.OPERATOR if _OPERATOR_VERBS & set(words) else CloudRole.OWNER


OPERATIONS: Final[dict[str, CloudOperation]] = {"CheckPermissions": reading(check_permissions)}

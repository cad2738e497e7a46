"""Fragments as the public API shows them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from google.protobuf.struct_pb2 import Struct
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.configuration.config_mask import format_masked
from cogwork.cloud.configuration.fragment_lookup import is_shared, select_fragment
from cogwork.cloud.identity.access import CloudRole, ResourceType, find_role, require_role
from cogwork.cloud.identity.membership import organizations_of
from cogwork.cloud.identity.visibility import Visibility
from cogwork.cloud.operations.operation import Call, to_timestamp
from cogwork.cloud.storage.records import Row, Transaction
from cogwork.core.errors import NotFound

MAX_LISTED_BYTES: Final = 4 << 20
"""Of the texts in a list of fragments. Those after them are listed without their content."""

_USAGE: Final = """
SELECT config_reference.version AS version, COUNT(DISTINCT part.id) AS parts,
COUNT(DISTINCT part.machine_id) AS machines,
COUNT(DISTINCT part.organization_id) AS organizations,
COUNT(DISTINCT CASE WHEN part.organization_id = ? THEN part.machine_id END) AS own_machines
FROM config_reference JOIN part ON part.id = config_reference.owner_id
WHERE owner_type = 'part' AND target_type = 'fragment' AND target_id = ?
AND part.deleted_at IS NULL
"""


def find_fragment(tx: Transaction, call: Call, fragment: str) -> Row:
    """Return a fragment that the actor may see. Raise NotFound."""
    row = select_fragment(tx, fragment)
    if row is None or not is_shared(row, row, organizations_of(tx, call.actor)):
        raise NotFound(f'there is no fragment "{fragment[:100]}", or it is not shared with you')
    return row


def find_owned_fragment(tx: Transaction, call: Call, fragment: str) -> Row:
    """Return a fragment whose organization the actor owns. Raise NotFound or RoleTooLow."""
    row = find_fragment(tx, call, fragment)
    owner = (ResourceType.ORGANIZATION, row["organization_id"])
    require_role(tx, call.actor, owner, CloudRole.OWNER)
    return row


def require_member(tx: Transaction, call: Call, organization: str) -> None:
    if organization not in organizations_of(tx, call.actor):
        raise NotFound(f'there is no organization "{organization}", or it is not shared with you')


class FragmentView:
    """Describes the fragments of one organization to one reader.

    Others than the owners of the organization see no secrets, and a reply has a bound.
    """

    def __init__(self, tx: Transaction, call: Call, organization: str) -> None:
        self._tx = tx
        (self._organization,) = tx.query("SELECT * FROM organization WHERE id = ?", organization)
        owner = (ResourceType.ORGANIZATION, organization)
        self.is_masked = find_role(tx, call.actor, owner) is not CloudRole.OWNER

    def describe(self, fragment: Row, revision: Row, *, with_content: bool = True) -> pb.Fragment:
        owner = self._organization
        (counts,) = self._tx.query(_USAGE, owner["id"], fragment["id"])
        found = pb.Fragment(
            id=fragment["id"],
            name=fragment["name"],
            organization_owner=owner["id"],
            organization_name=owner["name"],
            public_namespace=owner["namespace"],
            public=fragment["visibility"] == Visibility.PUBLIC,
            visibility=fragment["visibility"],
            created_on=to_timestamp(fragment["created_at"]),
            last_updated=to_timestamp(revision["edited_at"]),
            revision=str(revision["revision"]),
            robot_part_count=counts["parts"],
            organization_count=counts["organizations"],
            only_used_by_owner=counts["machines"] == counts["own_machines"],
        )
        if with_content:
            found.fragment_config_json = text = self.format_content(revision)
            found.fragment.CopyFrom(_to_struct(text))
        return found

    def to_struct(self, revision: Row) -> Struct:
        return _to_struct(self.format_content(revision))

    def format_content(self, revision: Row) -> str:
        text: str = revision["config"]
        return format_masked(json.loads(text)) if self.is_masked else text


def _to_struct(text: str) -> Struct:
    found = Struct()
    found.update(json.loads(text))
    return found


def describe_usages(
    tx: Transaction, fragment: Row, organization: str, *, by_version: bool
) -> Sequence[pb.FragmentUsage]:
    """Return who uses a fragment directly: for each version, or altogether."""
    group = "GROUP BY config_reference.version ORDER BY config_reference.version"
    rows = tx.query(f"{_USAGE}{group if by_version else ''}", organization, fragment["id"])
    return [
        pb.FragmentUsage(
            fragment_id=fragment["id"],
            organizations=row["organizations"],
            machines=row["machines"],
            machines_in_current_org=row["own_machines"],
            version=row["version"] if by_version else None,
        )
        for row in rows
    ]

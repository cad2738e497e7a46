"""Fragments in the format of the public API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from google.protobuf.struct_pb2 import Struct
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.configuration.config_mask import format_masked
from cogwork.cloud.configuration.fragment_lookup import CurrentFragment, is_shared, select_fragment
from cogwork.cloud.identity.access import CloudRole, ResourceType, find_role, require_role
from cogwork.cloud.identity.membership import organizations_of
from cogwork.cloud.identity.visibility import Visibility
from cogwork.cloud.operations.operation import Call, to_timestamp
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query, select
from cogwork.cloud.storage.tables import FragmentRevisionRow, OrganizationRow
from cogwork.core.errors import NotFound

MAX_LISTED_BYTES: Final = 4 << 20
"""Maximum size of the texts in a list of fragments. Fragments beyond it are listed without their
content."""

_USAGE: Final = """
SELECT config_reference.version AS version, COUNT(DISTINCT part.id) AS parts,
COUNT(DISTINCT part.machine_id) AS machines,
COUNT(DISTINCT part.organization_id) AS organizations,
COUNT(DISTINCT CASE WHEN part.organization_id = ? THEN part.machine_id END) AS own_machines
FROM config_reference JOIN part ON part.id = config_reference.owner_id
WHERE owner_type = 'part' AND target_type = 'fragment' AND target_id = ?
AND part.deleted_at IS NULL
"""


class _Usage(NamedTuple):
    """The direct users of a fragment."""

    version: str | None
    """The version that these users name; None if no part uses the fragment."""
    parts: int
    machines: int
    organizations: int
    own_machines: int


class ListedFragment(NamedTuple):
    """A fragment with its newest revision, but without its content."""

    id: str
    organization_id: str
    created_at: int
    revision: int
    edited_at: int
    name: str
    visibility: int


def find_fragment(tx: Transaction, call: Call, fragment: str) -> CurrentFragment:
    """Return a fragment that the actor may see. Raise NotFound."""
    row = select_fragment(tx, fragment)
    if row is None or not is_shared(row, row, organizations_of(tx, call.actor)):
        raise NotFound(f'there is no fragment "{fragment[:100]}", or it is not shared with you')
    return row


def find_owned_fragment(tx: Transaction, call: Call, fragment: str) -> CurrentFragment:
    """Return a fragment whose organization the actor owns. Raise NotFound or RoleTooLow."""
    row = find_fragment(tx, call, fragment)
    owner = (ResourceType.ORGANIZATION, row.organization_id)
    require_role(tx, call.actor, owner, CloudRole.OWNER)
    return row


def require_member(tx: Transaction, call: Call, organization: str) -> None:
    if organization not in organizations_of(tx, call.actor):
        raise NotFound(f'there is no organization "{organization}", or it is not shared with you')


class FragmentView:
    """Describes the fragments of one organization to one reader.

    Only owners of the organization see secrets. The size of a reply is limited.
    """

    def __init__(self, tx: Transaction, call: Call, organization: str) -> None:
        self._tx = tx
        (self._organization,) = select(tx, OrganizationRow, "WHERE id = ?", organization)
        owner = (ResourceType.ORGANIZATION, organization)
        self.is_masked = find_role(tx, call.actor, owner) is not CloudRole.OWNER

    def describe(self, fragment: CurrentFragment, revision: FragmentRevisionRow) -> pb.Fragment:
        found = self.summarize(fragment, revision)
        found.fragment_config_json = text = self.format_content(revision)
        found.fragment.CopyFrom(_to_struct(text))
        return found

    def summarize(
        self,
        fragment: CurrentFragment | ListedFragment,
        revision: FragmentRevisionRow | ListedFragment,
    ) -> pb.Fragment:
        """Describe a fragment without its content."""
        owner = self._organization
        (counts,) = query(self._tx, _Usage, _USAGE, owner.id, fragment.id)
        return pb.Fragment(
            id=fragment.id,
            name=fragment.name,
            organization_owner=owner.id,
            organization_name=owner.name,
            public_namespace=owner.namespace,
            public=fragment.visibility == Visibility.PUBLIC,
            visibility=pb.FragmentVisibility.ValueType(fragment.visibility),
            created_on=to_timestamp(fragment.created_at),
            last_updated=to_timestamp(revision.edited_at),
            revision=str(revision.revision),
            robot_part_count=counts.parts,
            organization_count=counts.organizations,
            only_used_by_owner=counts.machines == counts.own_machines,
        )

    def to_struct(self, revision: FragmentRevisionRow) -> Struct:
        return _to_struct(self.format_content(revision))

    def format_content(self, revision: FragmentRevisionRow) -> str:
        text = revision.config
        return format_masked(json.loads(text)) if self.is_masked else text


def _to_struct(text: str) -> Struct:
    found = Struct()
    found.update(json.loads(text))
    return found


def describe_usages(
    tx: Transaction, fragment: CurrentFragment, organization: str, *, by_version: bool
) -> Sequence[pb.FragmentUsage]:
    """Count the direct users of a fragment, for each version or in total."""
    group = "GROUP BY config_reference.version ORDER BY config_reference.version"
    rows = query(tx, _Usage, f"{_USAGE}{group if by_version else ''}", organization, fragment.id)
    return [
        pb.FragmentUsage(
            fragment_id=fragment.id,
            organizations=row.organizations,
            machines=row.machines,
            machines_in_current_org=row.own_machines,
            version=row.version if by_version else None,
        )
        for row in rows
    ]

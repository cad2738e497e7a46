"""Operations on fragments: configurations that several machines share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.configuration.config_references import (
    OwnerType,
    TargetType,
    parts_that_use,
    save_references,
)
from cogwork.cloud.configuration.config_text import format_struct, require_config
from cogwork.cloud.configuration.fragment_lookup import is_shared, select_fragment, select_revision
from cogwork.cloud.fleet.fragments.fragment_edit import read_edit, read_visibility
from cogwork.cloud.fleet.fragments.fragment_history import add_revision
from cogwork.cloud.fleet.fragments.fragment_view import (
    MAX_LISTED_BYTES,
    FragmentView,
    ListedFragment,
    describe_usages,
    find_fragment,
    find_owned_fragment,
    require_member,
)
from cogwork.cloud.fleet.part_configs import StaleConfig
from cogwork.cloud.identity.access import CloudRole, ResourceType, require_role
from cogwork.cloud.identity.membership import organizations_of
from cogwork.cloud.identity.visibility import Visibility
from cogwork.cloud.operations.names import require_name
from cogwork.cloud.operations.operation import (
    Call,
    CloudOperation,
    new_id,
    read_timestamp,
    reading,
    to_timestamp,
    writing,
)
from cogwork.cloud.storage.insert import insert, upsert
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import exists, query, query_values, select
from cogwork.cloud.storage.tables import FragmentRow, FragmentTagRow
from cogwork.core.errors import CogworkError, InvalidRequest, NotFound

_MAX_FRAGMENTS: Final = 10_000
"""Maximum number of fragments in one organization."""
_MAX_TAGS: Final = 100
"""Maximum number of tags of one fragment."""
_MAX_REVISIONS: Final = 100
"""Maximum number of revisions in the description of one fragment."""
_TAG: Final = re.compile(r"(?!\d+$)[A-Za-z0-9][A-Za-z0-9._-]{0,59}")


class FragmentInUse(CogworkError):
    """Machines or other fragments use the fragment."""

    status = "FAILED_PRECONDITION"


class TooManyFragments(CogworkError):
    """The organization has too many fragments, or the fragment has too many tags."""

    status = "RESOURCE_EXHAUSTED"


def create_fragment(
    tx: Transaction, call: Call, request: pb.CreateFragmentRequest
) -> pb.CreateFragmentResponse:
    organization = request.organization_id
    require_role(tx, call.actor, (ResourceType.ORGANIZATION, organization), CloudRole.OWNER)
    (count,) = query_values(
        tx,
        int,
        "SELECT COUNT(*) AS count FROM fragment WHERE organization_id = ? AND deleted_at IS NULL",
        organization,
    )
    if count >= _MAX_FRAGMENTS:
        raise TooManyFragments(f"the organization has {_MAX_FRAGMENTS} fragments; delete one first")
    fragment = new_id()
    insert(
        tx, FragmentRow(fragment, organization, revision=0, created_at=call.now, deleted_at=None)
    )
    config = format_struct(request.config)
    visibility = read_visibility(request.visibility) or Visibility.PRIVATE
    add_revision(tx, call, fragment, None, (require_name(request.name), visibility, config))
    save_references(tx, OwnerType.FRAGMENT, fragment, require_config(config))
    return pb.CreateFragmentResponse(fragment=_read(tx, call, fragment))


def get_fragment(
    tx: Transaction, call: Call, request: pb.GetFragmentRequest
) -> pb.GetFragmentResponse:
    organizations = organizations_of(tx, call.actor)
    fragment = find_fragment(tx, call, request.id)
    revision = select_revision(tx, fragment, request.version)
    if revision is None or not is_shared(fragment, revision, organizations):
        raise NotFound(f'the fragment has no revision or tag "{request.version[:100]}"')
    is_member = fragment.organization_id in organizations
    current = {request.current_organization_id} & organizations
    (usage,) = describe_usages(tx, fragment, "".join(current), by_version=False)
    view = FragmentView(tx, call, fragment.organization_id)
    return pb.GetFragmentResponse(
        fragment=view.describe(fragment, revision),
        fragment_usage=usage,
        revisions=_list_revisions(tx, request.id) if is_member else (),
        tags=_list_tags(tx, request.id),
    )


def list_fragments(
    tx: Transaction, call: Call, request: pb.ListFragmentsRequest
) -> pb.ListFragmentsResponse:
    """List the fragments of the organization, and on request the public ones of other
    organizations.

    Without an organization, list the fragments of all organizations of which the actor is a member.
    If the list is very large, the last fragments have no content.
    """
    organizations = _list_organizations(tx, call, request.organization_id)
    wanted = {*request.fragment_visibility} or {*Visibility}
    with_others = request.show_public or bool(request.fragment_visibility)
    rows = _list_rows(tx, organizations, with_others=with_others)
    views: dict[str, FragmentView] = {}
    found, size = pb.ListFragmentsResponse(), 0
    for row in rows:
        if row.visibility not in wanted:
            continue
        owner = row.organization_id
        if owner not in views:
            views[owner] = FragmentView(tx, call, owner)
        # Content beyond the limit is not even read, because it may be gigabytes.
        full = select_fragment(tx, row.id) if size <= MAX_LISTED_BYTES else None
        size += len(full.config) if full is not None else 0
        view = views[owner]
        if full is not None and size <= MAX_LISTED_BYTES:
            found.fragments.append(view.describe(full, full))
        else:
            found.fragments.append(view.summarize(row, row))
    return found


def _list_organizations(tx: Transaction, call: Call, organization: str) -> list[str]:
    """Return the requested organization, or all organizations of which the actor is a member."""
    if organization:
        require_member(tx, call, organization)
        return [organization]
    return sorted(organizations_of(tx, call.actor))


def _list_rows(
    tx: Transaction, organizations: Sequence[str], *, with_others: bool
) -> list[ListedFragment]:
    """Return the fragments of organizations without their content; on request, also all public
    ones."""
    marks = ", ".join("?" * len(organizations)) or "NULL"
    condition = f"organization_id IN ({marks})"
    if with_others:
        condition = f"({condition} OR visibility = ?)"
    return query(
        tx,
        ListedFragment,
        "SELECT fragment.id, organization_id, created_at, fragment_revision.revision, edited_at, "  # noqa: S608 - all of it is ours
        "name, visibility FROM fragment JOIN fragment_revision "
        "ON fragment_revision.fragment_id = fragment.id "
        "AND fragment_revision.revision = fragment.revision WHERE fragment.deleted_at IS NULL "
        f"AND {condition} ORDER BY name, fragment.id",
        *(*organizations, *((Visibility.PUBLIC,) if with_others else ())),
    )


def update_fragment(
    tx: Transaction, call: Call, request: pb.UpdateFragmentRequest
) -> pb.UpdateFragmentResponse:
    """Add a revision if anything has changed, and notify all parts that use the fragment."""
    row = find_owned_fragment(tx, call, request.id)
    known = read_timestamp(request.last_known_update, "last_known_update")
    if request.HasField("last_known_update") and known != row.edited_at:
        raise StaleConfig(
            "someone else changed this fragment after you read it; read it again and repeat your "
            "change"
        )
    edit = read_edit(request, row)
    if edit.differs_from(row):
        add_revision(tx, call, request.id, row, (edit.name, edit.visibility, edit.config))
        if edit.config != row.config:
            save_references(tx, OwnerType.FRAGMENT, request.id, require_config(edit.config))
        call.changed_parts += parts_that_use(tx, TargetType.FRAGMENT, request.id)
    return pb.UpdateFragmentResponse(fragment=_read(tx, call, request.id))


def delete_fragment(
    tx: Transaction, call: Call, request: pb.DeleteFragmentRequest
) -> pb.DeleteFragmentResponse:
    """Delete a fragment, unless machines or other fragments of its organization use it."""
    row = find_owned_fragment(tx, call, request.id)
    users = query_values(
        tx,
        str,
        "SELECT fragment.id FROM config_reference JOIN fragment ON fragment.id = owner_id "
        "WHERE owner_type = 'fragment' AND target_type = 'fragment' AND target_id = ? "
        "AND organization_id = ? AND deleted_at IS NULL",
        *(request.id, row.organization_id),
    )
    (usage,) = describe_usages(tx, row, row.organization_id, by_version=False)
    if users or usage.machines_in_current_org:
        raise FragmentInUse(
            f"{usage.machines_in_current_org} machines and {len(users)} other fragments use this "
            "fragment; remove it from them first"
        )
    call.changed_parts += parts_that_use(tx, TargetType.FRAGMENT, request.id)
    tx.execute("UPDATE fragment SET deleted_at = ? WHERE id = ?", call.now, request.id)
    save_references(tx, OwnerType.FRAGMENT, request.id, {})
    return pb.DeleteFragmentResponse()


def get_fragment_usage(
    tx: Transaction, call: Call, request: pb.GetFragmentUsageRequest
) -> pb.GetFragmentUsageResponse:
    fragment = find_fragment(tx, call, request.fragment_id)
    require_member(tx, call, fragment.organization_id)
    return pb.GetFragmentUsageResponse(
        version_usages=describe_usages(tx, fragment, fragment.organization_id, by_version=True)
    )


def set_fragment_tag(
    tx: Transaction, call: Call, request: pb.SetFragmentTagRequest
) -> pb.SetFragmentTagResponse:
    fragment = find_owned_fragment(tx, call, request.fragment_id)
    if not _TAG.fullmatch(request.tag):
        raise InvalidRequest(
            f'"{request.tag[:100]}" cannot be a tag; use a word such as stable, and not a number'
        )
    revision = select_revision(tx, fragment, request.revision) if request.revision else None
    if revision is None:
        raise NotFound(f'the fragment has no revision "{request.revision[:100]}"')
    tags = [each.tag for each in _list_tags(tx, request.fragment_id)]
    if len(tags) >= _MAX_TAGS and request.tag not in tags:
        raise TooManyFragments(f"the fragment has {_MAX_TAGS} tags; delete one first")
    tag = FragmentTagRow(request.fragment_id, request.tag, revision.revision)
    upsert(tx, tag, "fragment_id", "tag")
    call.changed_parts += parts_that_use(tx, TargetType.FRAGMENT, request.fragment_id)
    return pb.SetFragmentTagResponse(tags=_list_tags(tx, request.fragment_id))


def delete_fragment_tag(
    tx: Transaction, call: Call, request: pb.DeleteFragmentTagRequest
) -> pb.DeleteFragmentTagResponse:
    fragment = find_owned_fragment(tx, call, request.fragment_id)
    used = exists(
        tx,
        "SELECT 1 FROM config_reference LEFT JOIN part ON part.id = owner_id "
        "WHERE target_type = 'fragment' AND target_id = ? AND version = ? "
        "AND (part.organization_id = ? AND part.deleted_at IS NULL OR owner_type = 'fragment')",
        *(request.fragment_id, request.tag, fragment.organization_id),
    )
    if used:
        raise FragmentInUse(
            f'machines or fragments use the tag "{request.tag[:100]}"; remove it from them first'
        )
    tx.execute(
        "DELETE FROM fragment_tag WHERE fragment_id = ? AND tag = ?",
        *(request.fragment_id, request.tag),
    )
    call.changed_parts += parts_that_use(tx, TargetType.FRAGMENT, request.fragment_id)
    return pb.DeleteFragmentTagResponse(tags=_list_tags(tx, request.fragment_id))


def _read(tx: Transaction, call: Call, fragment: str) -> pb.Fragment:
    row = select_fragment(tx, fragment)
    assert row is not None  # the caller has checked that the fragment exists
    return FragmentView(tx, call, row.organization_id).describe(row, row)


class _Edit(NamedTuple):
    revision: int
    edited_at: int


def _list_revisions(tx: Transaction, fragment: str) -> Sequence[pb.FragmentRevision]:
    rows = query(
        tx,
        _Edit,
        "SELECT revision, edited_at FROM fragment_revision WHERE fragment_id = ? "
        "ORDER BY revision DESC LIMIT ?",
        *(fragment, _MAX_REVISIONS),
    )
    return [
        pb.FragmentRevision(revision=str(row.revision), created_at=to_timestamp(row.edited_at))
        for row in rows
    ]


def _list_tags(tx: Transaction, fragment: str) -> Sequence[pb.FragmentTag]:
    rows = select(tx, FragmentTagRow, "WHERE fragment_id = ? ORDER BY tag", fragment)
    return [pb.FragmentTag(tag=row.tag, revision=str(row.revision)) for row in rows]


OPERATIONS: Final[dict[str, CloudOperation]] = {
    "CreateFragment": writing(create_fragment),
    "GetFragment": reading(get_fragment),
    "ListFragments": reading(list_fragments),
    "UpdateFragment": writing(update_fragment),
    "DeleteFragment": writing(delete_fragment),
    "GetFragmentUsage": reading(get_fragment_usage),
    "SetFragmentTag": writing(set_fragment_tag),
    "DeleteFragmentTag": writing(delete_fragment_tag),
}

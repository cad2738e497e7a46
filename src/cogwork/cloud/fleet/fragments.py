"""Operations on fragments: configurations that several machines share."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from google.protobuf.struct_pb2 import Struct
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.configuration.config_references import (
    OwnerType,
    TargetType,
    parts_that_use,
    save_references,
)
from cogwork.cloud.configuration.config_text import format_struct, require_config
from cogwork.cloud.configuration.fragment_lookup import (
    fragments_for,
    is_shared,
    refuse_mistakes,
    select_fragment,
    select_revision,
)
from cogwork.cloud.configuration.fragment_merge import FragmentUse, MistakeType, merge_fragments
from cogwork.cloud.fleet.editor import describe_editor
from cogwork.cloud.fleet.part_configs import StaleConfig
from cogwork.cloud.identity.access import CloudRole, ResourceType, require_role
from cogwork.cloud.identity.membership import organizations_of
from cogwork.cloud.identity.visibility import Visibility
from cogwork.cloud.names import require_name
from cogwork.cloud.operation import Call, Operation, new_id, reading, to_timestamp, writing
from cogwork.cloud.storage.records import Row, Transaction
from cogwork.core.errors import CogworkError, InvalidRequest, NotFound

_MAX_FRAGMENTS: Final = 10_000
"""In one organization."""
_MAX_TAGS: Final = 100
"""Of one fragment."""
_MAX_PAGE: Final = 100
_DEFAULT_PAGE: Final = 10
_TAG: Final = re.compile(r"(?!\d+$)[A-Za-z0-9][A-Za-z0-9._-]{0,59}")

_USAGE: Final = """
SELECT config_reference.version AS version, COUNT(DISTINCT part.id) AS parts,
COUNT(DISTINCT part.machine_id) AS machines,
COUNT(DISTINCT part.organization_id) AS organizations,
COUNT(DISTINCT CASE WHEN part.organization_id = ? THEN part.machine_id END) AS own_machines
FROM config_reference JOIN part ON part.id = config_reference.owner_id
WHERE owner_type = 'part' AND target_type = 'fragment' AND target_id = ?
AND part.deleted_at IS NULL
"""


class FragmentInUse(CogworkError):
    """A fragment that machines or other fragments use."""

    status = "FAILED_PRECONDITION"


class TooManyFragments(CogworkError):
    """An organization has as many fragments or tags as it may have."""

    status = "RESOURCE_EXHAUSTED"


def create_fragment(
    tx: Transaction, call: Call, request: pb.CreateFragmentRequest
) -> pb.CreateFragmentResponse:
    organization = request.organization_id
    require_role(tx, call.actor, (ResourceType.ORGANIZATION, organization), CloudRole.OWNER)
    (count,) = tx.query(
        "SELECT COUNT(*) AS count FROM fragment WHERE organization_id = ? AND deleted_at IS NULL",
        organization,
    )
    if count["count"] >= _MAX_FRAGMENTS:
        raise TooManyFragments(f"the organization has {_MAX_FRAGMENTS} fragments; delete one first")
    fragment = new_id()
    tx.execute(
        "INSERT INTO fragment (id, organization_id, revision, created_at) VALUES (?, ?, 0, ?)",
        *(fragment, organization, call.now),
    )
    visibility = _read_visibility(request.visibility) or Visibility.PRIVATE
    name, config = require_name(request.name), format_struct(request.config)
    _add_revision(tx, call, (fragment, organization), 1, (name, visibility, config))
    return pb.CreateFragmentResponse(fragment=_read(tx, fragment))


def get_fragment(
    tx: Transaction, call: Call, request: pb.GetFragmentRequest
) -> pb.GetFragmentResponse:
    organizations = organizations_of(tx, call.actor)
    fragment = find_fragment(tx, call, request.id)
    revision = select_revision(tx, fragment, request.version)
    if revision is None or not is_shared(fragment, revision, organizations):
        raise NotFound(f'the fragment has no revision and no tag "{request.version[:100]}"')
    is_member = fragment["organization_id"] in organizations
    current = request.current_organization_id
    (usage,) = _usages(tx, fragment, current if current in organizations else "", by_version=False)
    return pb.GetFragmentResponse(
        fragment=_describe(tx, fragment, revision),
        fragment_usage=usage,
        revisions=_list_revisions(tx, request.id) if is_member else (),
        tags=_list_tags(tx, request.id),
    )


def list_fragments(
    tx: Transaction, call: Call, request: pb.ListFragmentsRequest
) -> pb.ListFragmentsResponse:
    """Lists the fragments of the organization and the public ones of all, or those asked for."""
    organization = request.organization_id
    _require_member(tx, call, organization)
    wanted = {*request.fragment_visibility} or {*Visibility}
    with_others = request.show_public or bool(request.fragment_visibility)
    rows = tx.query(
        "SELECT fragment.id FROM fragment JOIN fragment_revision "
        "ON fragment_revision.fragment_id = fragment.id "
        "AND fragment_revision.revision = fragment.revision WHERE fragment.deleted_at IS NULL "
        "AND (organization_id = ? OR visibility = ?) ORDER BY fragment_revision.name, fragment.id",
        *(organization, Visibility.PUBLIC),
    )
    fragments = [row for each in rows if (row := select_fragment(tx, each["id"])) is not None]
    return pb.ListFragmentsResponse(
        fragments=[
            _describe(tx, row, row)
            for row in fragments
            if row["visibility"] in wanted
            and (with_others or row["organization_id"] == organization)
        ]
    )


def update_fragment(
    tx: Transaction, call: Call, request: pb.UpdateFragmentRequest
) -> pb.UpdateFragmentResponse:
    """Adds a revision, if anything is different. All parts that use the fragment are told."""
    row = find_owned_fragment(tx, call, request.id)
    known = request.last_known_update.ToMicroseconds()
    if request.HasField("last_known_update") and known != row["edited_at"]:
        raise StaleConfig(
            "someone else changed this fragment after you read it; read it again and repeat your "
            "change"
        )
    visibility = row["visibility"]
    if request.HasField("public"):
        visibility = Visibility.PUBLIC if request.public else Visibility.PRIVATE
    visibility = _read_visibility(request.visibility) or visibility
    config = row["config"]
    if request.HasField("fragment_config_json"):
        config = request.fragment_config_json
    elif request.HasField("config"):
        config = format_struct(request.config)
    name = require_name(request.name) if request.name else row["name"]
    if (name, visibility, config) != (row["name"], row["visibility"], row["config"]):
        owner = row["id"], row["organization_id"]
        _add_revision(tx, call, owner, row["revision"] + 1, (name, visibility, config), row)
    return pb.UpdateFragmentResponse(fragment=_read(tx, request.id))


def delete_fragment(
    tx: Transaction, call: Call, request: pb.DeleteFragmentRequest
) -> pb.DeleteFragmentResponse:
    """Deletes a fragment that the own organization does not use. Others cannot keep it."""
    row = find_owned_fragment(tx, call, request.id)
    users = tx.query(
        "SELECT fragment.id FROM config_reference JOIN fragment ON fragment.id = owner_id "
        "WHERE owner_type = 'fragment' AND target_type = 'fragment' AND target_id = ? "
        "AND organization_id = ? AND deleted_at IS NULL",
        *(request.id, row["organization_id"]),
    )
    (usage,) = _usages(tx, row, row["organization_id"], by_version=False)
    if users or usage.machines_in_current_org:
        raise FragmentInUse(
            f"{usage.machines_in_current_org} machines and {len(users)} other fragments use this "
            "fragment; remove it from them first"
        )
    call.changed_parts += parts_that_use(tx, TargetType.FRAGMENT, request.id)
    tx.execute("UPDATE fragment SET deleted_at = ? WHERE id = ?", call.now, request.id)
    save_references(tx, OwnerType.FRAGMENT, request.id, {})
    return pb.DeleteFragmentResponse()


def get_fragment_history(
    tx: Transaction, call: Call, request: pb.GetFragmentHistoryRequest
) -> pb.GetFragmentHistoryResponse:
    """Lists edits, newest first, each with the state before it. Only members see it."""
    fragment = find_fragment(tx, call, request.id)
    _require_member(tx, call, fragment["organization_id"])
    limit = min(request.page_limit, _MAX_PAGE) if request.page_limit > 0 else _DEFAULT_PAGE
    before = (
        _read_page_token(request.page_token) if request.page_token else fragment["revision"] + 1
    )
    rows = tx.query(
        "SELECT * FROM fragment_revision WHERE fragment_id = ? AND revision < ? "
        "ORDER BY revision DESC LIMIT ?",
        *(request.id, before, limit + 1),
    )
    olders: list[Row | None] = [*rows[1:], None]
    return pb.GetFragmentHistoryResponse(
        history=[
            _describe_edit(tx, fragment, *each) for each in zip(rows[:limit], olders, strict=False)
        ],
        next_page_token=str(rows[limit - 1]["revision"]) if len(rows) > limit else "",
    )


def get_fragment_usage(
    tx: Transaction, call: Call, request: pb.GetFragmentUsageRequest
) -> pb.GetFragmentUsageResponse:
    fragment = find_fragment(tx, call, request.fragment_id)
    _require_member(tx, call, fragment["organization_id"])
    return pb.GetFragmentUsageResponse(
        version_usages=_usages(tx, fragment, fragment["organization_id"], by_version=True)
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
    if len(_list_tags(tx, request.fragment_id)) >= _MAX_TAGS:
        raise TooManyFragments(f"the fragment has {_MAX_TAGS} tags; delete one first")
    tx.execute(
        "INSERT INTO fragment_tag (fragment_id, tag, revision) VALUES (?, ?, ?) "
        "ON CONFLICT (fragment_id, tag) DO UPDATE SET revision = excluded.revision",
        *(request.fragment_id, request.tag, revision["revision"]),
    )
    call.changed_parts += parts_that_use(tx, TargetType.FRAGMENT, request.fragment_id)
    return pb.SetFragmentTagResponse(tags=_list_tags(tx, request.fragment_id))


def delete_fragment_tag(
    tx: Transaction, call: Call, request: pb.DeleteFragmentTagRequest
) -> pb.DeleteFragmentTagResponse:
    fragment = find_owned_fragment(tx, call, request.fragment_id)
    used = tx.query(
        "SELECT 1 FROM config_reference LEFT JOIN part ON part.id = owner_id "
        "WHERE target_type = 'fragment' AND target_id = ? AND version = ? "
        "AND (part.organization_id = ? AND part.deleted_at IS NULL OR owner_type = 'fragment')",
        *(request.fragment_id, request.tag, fragment["organization_id"]),
    )
    if used:
        raise FragmentInUse(f'"{request.tag[:100]}" is used; remove it from the users first')
    tx.execute(
        "DELETE FROM fragment_tag WHERE fragment_id = ? AND tag = ?",
        *(request.fragment_id, request.tag),
    )
    call.changed_parts += parts_that_use(tx, TargetType.FRAGMENT, request.fragment_id)
    return pb.DeleteFragmentTagResponse(tags=_list_tags(tx, request.fragment_id))


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


def describe_fragment(tx: Transaction, fragment: Row, version: str) -> pb.Fragment:
    return _describe(tx, fragment, select_revision(tx, fragment, version) or fragment)


def _add_revision(
    tx: Transaction,
    call: Call,
    owner: tuple[str, str],
    revision: int,
    state: tuple[str, int, str],
    previous: Row | None = None,
) -> None:
    """`owner`: the fragment and its organization. `state`: name, visibility and configuration."""
    fragment, organization = owner
    name, visibility, config = state
    content = require_config(config)
    _check_content(tx, fragment, content, organization, visibility)
    # Two edits within a microsecond must differ, because clients compare the times.
    edited_at = call.now if previous is None else max(call.now, previous["edited_at"] + 1)
    tx.execute(
        "INSERT INTO fragment_revision (fragment_id, revision, edited_at, editor_type, editor_id, "
        "name, visibility, config) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        *(fragment, revision, edited_at, call.actor.type, call.actor.id),
        *(name, visibility, config),
    )
    tx.execute("UPDATE fragment SET revision = ? WHERE id = ?", revision, fragment)
    save_references(tx, OwnerType.FRAGMENT, fragment, content)
    call.changed_parts += parts_that_use(tx, TargetType.FRAGMENT, fragment)


def _check_content(
    tx: Transaction, fragment: str, content: dict[str, Any], organization: str, visibility: int
) -> None:
    """Raise InvalidRequest if the fragment would be a mistake wherever it is used.

    What is public must only use what is public.
    """
    find = fragments_for(tx, (organization,) if visibility == Visibility.PRIVATE else ())

    def find_here(use: FragmentUse) -> dict[str, Any]:
        return content if use.id == fragment else find(use)

    mistakes = merge_fragments({"fragments": [fragment]}, find_here).mistakes
    # Its own variables get their values where it is used.
    own = (MistakeType.VARIABLE, fragment)
    refuse_mistakes([each for each in mistakes if (each.type, each.fragment_id) != own])


def _require_member(tx: Transaction, call: Call, organization: str) -> None:
    if organization not in organizations_of(tx, call.actor):
        raise NotFound(f'there is no organization "{organization}", or it is not shared with you')


def _read_visibility(number: int) -> int | None:
    """Return a visibility of a request; None if it has none."""
    if not number:
        return None
    try:
        return Visibility(number)
    except ValueError:
        raise InvalidRequest(f"{number} is not a visibility") from None


def _read_page_token(token: str) -> int:
    try:
        return int(token)
    except ValueError:
        raise InvalidRequest("the page token is not one of this cloud") from None


def _read(tx: Transaction, fragment: str) -> pb.Fragment:
    row = select_fragment(tx, fragment)
    assert row is not None  # the caller has checked it
    return _describe(tx, row, row)


def _describe(tx: Transaction, fragment: Row, revision: Row) -> pb.Fragment:
    organization = fragment["organization_id"]
    (owner,) = tx.query("SELECT * FROM organization WHERE id = ?", organization)
    (counts,) = tx.query(_USAGE, organization, fragment["id"])
    return pb.Fragment(
        id=fragment["id"],
        name=fragment["name"],
        fragment=_to_struct(revision["config"]),
        fragment_config_json=revision["config"],
        organization_owner=organization,
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


def _describe_edit(
    tx: Transaction, fragment: Row, row: Row, older: Row | None
) -> pb.FragmentHistoryEntry:
    old = None
    if older is not None:
        old = _describe(tx, fragment, older)
        old.name, old.visibility = older["name"], older["visibility"]
        old.public = older["visibility"] == Visibility.PUBLIC
    return pb.FragmentHistoryEntry(
        fragment=fragment["id"],
        edited_on=to_timestamp(row["edited_at"]),
        old=old,
        edited_by=describe_editor(tx, row["editor_id"]),
        revision=str(row["revision"]),
        config=_to_struct(row["config"]),
    )


def _to_struct(config: str) -> Struct:
    found = Struct()
    found.update(json.loads(config))
    return found


def _usages(
    tx: Transaction, fragment: Row, organization: str, *, by_version: bool
) -> list[pb.FragmentUsage]:
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


def _list_revisions(tx: Transaction, fragment: str) -> Sequence[pb.FragmentRevision]:
    rows = tx.query(
        "SELECT revision, edited_at FROM fragment_revision WHERE fragment_id = ? "
        "ORDER BY revision DESC LIMIT ?",
        *(fragment, _MAX_PAGE),
    )
    return [
        pb.FragmentRevision(
            revision=str(row["revision"]), created_at=to_timestamp(row["edited_at"])
        )
        for row in rows
    ]


def _list_tags(tx: Transaction, fragment: str) -> Sequence[pb.FragmentTag]:
    rows = tx.query("SELECT * FROM fragment_tag WHERE fragment_id = ? ORDER BY tag", fragment)
    return [pb.FragmentTag(tag=row["tag"], revision=str(row["revision"])) for row in rows]


OPERATIONS: Final[dict[str, Operation]] = {
    "CreateFragment": writing(create_fragment),
    "GetFragment": reading(get_fragment),
    "ListFragments": reading(list_fragments),
    "UpdateFragment": writing(update_fragment),
    "DeleteFragment": writing(delete_fragment),
    "GetFragmentHistory": reading(get_fragment_history),
    "GetFragmentUsage": reading(get_fragment_usage),
    "SetFragmentTag": writing(set_fragment_tag),
    "DeleteFragmentTag": writing(delete_fragment_tag),
}

"""Edits of fragments, and the checks before they are saved.

An edit affects all machines that use the fragment, so it is checked against their configurations.
The checks are slow, so they run before the transaction.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.configuration.config_checker import ConfigChecker
from cogwork.cloud.configuration.config_mask import require_unmasked
from cogwork.cloud.configuration.config_references import require_few_references
from cogwork.cloud.configuration.config_text import format_struct, require_config
from cogwork.cloud.configuration.fragment_change import FragmentChange
from cogwork.cloud.configuration.fragment_lookup import (
    CurrentFragment,
    fragments_for,
    refuse_mistakes,
    select_revision,
)
from cogwork.cloud.configuration.fragment_merge import MistakeType, merge_fragments
from cogwork.cloud.fleet.fragments.fragment_impact import Impact, measure_impact
from cogwork.cloud.fleet.fragments.fragment_view import find_owned_fragment
from cogwork.cloud.identity.access import CloudRole, ResourceType, require_role
from cogwork.cloud.identity.actor import Actor
from cogwork.cloud.identity.visibility import Visibility
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.operations.names import require_name
from cogwork.cloud.operations.operation import new_id
from cogwork.cloud.storage.records import Transaction
from cogwork.core.errors import InvalidRequest


class FragmentEdit(NamedTuple):
    """A fragment after an edit."""

    name: str
    visibility: int
    config: str

    def differs_from(self, row: CurrentFragment) -> bool:
        return tuple(self) != (row.name, row.visibility, row.config)


def read_edit(request: pb.UpdateFragmentRequest, row: CurrentFragment) -> FragmentEdit:
    """Return the edit in a request. Raise InvalidRequest."""
    visibility = row.visibility
    if request.HasField("public"):
        visibility = Visibility.PUBLIC if request.public else Visibility.PRIVATE
    visibility = read_visibility(request.visibility) or visibility
    config = row.config
    if request.HasField("fragment_config_json"):
        config = request.fragment_config_json
    elif request.HasField("config"):
        config = format_struct(request.config)
    name = require_name(request.name) if request.name else row.name
    return FragmentEdit(name, visibility, config)


def read_visibility(number: int) -> int | None:
    """Return the visibility in a request; None if it has none. Raise InvalidRequest."""
    if not number:
        return None
    try:
        return Visibility(number)
    except ValueError:
        raise InvalidRequest(f"{number} is not a value of Visibility") from None


async def check_create(
    context: CloudContext, _: ConfigChecker, actor: Actor, request: pb.CreateFragmentRequest
) -> None:
    """Check a new fragment, which no machine uses yet. Raise InvalidRequest."""

    def check(tx: Transaction) -> None:
        owner = (ResourceType.ORGANIZATION, request.organization_id)
        require_role(tx, actor, owner, CloudRole.OWNER)
        visibility = read_visibility(request.visibility) or Visibility.PRIVATE
        content = require_config(format_struct(request.config))
        _check_content(tx, (new_id(), request.organization_id), visibility, content, {})

    await context.records.read(check)


async def check_update(
    context: CloudContext, checker: ConfigChecker, actor: Actor, request: pb.UpdateFragmentRequest
) -> None:
    """Raise InvalidRequest if the edit would cause new mistakes on machines."""
    (await preview_update(context, checker, actor, request)).refuse_mistakes()


async def check_tag(
    context: CloudContext, checker: ConfigChecker, actor: Actor, request: pb.SetFragmentTagRequest
) -> None:
    """Raise InvalidRequest if the tag would cause new mistakes on the machines that use it."""

    def read_change(tx: Transaction) -> tuple[FragmentChange, str]:
        row = find_owned_fragment(tx, context.make_call(actor), request.fragment_id)
        revision = select_revision(tx, row, request.revision) if request.revision else None
        texts = {request.tag: revision.config} if revision is not None else {}
        return FragmentChange(row.id, texts), row.organization_id

    change, organization = await context.records.read(read_change)
    (await measure_impact(context, checker, change, organization)).refuse_mistakes()


async def preview_update(
    context: CloudContext, checker: ConfigChecker, actor: Actor, request: pb.UpdateFragmentRequest
) -> Impact:
    """Return the impact of an edit. Raise InvalidRequest if the fragment itself has mistakes."""

    def read_change(tx: Transaction) -> tuple[FragmentChange, str]:
        row = find_owned_fragment(tx, context.make_call(actor), request.id)
        edit, organization = read_edit(request, row), row.organization_id
        if not edit.differs_from(row):
            return FragmentChange(request.id, {}), organization
        stored = json.loads(row.config)
        content = require_config(edit.config)
        _check_content(tx, (request.id, organization), edit.visibility, content, stored)
        # Include the number of the next revision, because configurations may already name it.
        versions = ("", str(row.revision + 1))
        return FragmentChange(request.id, dict.fromkeys(versions, edit.config)), organization

    change, organization = await context.records.read(read_change)
    return await measure_impact(context, checker, change, organization)


def _check_content(
    tx: Transaction,
    owner: tuple[str, str],
    visibility: int,
    content: dict[str, Any],
    stored: dict[str, Any],
) -> None:
    """Raise InvalidRequest if the content is wrong for every machine.

    `owner` has the IDs of the fragment and its organization. A fragment that other organizations
    can use must only use fragments that they can use, too.
    """
    require_few_references(content)
    require_unmasked(content, stored)
    fragment, organization = owner
    find = fragments_for(tx, (organization,) if visibility == Visibility.PRIVATE else ())
    change = FragmentChange(fragment, {"": json.dumps(content)})
    mistakes = merge_fragments({"fragments": [fragment]}, change.apply(find)).mistakes
    # Ignore missing variables: the configurations that use the fragment set them.
    own = (MistakeType.VARIABLE, fragment)
    refuse_mistakes([each for each in mistakes if (each.type, each.fragment_id) != own])

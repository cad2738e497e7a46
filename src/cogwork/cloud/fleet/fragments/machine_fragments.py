"""The operation that shows the fragments of a machine, and the mistakes in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from google.protobuf.struct_pb2 import Struct
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.configuration.config_mask import mask_config
from cogwork.cloud.configuration.config_text import parse_config
from cogwork.cloud.configuration.fragment_lookup import (
    fragments_for,
    is_shared,
    select_fragment,
    select_revision,
)
from cogwork.cloud.configuration.fragment_merge import (
    MAX_OVERRIDES,
    Merged,
    Mistake,
    MistakeType,
    merge_fragments,
)
from cogwork.cloud.configuration.fragment_use import MAX_USES, FragmentUse, parse_use
from cogwork.cloud.configuration.merge_budget import MergeBudget
from cogwork.cloud.fleet.fragments.fragment_view import MAX_LISTED_BYTES, FragmentView
from cogwork.cloud.identity.access import (
    CloudRole,
    ResourceType,
    find_role,
    organization_of,
    require_role,
)
from cogwork.cloud.operations.operation import Call, CloudOperation, reading
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query_values

_ERROR_TYPES: Final = {
    MistakeType.NO_ACCESS: pb.FragmentErrorType.FRAGMENT_ERROR_TYPE_NO_ACCESS,
    MistakeType.TOO_DEEP: pb.FragmentErrorType.FRAGMENT_ERROR_TYPE_NESTING_LIMIT_EXCEEDED,
    MistakeType.INVALID: pb.FragmentErrorType.FRAGMENT_ERROR_TYPE_CHILD_ID_INVALID,
    MistakeType.CYCLE: pb.FragmentErrorType.FRAGMENT_ERROR_TYPE_CYCLE_DETECTED,
}


def list_machine_fragments(
    tx: Transaction, call: Call, request: pb.ListMachineFragmentsRequest
) -> pb.ListMachineFragmentsResponse:
    """List the fragments of all parts of a machine, with the configuration that each adds.

    The size limit for the fragments of one part applies to all parts together.
    """
    machine = (ResourceType.MACHINE, request.machine_id)
    require_role(tx, call.actor, machine)
    organization = organization_of(tx, machine)
    configs = [*_configs_of(tx, request.machine_id), _additional(request)]
    uses = {use[:2]: use for config in configs for use in _uses_of(config)}
    found, size = pb.ListMachineFragmentsResponse(), 0
    for use in islice(uses.values(), MAX_USES):
        row = select_fragment(tx, use.id)
        if row is not None and is_shared(row, row, (organization,)):
            revision = select_revision(tx, row, use.version) or row
            size += len(revision.config)
            view = FragmentView(tx, call, row.organization_id)
            describe = view.describe if size <= MAX_LISTED_BYTES else view.summarize
            found.fragments.append(describe(row, revision))
    is_masked = find_role(tx, call.actor, machine) is not CloudRole.OWNER
    budget = MergeBudget()
    for config in configs:
        for use_id, merged in _merge_each(tx, organization, config, budget):
            content = mask_config(merged.config) if is_masked else merged.config
            found.resolved_fragments.extend(_describe(tx, use_id, content, merged))
    return found


def _configs_of(tx: Transaction, machine: str) -> list[dict[str, Any]]:
    texts = query_values(
        tx,
        str,
        "SELECT config FROM part WHERE machine_id = ? AND deleted_at IS NULL "
        "ORDER BY is_main DESC, name, id",
        machine,
    )
    return [*map(parse_config, texts)]


def _uses_of(config: dict[str, Any]) -> list[FragmentUse]:
    uses = map(parse_use, _list_of(config, "fragments", MAX_USES))
    return [each for each in uses if each is not None]


def _additional(request: pb.ListMachineFragmentsRequest) -> dict[str, Any]:
    uses: list[Any] = [*request.additional_fragment_ids]
    uses += [
        {"id": each.fragment_id, "version": each.version} for each in request.additional_fragments
    ]
    return {"fragments": uses}


def _merge_each(
    tx: Transaction, organization: str, config: dict[str, Any], budget: MergeBudget
) -> Iterator[tuple[str, Merged]]:
    """Yield the ID of each fragment of a configuration, and the result of merging it alone."""
    find = fragments_for(tx, (organization,))
    overrides = _overrides_by_fragment(config)
    for item in _list_of(config, "fragments", MAX_USES):
        use = parse_use(item)
        fragment_id = use.id if use is not None else ""
        mods = overrides.get(fragment_id, [])
        alone = {"fragments": [item], "fragment_mods": mods}
        yield fragment_id, merge_fragments(alone, find, budget)


def _describe(
    tx: Transaction, fragment_id: str, content: dict[str, Any], merged: Merged
) -> Iterator[pb.ResolvedFragment]:
    """Yield one message for each mistake, or one without a mistake. The first message has the
    content."""
    resolved = Struct()
    resolved.update(content)
    row = select_fragment(tx, fragment_id)
    errors: list[pb.FragmentError | None] = [*map(_describe_mistake, merged.mistakes)]
    for index, error in enumerate(errors or [None]):
        yield pb.ResolvedFragment(
            fragment_id=fragment_id,
            resolved_config=resolved if index == 0 else None,
            error=error,
            revision=str(row.revision) if row is not None else "",
        )


def _overrides_by_fragment(config: dict[str, Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for each in _list_of(config, "fragment_mods", MAX_OVERRIDES):
        if isinstance(each, dict) and isinstance(each.get("fragment_id"), str):
            found[each["fragment_id"]].append(each)
    return found


def _list_of(config: dict[str, Any], section: str, limit: int) -> list[Any]:
    items = config.get(section)
    return items[:limit] if isinstance(items, list) else []


def _describe_mistake(mistake: Mistake) -> pb.FragmentError:
    return pb.FragmentError(
        error_type=_ERROR_TYPES.get(
            mistake.type, pb.FragmentErrorType.FRAGMENT_ERROR_TYPE_UNSPECIFIED
        ),
        fragment_id=mistake.fragment_id,
        detail=mistake.text,
    )


OPERATIONS: Final[dict[str, CloudOperation]] = {
    "ListMachineFragments": reading(list_machine_fragments),
}

"""The operation that shows which fragments a machine uses, and the mistakes in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.struct_pb2 import Struct
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.configuration.fragment_lookup import fragments_for, is_shared, select_fragment
from cogwork.cloud.configuration.fragment_merge import (
    FragmentUse,
    Mistake,
    MistakeType,
    merge_fragments,
    parse_use,
)
from cogwork.cloud.fleet.fragments import describe_fragment
from cogwork.cloud.identity.access import ResourceType, organization_of, require_role
from cogwork.cloud.operation import Call, Operation, reading
from cogwork.cloud.storage.records import Transaction

_ERROR_TYPES: Final = {
    MistakeType.NO_ACCESS: pb.FragmentErrorType.FRAGMENT_ERROR_TYPE_NO_ACCESS,
    MistakeType.TOO_DEEP: pb.FragmentErrorType.FRAGMENT_ERROR_TYPE_NESTING_LIMIT_EXCEEDED,
    MistakeType.INVALID: pb.FragmentErrorType.FRAGMENT_ERROR_TYPE_CHILD_ID_INVALID,
    MistakeType.CYCLE: pb.FragmentErrorType.FRAGMENT_ERROR_TYPE_CYCLE_DETECTED,
}


def list_machine_fragments(
    tx: Transaction, call: Call, request: pb.ListMachineFragmentsRequest
) -> pb.ListMachineFragmentsResponse:
    """Lists the fragments of all parts, with what each adds to the configuration."""
    machine = (ResourceType.MACHINE, request.machine_id)
    require_role(tx, call.actor, machine)
    organization = organization_of(tx, machine)
    uses = [use for config in _configs_of(tx, request.machine_id) for use in _uses_of(config)]
    uses += [FragmentUse(each) for each in request.additional_fragment_ids]
    uses += [FragmentUse(each.fragment_id, each.version) for each in request.additional_fragments]
    found = pb.ListMachineFragmentsResponse()
    for use in {each[:2]: each for each in uses}.values():
        row = select_fragment(tx, use.id)
        if row is not None and is_shared(row, row, (organization,)):
            found.fragments.append(describe_fragment(tx, row, use.version))
    for config in (*_configs_of(tx, request.machine_id), _additional(request)):
        found.resolved_fragments.extend(_resolve(tx, organization, config))
    return found


def _configs_of(tx: Transaction, machine: str) -> list[dict[str, Any]]:
    rows = tx.query(
        "SELECT config FROM part WHERE machine_id = ? AND deleted_at IS NULL "
        "ORDER BY is_main DESC, name, id",
        machine,
    )
    return [json.loads(row["config"]) for row in rows]


def _uses_of(config: dict[str, Any]) -> list[FragmentUse]:
    items = config.get("fragments")
    uses = map(parse_use, items if isinstance(items, list) else [])
    return [each for each in uses if each is not None]


def _additional(request: pb.ListMachineFragmentsRequest) -> dict[str, Any]:
    uses: list[Any] = [*request.additional_fragment_ids]
    uses += [
        {"id": each.fragment_id, "version": each.version} for each in request.additional_fragments
    ]
    return {"fragments": uses}


def _resolve(
    tx: Transaction, organization: str, config: dict[str, Any]
) -> Iterator[pb.ResolvedFragment]:
    """Yield each fragment of a configuration alone, or the mistakes that it makes."""
    find = fragments_for(tx, (organization,))
    items, overrides = config.get("fragments"), config.get("fragment_mods", [])
    for item in items if isinstance(items, list) else []:
        use = parse_use(item)
        mine = [
            each
            for each in (overrides if isinstance(overrides, list) else [])
            if isinstance(each, dict) and use is not None and each.get("fragment_id") == use.id
        ]
        merged = merge_fragments({"fragments": [item], "fragment_mods": mine}, find)
        resolved = Struct()
        resolved.update(merged.config)
        fragment_id = use.id if use is not None else ""
        row = select_fragment(tx, fragment_id)
        errors: list[pb.FragmentError | None] = [*map(_describe_mistake, merged.mistakes)]
        for error in errors or [None]:
            yield pb.ResolvedFragment(
                fragment_id=fragment_id,
                resolved_config=resolved,
                error=error,
                revision=str(row["revision"]) if row is not None and use is not None else "",
            )


def _describe_mistake(mistake: Mistake) -> pb.FragmentError:
    return pb.FragmentError(
        error_type=_ERROR_TYPES.get(
            mistake.type, pb.FragmentErrorType.FRAGMENT_ERROR_TYPE_UNSPECIFIED
        ),
        fragment_id=mistake.fragment_id,
        detail=mistake.text,
    )


OPERATIONS: Final[dict[str, Operation]] = {
    "ListMachineFragments": reading(list_machine_fragments),
}

"""Which fragments and registry items the configurations of parts and fragments name.

With it, the parts that a change affects are found without reading all configurations.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from cogwork.cloud.storage.records import Transaction


class OwnerType(enum.StrEnum):
    PART = "part"
    FRAGMENT = "fragment"


class TargetType(enum.StrEnum):
    FRAGMENT = "fragment"
    ITEM = "item"
    """An item of the registry."""


class Reference(NamedTuple):
    type: TargetType
    id: str
    version: str = ""


_MAX_LENGTH: Final = 300

_PARTS_THAT_USE: Final = """
WITH RECURSIVE owner (type, id) AS (
    SELECT owner_type, owner_id FROM config_reference WHERE target_type = ? AND target_id = ?
    UNION
    SELECT config_reference.owner_type, config_reference.owner_id
    FROM config_reference JOIN owner
    ON config_reference.target_type = 'fragment' AND config_reference.target_id = owner.id
    WHERE owner.type = 'fragment'
)
SELECT part.id FROM part JOIN owner ON owner.type = 'part' AND owner.id = part.id
WHERE part.deleted_at IS NULL
"""


def list_references(config: Any) -> set[Reference]:
    """Return what a configuration names. Malformed sections name nothing."""
    return {*_list_references(config if isinstance(config, dict) else {})}


def save_references(tx: Transaction, owner: OwnerType, owner_id: str, config: Any) -> None:
    """Replace what is known about a configuration."""
    tx.execute(
        "DELETE FROM config_reference WHERE owner_type = ? AND owner_id = ?", owner, owner_id
    )
    for each in list_references(config):
        tx.execute(
            "INSERT INTO config_reference (owner_type, owner_id, target_type, target_id, version) "
            "VALUES (?, ?, ?, ?, ?)",
            *(owner, owner_id, each.type, each.id, each.version),
        )


def parts_that_use(tx: Transaction, target: TargetType, target_id: str) -> list[str]:
    """Return the parts whose configurations name something, directly or in fragments."""
    return [row["id"] for row in tx.query(_PARTS_THAT_USE, target, target_id)]


def _list_references(config: dict[str, Any]) -> Iterator[Reference]:
    for each in _items(config, "fragments"):
        if isinstance(each, str):
            yield from _reference(TargetType.FRAGMENT, each, "")
        elif isinstance(each, dict):
            yield from _reference(TargetType.FRAGMENT, each.get("id"), each.get("version"))
    for section, key in (("modules", "module_id"), ("packages", "package")):
        for each in _items(config, section):
            if isinstance(each, dict) and isinstance(each.get(key), str):
                name = each[key].replace("/", ":", 1)
                yield from _reference(TargetType.ITEM, name, each.get("version"))


def _items(config: dict[str, Any], section: str) -> list[Any]:
    found = config.get(section)
    return found if isinstance(found, list) else []


def _reference(kind: TargetType, name: Any, version: Any) -> Iterator[Reference]:
    version = version if isinstance(version, str) else ""
    if isinstance(name, str) and len(name) <= _MAX_LENGTH and len(version) <= _MAX_LENGTH:
        yield Reference(kind, name, version)

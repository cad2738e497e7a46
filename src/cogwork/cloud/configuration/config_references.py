"""The references from configurations of parts and fragments to fragments and registry items.

They show which parts a change affects, so that not all configurations must be read.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from cogwork.cloud.configuration.fragment_use import MAX_USES
from cogwork.cloud.storage.insert import insert
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query, query_values
from cogwork.cloud.storage.tables import ConfigReferenceRow
from cogwork.core.errors import InvalidRequest


class OwnerType(enum.StrEnum):
    PART = "part"
    FRAGMENT = "fragment"


class TargetType(enum.StrEnum):
    FRAGMENT = "fragment"
    ITEM = "item"
    """A registry item."""


class ConfigMention(NamedTuple):
    type: TargetType
    id: str
    version: str = ""


class PartUser(NamedTuple):
    """A part whose configuration refers to an item or a fragment."""

    id: str
    name: str
    is_main: bool
    organization_id: str
    machine_id: str
    machine: str
    """The name of the machine."""


_MAX_LENGTH: Final = 300
_MAX_ITEMS: Final = 1000
"""Maximum number of modules, and of packages, in one configuration."""
_ITEM_KEYS: Final = {"modules": "module_id", "packages": "package"}
_LIMITS: Final = {"fragments": MAX_USES, **dict.fromkeys(_ITEM_KEYS, _MAX_ITEMS)}

_OWNERS: Final = """
WITH RECURSIVE owner (type, id) AS (
    SELECT owner_type, owner_id FROM config_reference WHERE target_type = ? AND target_id = ?
    UNION
    SELECT config_reference.owner_type, config_reference.owner_id
    FROM config_reference JOIN owner
    ON config_reference.target_type = 'fragment' AND config_reference.target_id = owner.id
    WHERE owner.type = 'fragment'
)
"""
_PARTS_THAT_USE: Final = f"""{_OWNERS}
SELECT part.id FROM part JOIN owner ON owner.type = 'part' AND owner.id = part.id
WHERE part.deleted_at IS NULL
"""  # noqa: S608 - all of it is ours
_USERS: Final = f"""{_OWNERS}
SELECT part.id, part.name, part.is_main, part.organization_id, part.machine_id,
machine.name AS machine
FROM part JOIN owner ON owner.type = 'part' AND owner.id = part.id
JOIN machine ON machine.id = part.machine_id
WHERE part.deleted_at IS NULL ORDER BY part.id
"""  # noqa: S608


def require_few_references(config: dict[str, Any]) -> None:
    """Raise InvalidRequest if a section has too many entries."""
    for section, limit in _LIMITS.items():
        items = config.get(section)
        if isinstance(items, list) and len(items) > limit:
            raise InvalidRequest(
                f"{section} has {len(items)} entries; use at most {limit}, and remove the others"
            )


def list_references(config: Any) -> set[ConfigMention]:
    """Return the references in a configuration. Ignore malformed sections."""
    return {*_list_references(config if isinstance(config, dict) else {})}


def save_references(tx: Transaction, owner: OwnerType, owner_id: str, config: Any) -> None:
    """Replace the stored references of a configuration."""
    tx.execute(
        "DELETE FROM config_reference WHERE owner_type = ? AND owner_id = ?", owner, owner_id
    )
    for each in list_references(config):
        insert(tx, ConfigReferenceRow(owner, owner_id, each.type, each.id, each.version))


def parts_that_use(tx: Transaction, target: TargetType, target_id: str) -> list[str]:
    """Return the IDs of parts that refer to an item or a fragment, directly or through a
    fragment."""
    return query_values(tx, str, _PARTS_THAT_USE, target, target_id)


def list_users(tx: Transaction, target: TargetType, target_id: str) -> list[PartUser]:
    """Return the parts that refer to an item or a fragment, directly or through a fragment."""
    return query(tx, PartUser, _USERS, target, target_id)


def _list_references(config: dict[str, Any]) -> Iterator[ConfigMention]:
    for each in _items(config, "fragments"):
        if isinstance(each, str):
            yield from _reference(TargetType.FRAGMENT, each, "")
        elif isinstance(each, dict):
            yield from _reference(TargetType.FRAGMENT, each.get("id"), each.get("version"))
    for section, key in _ITEM_KEYS.items():
        for each in _items(config, section):
            if isinstance(each, dict) and isinstance(each.get(key), str):
                name = each[key].replace("/", ":", 1)
                yield from _reference(TargetType.ITEM, name, each.get("version"))


def _items(config: dict[str, Any], section: str) -> list[Any]:
    found = config.get(section)
    return found[: _LIMITS[section]] if isinstance(found, list) else []


def _reference(kind: TargetType, name: Any, version: Any) -> Iterator[ConfigMention]:
    version = version if isinstance(version, str) else ""
    if isinstance(name, str) and len(name) <= _MAX_LENGTH and len(version) <= _MAX_LENGTH:
        yield ConfigMention(kind, name, version)

"""A configuration with the content of its fragments."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


class MergedConfig:
    """A configuration with its fragments. The items of the configuration take precedence."""

    def __init__(self, config: Json) -> None:
        self.config = config
        self._items: dict[str, dict[str, Any]] = {}
        """The items of the sections that are lists, by section and name."""

    def add(self, content: Json) -> list[tuple[str, str]]:
        """Add a fragment. Return the sections and names of items that clash, and are left out.

        An item clashes if a different item with the same name exists.
        """
        clashes = []
        for key, section in content.items():
            mine = self.config.get(key)
            if mine is None:
                self.config[key] = section
            elif isinstance(mine, list) and isinstance(section, list):
                clashes += [(key, name) for name in self._add_items(key, section)]
        return clashes

    def _add_items(self, section: str, items: list[Any]) -> list[str]:
        known = self._items.get(section)
        if known is None:
            # Copy the list, because it may belong to the caller.
            self.config[section] = mine = [*self.config[section]]
            known = self._items[section] = _items_by_name(mine)
        new = [each for each in items if name_of(each) not in known]
        clashes = [
            name
            for each in items
            if (name := name_of(each)) is not None and name in known and each != known[name]
        ]
        self.config[section] += new
        known.update(_items_by_name(new))
        return clashes


def _items_by_name(items: list[Any]) -> dict[str, Any]:
    return {name: each for each in items if (name := name_of(each)) is not None}


def name_of(item: Any) -> str | None:
    name = item.get("name") or item.get("id") if isinstance(item, dict) else None
    return name if isinstance(name, str) else None

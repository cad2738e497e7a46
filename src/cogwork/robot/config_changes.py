"""Summary of the resources that a new configuration adds, changes and removes."""

from __future__ import annotations

from cogwork.config.check.loader import LoadedConfig

ConfigChanges = dict[str, list[str]]


def summarize_changes(old: LoadedConfig | None, new: LoadedConfig) -> ConfigChanges:
    """Return the names under the keys `added`, `changed` and `removed`. Empty lists are omitted."""
    before = {spec.name: spec for spec in old.result.specs} if old is not None else {}
    after = {spec.name: spec for spec in new.result.specs}
    found = {
        "added": [name for name in after if name not in before],
        "changed": [name for name in after if name in before and after[name] != before[name]],
        "removed": [name for name in before if name not in after],
    }
    return {change: [str(name) for name in names] for change, names in found.items() if names}

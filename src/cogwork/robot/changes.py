"""Which resources a configuration adds, changes and removes, by name."""

from __future__ import annotations

from cogwork.config.load import Loaded

Changes = dict[str, list[str]]


def changed(old: Loaded | None, new: Loaded) -> Changes:
    """Only what there is to say: no key without a name."""
    before = {spec.name: spec for spec in old.checked.specs} if old is not None else {}
    after = {spec.name: spec for spec in new.checked.specs}
    found = {
        "added": [name for name in after if name not in before],
        "changed": [name for name in after if name in before and after[name] != before[name]],
        "removed": [name for name in before if name not in after],
    }
    return {what: [str(name) for name in names] for what, names in found.items() if names}

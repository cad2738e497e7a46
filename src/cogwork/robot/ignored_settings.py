"""The settings of a resource that the machine ignores, and the reasons."""

from __future__ import annotations

from collections.abc import Callable

from cogwork.config.check.diagnostics import Effect
from cogwork.config.check.loader import LoadedConfig
from cogwork.graph.name import ResourceName

_MAX_LISTED = 3
"""Maximum ignored settings per resource in the status."""


def find_ignored_settings(
    loaded: LoadedConfig, redact: Callable[[str], str]
) -> dict[ResourceName, list[str]]:
    names = {at: name for name, at in loaded.result.resource_pointers.items()}
    found: dict[ResourceName, list[str]] = {}
    for diagnostic in loaded.result.diagnostics:
        name = names.get(diagnostic.location.pointer[:2])
        if name is not None and diagnostic.effect is Effect.IGNORED:
            hint = f"; {diagnostic.hint}" if diagnostic.hint else ""
            found.setdefault(name, []).append(f"{diagnostic.message}{hint}")
    return {
        name: [
            *map(redact, messages[:_MAX_LISTED]),
            *([f"{more} more settings"] if (more := len(messages) - _MAX_LISTED) > 0 else []),
        ]
        for name, messages in found.items()
    }

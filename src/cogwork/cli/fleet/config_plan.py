"""What saving a configuration would do: its faults, the differences, and the machine's plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cogwork.cli.config_secrets import make_redact
from cogwork.config import diagnostic_format
from cogwork.config import diff as difference
from cogwork.config.codes import OPEN_TO_ALL, UNSET_VARIABLE
from cogwork.config.load_context import LoadContext
from cogwork.config.loader import LoadedConfig, load
from cogwork.config.text_diff import diff_masked, diff_revealed
from cogwork.drivers.builtin_models import builtin_models
from cogwork.resource.registry import Registry, entry_point_models

_TAB_WIDTH = 4
_DECIDED_ELSEWHERE = (UNSET_VARIABLE, OPEN_TO_ALL)
"""The machine has the variables, and the cloud adds the logins."""


@dataclass(frozen=True, slots=True)
class ConfigPlan:
    before: str
    after: str
    loaded: LoadedConfig
    """The checked text after the change."""
    change: difference.ConfigDiff | None
    """None if the machine would reject one of the texts."""

    def format_faults(self, file: str, paint: diagnostic_format.Paint) -> list[str]:
        return [diagnostic_format.as_text(each, file, paint) for each in self.loaded.diagnostics]

    def format_difference(self, *, reveal: bool) -> str:
        if self.before == self.after:
            return "the texts are the same"
        text = (
            diff_revealed(self.before, self.after)
            if reveal
            else diff_masked(self.before, self.after, make_redact(self.before, self.after))
        )
        return text.expandtabs(_TAB_WIDTH)

    def format_steps(self) -> str:
        """Return what the machine would build, change and close."""
        return difference.describe_outcome(self.change, is_refused=self.loaded.is_refused)

    def as_json(self, file: str) -> dict[str, Any]:
        return {
            "refused": self.loaded.is_refused,
            "diagnostics": [
                diagnostic_format.as_json(each, file) for each in self.loaded.diagnostics
            ],
            "change": difference.as_json(self.change) if self.change is not None else None,
        }


def make_plan(before: str, after: str, home: Path) -> ConfigPlan:
    registry = Registry([*builtin_models(), *entry_point_models()])
    old, new = (_load(text, registry, home) for text in (before, after))
    refused = old.is_refused or new.is_refused
    change = None if refused else difference.diff(old.result, new.result, registry)
    return ConfigPlan(before, after, new, change)


def _load(text: str, registry: Registry, home: Path) -> LoadedConfig:
    """Check a text for another computer, whose files and variables are not known here."""
    context = LoadContext(registry, home, {}, exists=_assume, is_directory=_assume)
    loaded = load(text, context)
    return replace(loaded, diagnostics=tuple(_skip_unknown(loaded)))


def _assume(path: Path) -> bool:
    del path
    return True


def _skip_unknown(loaded: LoadedConfig) -> Iterator[Any]:
    for each in loaded.diagnostics:
        if each.diagnostic.code not in _DECIDED_ELSEWHERE:
            yield each

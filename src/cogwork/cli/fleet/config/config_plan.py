"""The plan of a configuration change: its faults, the differences, and the machine's steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cogwork.cli.config.secrets import make_redact
from cogwork.config.check import diagnostic_format
from cogwork.config.check import diff as difference
from cogwork.config.check.diagnostics import Diagnostic, Effect
from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import LoadedConfig, LocatedDiagnostic, load
from cogwork.config.schema.codes import (
    BAD_PLACEHOLDER,
    MISSING_DEPENDENCY,
    NO_PACKAGE_SOURCE,
    NO_REGISTRY,
    NOT_TAKEN_OVER,
    OPEN_TO_ALL,
    UNKNOWN_MODEL,
    UNMATCHED_PATTERN,
    UNSET_VARIABLE,
)
from cogwork.config.text.json_reader import read_json
from cogwork.config.text.positions import Json, Pointer
from cogwork.config.text.text_diff import diff_masked, diff_revealed
from cogwork.drivers.builtin_models import builtin_models
from cogwork.resource.registry import Registry, entry_point_models

_TAB_WIDTH = 4
_DECIDED_ELSEWHERE = (UNSET_VARIABLE, OPEN_TO_ALL, NO_REGISTRY, NO_PACKAGE_SOURCE)
"""Diagnostics that are ignored, because the fault may not exist on the machine: its environment
sets variables, and its cloud adds logins, modules and packages."""
_DECIDED_BY_FRAGMENTS = (MISSING_DEPENDENCY, UNMATCHED_PATTERN)
_FRAGMENT_KEYS = ("fragments", "fragment_mods")
"""The keys that name fragments. The cloud merges the fragments and checks the result when the text
is saved."""


@dataclass(frozen=True, slots=True)
class ConfigPlan:
    before: str
    after: str
    loaded: LoadedConfig
    """The checked text after the change."""
    change: difference.ConfigDiff | None
    """None if the machine would reject one of the texts."""
    uses_fragments: bool
    """Whether the configuration uses fragments, whose content is unknown here."""
    is_another_make: bool = False
    """Whether the machine runs another server, which may know settings and models that Cogwork does
    not."""

    @property
    def has_errors(self) -> bool:
        return self.loaded.has_errors

    @property
    def is_refused(self) -> bool:
        """Whether the machine and its cloud would both reject the text."""
        return self.loaded.is_refused and (self.has_errors or not self.is_another_make)

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
        """Return a summary of the resources that the machine would build, change and close."""
        if self.is_another_make and not self.is_refused:
            steps = (
                "not known: its server is of another make, which may know settings and models "
                "that Cogwork does not"
            )
        else:
            steps = difference.describe_outcome(self.change, is_refused=self.is_refused)
        if self.uses_fragments:
            steps += (
                "\nand what its fragments change: the cloud merges and checks them when it saves"
            )
        return steps

    def as_json(self, file: str) -> dict[str, Any]:
        return {
            "refused": self.is_refused,
            "diagnostics": [
                diagnostic_format.as_json(each, file) for each in self.loaded.diagnostics
            ],
            "change": difference.as_json(self.change) if self.change is not None else None,
        }


def make_plan(before: str, after: str, home: Path, *, is_another_make: bool = False) -> ConfigPlan:
    """Return the plan of a change.

    If `is_another_make`, faults are reported as warnings, except for a text that no server can
    read.
    """
    registry = Registry([*builtin_models(), *entry_point_models()])
    old, new = (_load(text, registry, home) for text in (before, after))
    refused = old.is_refused or new.is_refused
    change = None if refused else difference.diff(old.result, new.result, registry)
    uses_fragments = any(_names_fragments(each) for each in (*old.diagnostics, *new.diagnostics))
    loaded = _skip_undecided(new)
    if is_another_make:
        loaded = _lower_faults(loaded)
    return ConfigPlan(before, after, loaded, change, uses_fragments, is_another_make)


def _load(text: str, registry: Registry, home: Path) -> LoadedConfig:
    """Check a text for another computer, whose files and variables are not known here."""
    return load(text, LoadContext(registry, home, {}, exists=_assume, is_directory=_assume))


def _assume(path: Path) -> bool:
    del path
    return True


def _skip_undecided(loaded: LoadedConfig) -> LoadedConfig:
    """Remove diagnostics of faults that may not exist on the machine or after the cloud has merged
    the fragments."""
    uses_fragments = any(map(_names_fragments, loaded.diagnostics))
    unknown = (*_DECIDED_ELSEWHERE, *(_DECIDED_BY_FRAGMENTS if uses_fragments else ()))
    kept = [
        each
        for each in loaded.diagnostics
        if each.diagnostic.code not in unknown and not _names_fragments(each)
    ]
    if any(each.diagnostic.code in (BAD_PLACEHOLDER, UNKNOWN_MODEL) for each in kept):
        config = read_json(loaded.text).value
        kept = [each for each in kept if _is_decided(each.diagnostic, config, uses_fragments)]
    return replace(loaded, diagnostics=tuple(kept))


def _is_decided(found: Diagnostic, config: Json, uses_fragments: bool) -> bool:
    """Return whether a fault exists on the machine, too: it has environment variables that are not
    known here, and fragments add packages and modules."""
    if found.code not in (BAD_PLACEHOLDER, UNKNOWN_MODEL):
        return True
    text = str(_value_at(config, found.location.pointer))
    if found.code is UNKNOWN_MODEL:
        return not (uses_fragments and ":" in text)
    return "${environment." not in text and not (uses_fragments and "${packages." in text)


def _value_at(value: Json, pointer: Pointer) -> Json:
    for part in pointer:
        if isinstance(value, dict) and isinstance(part, str):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int):
            value = value[part]
    return value


def _lower_faults(loaded: LoadedConfig) -> LoadedConfig:
    """Convert errors to warnings, except errors about the whole text."""
    return replace(
        loaded,
        diagnostics=tuple(
            replace(each, diagnostic=replace(each.diagnostic, code=each.diagnostic.code.lower()))
            if each.diagnostic.location.pointer or each.diagnostic.effect is not Effect.REFUSED
            else each
            for each in loaded.diagnostics
        ),
    )


def _names_fragments(fault: LocatedDiagnostic) -> bool:
    """Return whether the diagnostic is about a key for fragments: only clouds know these keys."""
    found = fault.diagnostic
    pointer = found.location.pointer
    return (
        found.code is NOT_TAKEN_OVER
        and len(pointer) == 1
        and str(pointer[0]).lower() in _FRAGMENT_KEYS
    )

"""One change of a migration, and how the fixes of diagnostics become steps."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cogwork.config.check.diagnostics import Diagnostic
from cogwork.config.check.fix import Fix, FixKind
from cogwork.config.check.loader import LocatedDiagnostic
from cogwork.config.migration.source_text import SourceText
from cogwork.config.schema import codes
from cogwork.config.text.json_edit import Edit, Remove, RemoveDuplicates, Rename, SetValue
from cogwork.config.text.positions import Pointer
from cogwork.config.text.secrets import is_secret
from cogwork.logs.secret_mask import STARS


class StepKind(enum.StrEnum):
    REMOVED = "removed"
    RENAMED = "renamed"
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class Step:
    kind: StepKind
    pointer: Pointer
    edits: tuple[Edit, ...]
    old: str
    """What is written before, without secrets."""
    new: str
    """What is written after, without secrets; empty if it is removed."""
    reason: str


def find_fixes(found: Sequence[LocatedDiagnostic], source: SourceText) -> Iterator[Step]:
    """Yield a step for each diagnostic that can be resolved in the text."""
    for diagnostic in (each.diagnostic for each in found):
        pointer = diagnostic.location.pointer
        if diagnostic.code is codes.DUPLICATE_KEY:
            key = source.show_key(pointer)
            edits = (RemoveDuplicates(pointer),)
            yield Step(StepKind.REMOVED, pointer, edits, key, "", diagnostic.message)
        elif diagnostic.fix is not None:
            step = _make_step(diagnostic, diagnostic.fix, source)
            if step is not None:
                yield step


def _make_step(diagnostic: Diagnostic, fix: Fix, source: SourceText) -> Step | None:
    at, reason = fix.pointer, diagnostic.message
    if fix.kind is FixKind.REMOVE:
        # An unknown key may hold a secret, whatever its name.
        is_unknown = diagnostic.code is codes.UNKNOWN_KEY
        old = source.show_key(at) if is_unknown else source.show_entry(at)
        return Step(StepKind.REMOVED, at, (Remove(at),), old, "", reason)
    if fix.kind is FixKind.RENAME:
        new = json.dumps(fix.text, ensure_ascii=False)
        edits = (Rename(at, fix.text),)
        return Step(StepKind.RENAMED, at, edits, source.show_key(at), new, reason)
    if source.has_variable(at):
        return None
    new = STARS if is_secret(at) else fix.text
    edit = SetValue(at, json.loads(fix.text))
    return Step(StepKind.REPLACED, at, (edit,), source.show_entry(at), new, reason)

"""Apply every fix of a configuration to its text, as long as the same machine runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import LoadedConfig, LocatedDiagnostic, load
from cogwork.config.migration.legacy_forms import find_legacy_forms
from cogwork.config.migration.same_machine import runs_the_same
from cogwork.config.migration.source_text import SourceText
from cogwork.config.migration.step import Step, find_fixes
from cogwork.config.schema import codes
from cogwork.config.text.json_edit import ImpossibleEdit, Remove, find_replacements
from cogwork.config.text.json_errors import JsonSyntaxError
from cogwork.config.text.positions import position_at
from cogwork.config.text.replacements import Replacement, original_offset, replace_spans

_MAX_PASSES = 20
"""Maximum number of times that the edited text is checked again for further fixes."""

FindSteps = Callable[[LoadedConfig, SourceText], Iterable[Step]]


@dataclass(frozen=True, slots=True)
class Change:
    line: int
    """The line in the original text."""
    step: Step


@dataclass(frozen=True, slots=True)
class Migration:
    text: str
    changes: tuple[Change, ...]
    """The changes in the order of the original text."""
    left: LoadedConfig
    """The migrated configuration with the diagnostics that remain."""


class Unparsable(Exception):
    """The text is not JSON, so nothing in it can be changed."""

    def __init__(self, diagnostics: Sequence[LocatedDiagnostic]) -> None:
        super().__init__("the text is not JSON")
        self.diagnostics = diagnostics


def find_steps(loaded: LoadedConfig, source: SourceText) -> Iterable[Step]:
    yield from find_fixes(loaded.diagnostics, source)
    yield from find_legacy_forms(source)


def migrate(text: str, context: LoadContext, find: FindSteps = find_steps) -> Migration:
    """Return the migrated text. Migrating it again changes nothing. Raise Unparsable."""
    original = text
    loaded = load(text, context)
    if any(fault.diagnostic.code in _UNPARSABLE for fault in loaded.diagnostics):
        raise Unparsable(loaded.diagnostics)
    passes: list[Sequence[Replacement]] = []
    changes: list[Change] = []
    for _ in range(_MAX_PASSES):
        try:
            source = SourceText(text)
        except JsonSyntaxError:
            break  # only the values of variables make the text valid
        trial = _Trial(loaded, context)
        steps = trial.choose(find(loaded, source))
        if not steps:
            break
        for step in steps:
            offset = source.start(step.pointer)
            for replacements in reversed(passes):
                offset = original_offset(replacements, offset)
            changes.append(Change(position_at(original, offset).line, step))
        passes.append(trial.find_replacements(steps))
        loaded = trial.load(steps)
        text = loaded.text
    changes.sort(key=lambda change: change.line)
    return Migration(text, tuple(changes), loaded)


_UNPARSABLE = frozenset({codes.NOT_JSON, codes.NOT_SCALAR})


def _without_overlaps(steps: Iterable[Step]) -> list[Step]:
    """Return the steps without those that another step would make impossible or needless. They are
    found again, if they still apply."""
    by_pointer: dict[object, Step] = {}
    for step in steps:
        by_pointer.setdefault(step.pointer, step)
    removed = {
        edit.pointer
        for step in by_pointer.values()
        for edit in step.edits
        if isinstance(edit, Remove)
    }
    return [
        step
        for pointer, step in by_pointer.items()
        if not any(step.pointer[:length] in removed for length in range(len(step.pointer)))
    ]


class _Trial:
    """Finds out which steps can be made together, so that the same machine runs."""

    def __init__(self, loaded: LoadedConfig, context: LoadContext) -> None:
        self._loaded = loaded
        self._context = context

    def find_replacements(self, steps: Sequence[Step]) -> list[Replacement]:
        """Raise ImpossibleEdit."""
        return find_replacements(self._loaded.text, [edit for each in steps for edit in each.edits])

    def load(self, steps: Sequence[Step]) -> LoadedConfig:
        """Load the edited text. Raise ImpossibleEdit."""
        replacements = self.find_replacements(steps)
        return load(replace_spans(self._loaded.text, replacements), self._context)

    def choose(self, found: Iterable[Step]) -> list[Step]:
        """Return steps that can be made together; empty if none can be made."""
        rest = list(found)
        while tried := _without_overlaps(rest):
            if steps := self._select(tried):
                return steps
            # Without these, other steps do not overlap.
            rest = [step for step in rest if step not in tried]
        return []

    def _select(self, steps: list[Step]) -> list[Step]:
        if not steps or self._is_possible(steps):
            return steps
        if len(steps) == 1:
            return []
        middle = len(steps) // 2
        first, second = self._select(steps[:middle]), self._select(steps[middle:])
        both = [*first, *second]
        return both if not (first and second) or self._is_possible(both) else first

    def _is_possible(self, steps: Sequence[Step]) -> bool:
        try:
            loaded = self.load(steps)
        except (ImpossibleEdit, JsonSyntaxError):
            return False
        return runs_the_same(self._loaded.result, loaded.result)

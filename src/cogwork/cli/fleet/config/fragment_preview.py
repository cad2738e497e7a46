"""Describe how the edit of a fragment affects the machines that use the fragment."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cogwork.core.escape import escape
from cogwork.core.sentences import join_names
from cogwork.wire.messages.fragment_method import FragmentPreview, PlannedChange

_MAX_NAMES = 5

Paint = Callable[[str, str], str]


def format_preview(preview: FragmentPreview, paint: Paint) -> Iterator[str]:
    yield paint(_count_machines(preview), "bold")
    for change in preview.changes:
        yield ""
        yield from _format_change(change, paint)
    if preview.unchanged_parts or preview.unchecked_parts:
        yield ""
    if preview.unchanged_parts:
        yield f"{_count(preview.unchanged_parts, 'part')} would not change"
    if preview.unchecked_parts:
        yield paint(
            f"{_count(preview.unchecked_parts, 'part')} could not be checked: too many different "
            "configurations use this fragment",
            "yellow",
        )


def _count_machines(preview: FragmentPreview) -> str:
    found = f"{_count(preview.machines, 'machine')} of your organization"
    if preview.other_machines:
        found += f" and {_count(preview.other_machines, 'machine')} of others"
    use = "uses" if preview.machines + preview.other_machines == 1 else "use"
    return f"{found} {use} this fragment"


def _format_change(change: PlannedChange, paint: Paint) -> Iterator[str]:
    yield paint(f"On {escape(join_names(change.parts, _MAX_NAMES))}:", "bold")
    for fault in (*change.mistakes, *change.errors):
        for line in fault.split("\n"):
            yield paint(f"  error: {escape(line)}", "red")
    for line in change.plan.split("\n"):
        yield f"  {escape(line)}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"

"""Format diagnostics as text for people and as JSON for programs."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cogwork.config.check.checker import CheckResult
from cogwork.config.check.diagnostics import replace_unprintable
from cogwork.config.check.loader import LocatedDiagnostic
from cogwork.config.check.redacted_text import SourceExcerpt
from cogwork.config.schema.codes import MORE_FAULTS, Severity
from cogwork.config.text.positions import format_pointer

Paint = Callable[[str, str], str]
_MAX_LINE_WIDTH = 160


def paint_plain(text: str, style: str) -> str:
    del style
    return text


def as_text(fault: LocatedDiagnostic, file: str | None, paint: Paint = paint_plain) -> str:
    """Format `machine.json:19:9  error  …  [E103]`, the line with a caret, and the hint."""
    found = fault.diagnostic
    severity = found.code.severity
    location = _format_location(fault.excerpt, format_pointer(found.location.pointer), file)
    head = (
        f"{paint(location, 'bold')}  "
        f"{paint(severity.value, 'red' if severity is Severity.ERROR else 'yellow')}  "
        f"{replace_unprintable(found.message)}  {paint(f'[{found.code.id}]', 'dim')}"
    )
    lines = [head]
    hint = replace_unprintable(found.hint) if found.hint else None
    if fault.excerpt is not None:
        lines += _format_excerpt(fault.excerpt, hint, paint)
    elif hint:
        lines.append(f"    {hint}")
    for related, excerpt in zip(found.related, fault.related_excerpts, strict=False):
        location = _format_location(excerpt, format_pointer(related.location.pointer), file)
        lines.append(f"    {paint(location, 'dim')}  {replace_unprintable(related.message)}")
        if excerpt is not None:
            lines += _format_excerpt(excerpt, None, paint)
    return "\n".join(lines)


def as_json(fault: LocatedDiagnostic, file: str | None) -> dict[str, Any]:
    found = fault.diagnostic
    return {
        "code": found.code.id,
        "severity": found.code.severity.value,
        "message": found.message,
        "effect": found.effect.value,
        "hint": found.hint,
        **_location_json(fault.excerpt, format_pointer(found.location.pointer), file),
        "related": [
            {
                "message": related.message,
                **_location_json(excerpt, format_pointer(related.location.pointer), file),
            }
            for related, excerpt in zip(found.related, fault.related_excerpts, strict=False)
        ],
    }


def as_reported(
    faults: Iterable[LocatedDiagnostic], checked: CheckResult, file: str | None
) -> Iterator[dict[str, Any]]:
    """Yield diagnostics as JSON for the status of the machine, each with its resource if any."""
    names = {pointer: name for name, pointer in checked.resource_pointers.items()}
    for fault in faults:
        fields = as_json(fault, file)
        del fields["related"]
        name = names.get(fault.diagnostic.location.pointer[:2])
        yield {**fields, "resource": str(name) if name is not None else None}


def summarize(faults: Iterable[LocatedDiagnostic]) -> str:
    found = [fault.diagnostic.code for fault in faults]
    severities = [code.severity for code in found if code is not MORE_FAULTS]
    counts = ", ".join(
        f"{count} {severity.value}{'' if count == 1 else 's'}"
        for severity in Severity
        if (count := severities.count(severity))
    )
    return f"{counts} and more" if MORE_FAULTS in found else counts


def _format_location(excerpt: SourceExcerpt | None, pointer: str, file: str | None) -> str:
    if excerpt is None:
        return replace_unprintable(pointer or file or "/")
    line, column = excerpt.position
    return replace_unprintable(
        f"{file}:{line}:{column}" if file else f"line {line}, column {column}"
    )


def _location_json(excerpt: SourceExcerpt | None, pointer: str, file: str | None) -> dict[str, Any]:
    location: dict[str, Any] = {"pointer": pointer}
    if file is not None:
        location["file"] = file
    if excerpt is not None:
        location |= {"line": excerpt.position.line, "column": excerpt.position.column}
    return location


def _format_excerpt(excerpt: SourceExcerpt, hint: str | None, paint: Paint) -> list[str]:
    number = str(excerpt.position.line)
    column = excerpt.position.column - 1 - excerpt.skipped
    start = max(0, column - _MAX_LINE_WIDTH // 2) if len(excerpt.line) > _MAX_LINE_WIDTH else 0
    line = excerpt.line[start : start + _MAX_LINE_WIDTH].replace("\t", " ")
    before = line[: column - start]
    marked = line[column - start : column - start + excerpt.length] or " "
    caret = "^" * min(display_width(marked), _MAX_LINE_WIDTH)
    gutter = " " * len(number)
    note = f" {hint}" if hint else ""
    return [
        f"  {paint(f'{number} |', 'dim')} {replace_unprintable(line)}",
        f"  {gutter} {paint('|', 'dim')} {' ' * display_width(before)}{paint(caret, 'red')}{note}",
    ]


def display_width(text: str) -> int:
    """Return the number of terminal columns that the text takes: two for each wide character, none
    for combining marks."""
    return sum(
        0
        if unicodedata.category(character) in ("Mn", "Me")
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )

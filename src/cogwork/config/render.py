"""Diagnostics for people and for programs."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

from cogwork.config.codes import Severity
from cogwork.config.diagnose import printable
from cogwork.config.load import Located
from cogwork.config.positions import pointer_text
from cogwork.config.shown import Spot

Paint = Callable[[str, str], str]
_WIDEST_LINE = 160


def plain(text: str, style: str) -> str:
    del style
    return text


def as_text(fault: Located, file: str | None, paint: Paint = plain) -> str:
    """`machine.json:19:9  error  …  [E103]`, the line with a caret, and what to do."""
    found = fault.diagnostic
    severity = found.code.severity
    head = (
        f"{paint(_where(fault.spot, pointer_text(found.place.pointer), file), 'bold')}  "
        f"{paint(severity.value, 'red' if severity is Severity.ERROR else 'yellow')}  "
        f"{printable(found.message)}  {paint(f'[{found.code.id}]', 'dim')}"
    )
    lines = [head]
    hint = printable(found.hint) if found.hint else None
    if fault.spot is not None:
        lines += _excerpt(fault.spot, hint, paint)
    elif hint:
        lines.append(f"    {hint}")
    for related, spot in zip(found.related, fault.related, strict=False):
        place = _where(spot, pointer_text(related.place.pointer), file)
        lines.append(f"    {paint(place, 'dim')}  {printable(related.message)}")
        if spot is not None:
            lines += _excerpt(spot, None, paint)
    return "\n".join(lines)


def as_json(fault: Located, file: str | None) -> dict[str, Any]:
    found = fault.diagnostic
    return {
        "code": found.code.id,
        "severity": found.code.severity.value,
        "message": found.message,
        "effect": found.effect.value,
        "hint": found.hint,
        **_place(fault.spot, pointer_text(found.place.pointer), file),
        "related": [
            {
                "message": related.message,
                **_place(spot, pointer_text(related.place.pointer), file),
            }
            for related, spot in zip(found.related, fault.related, strict=False)
        ],
    }


def summary(faults: Iterable[Located]) -> str:
    severities = [fault.diagnostic.code.severity for fault in faults]
    return ", ".join(
        f"{count} {severity.value}{'' if count == 1 else 's'}"
        for severity in Severity
        if (count := severities.count(severity))
    )


def _where(spot: Spot | None, pointer: str, file: str | None) -> str:
    if spot is None:
        return printable(pointer or file or "/")
    line, column = spot.position
    return printable(f"{file}:{line}:{column}" if file else f"line {line}, column {column}")


def _place(spot: Spot | None, pointer: str, file: str | None) -> dict[str, Any]:
    place: dict[str, Any] = {"pointer": pointer}
    if file is not None:
        place["file"] = file
    if spot is not None:
        place |= {"line": spot.position.line, "column": spot.position.column}
    return place


def _excerpt(spot: Spot, hint: str | None, paint: Paint) -> list[str]:
    number = str(spot.position.line)
    column = spot.position.column - 1 - spot.skipped
    start = max(0, column - _WIDEST_LINE // 2) if len(spot.line) > _WIDEST_LINE else 0
    line = spot.line[start : start + _WIDEST_LINE].replace("\t", " ")
    before = line[: column - start]
    marked = line[column - start : column - start + spot.length] or " "
    caret = "^" * min(_width(marked), _WIDEST_LINE)
    gutter = " " * len(number)
    note = f" {hint}" if hint else ""
    return [
        f"  {paint(f'{number} |', 'dim')} {printable(line)}",
        f"  {gutter} {paint('|', 'dim')} {' ' * _width(before)}{paint(caret, 'red')}{note}",
    ]


def _width(text: str) -> int:
    """Columns of a terminal: wide characters take two, marks none."""
    return sum(
        0
        if unicodedata.category(character) in ("Mn", "Me")
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )

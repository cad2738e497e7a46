"""Positions in a text, and pointers to values in a document."""

from typing import NamedTuple, TypeAlias

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
Pointer: TypeAlias = tuple[str | int, ...]

BYTE_ORDER_MARK = "\ufeff"


class Span(NamedTuple):
    """A half-open range of offsets into a text."""

    start: int
    end: int


class Position(NamedTuple):
    """A line and a column, counted from 1; columns are characters."""

    line: int
    column: int


def format_pointer(pointer: Pointer) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in pointer)


def position_at(text: str, offset: int) -> Position:
    line_start = text.rfind("\n", 0, offset) + 1
    # Editors do not show the byte order mark, so it does not count as a column.
    mark = 1 if line_start == 0 and offset > 0 and text.startswith(BYTE_ORDER_MARK) else 0
    return Position(text.count("\n", 0, offset) + 1, offset - line_start - mark + 1)

"""Places in a text, and the way to a value inside a document."""

from typing import NamedTuple, TypeAlias

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
Pointer: TypeAlias = tuple[str | int, ...]

BYTE_ORDER_MARK = "\ufeff"


class Span(NamedTuple):
    """Offsets into the text, half open."""

    start: int
    end: int


class Position(NamedTuple):
    """Counted from 1; columns count characters."""

    line: int
    column: int


def pointer_text(pointer: Pointer) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in pointer)


def position_at(text: str, offset: int) -> Position:
    line_start = text.rfind("\n", 0, offset) + 1
    # No editor shows the mark, so it takes no column.
    mark = 1 if line_start == 0 and offset > 0 and text.startswith(BYTE_ORDER_MARK) else 0
    return Position(text.count("\n", 0, offset) + 1, offset - line_start - mark + 1)

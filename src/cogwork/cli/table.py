"""Rows of text as a table for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cogwork.config.check.diagnostic_format import display_width
from cogwork.core.escape import escape

_GAP = "  "
_UNITS = ((86400, "d"), (3600, "h"), (60, "m"))


def align_rows(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a line for each row, in columns that are as wide as their widest cell.

    Cells are escaped first, so that the columns stay aligned when the lines are printed.
    """
    listed = [[escape(cell) for cell in row] for row in rows]
    widths = [max(map(display_width, column)) for column in zip(*listed, strict=True)]
    for row in listed:
        cells = (
            cell + " " * (width - display_width(cell))
            for cell, width in zip(row, widths, strict=True)
        )
        yield _GAP.join(cells).rstrip()


def format_age(seconds: float) -> str:
    """Format an age in its largest unit: `3d`, `5m`, `0s`."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"

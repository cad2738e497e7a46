"""Lines of serial data, and the parsing of their readings. Pure: independent of any port."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Sequence
from typing import Any

MAX_LINE_BYTES = 65_536
"""Maximum bytes of a line; anything longer is noise."""
_MAX_DEPTH = 30
_SURROGATE = re.compile("[\ud800-\udfff]")
# Match a key only at the start of a word: trying every character would take quadratic time.
_PAIR = re.compile(r"(?<![^\s=,;])([^\s=,;]++)\s*+=\s*+([^\s,;]++)")

Readings = dict[str, Any]


class BadLine(ValueError):
    """A line that does not match the format; the message is the reason."""


class SerialLineSplitter:
    """Splits received data into lines and drops lines that are too long."""

    def __init__(self) -> None:
        self.too_long = 0
        self._partial = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that the data completes, without line endings; skip empty lines."""
        *complete, rest = data.replace(b"\r", b"\n").split(b"\n")
        lines = []
        for piece in complete:
            self._add(piece)
            if self._partial and not self._skipping:
                lines.append(bytes(self._partial))
            self._partial.clear()
            self._skipping = False
        self._add(rest)
        return lines

    def _add(self, piece: bytes) -> None:
        if not self._skipping and len(self._partial) + len(piece) > MAX_LINE_BYTES:
            self.too_long += 1
            self._skipping = True
            self._partial.clear()
        if not self._skipping:
            self._partial += piece


def parse_line(kind: str, fields: Sequence[str], line: bytes) -> Readings:
    """Parse a line of the configured format `kind`; raise BadLine if it does not match."""
    if kind == "text":
        return {"text": line.decode(errors="replace").strip()}
    try:
        text = line.decode().strip()
    except UnicodeDecodeError:
        raise BadLine("it is not valid UTF-8 text") from None
    if kind == "json":
        return _parse_json(text)
    return _parse_csv(text, fields) if kind == "csv" else _parse_pairs(text)


def _parse_json(text: str) -> Readings:
    try:
        value = json.loads(
            text, parse_float=_parse_finite, parse_int=_parse_finite, parse_constant=_parse_finite
        )
    except json.JSONDecodeError as error:
        raise BadLine(f"it is not JSON: {error}") from None
    except RecursionError:
        raise BadLine("its JSON is nested too deeply") from None
    _check_fits_reply(value, _MAX_DEPTH)
    return value if isinstance(value, dict) else {"value": value}


def _check_fits_reply(value: Any, depth: int) -> None:
    """Check that a reply can contain the value: texts must be valid UTF-8, and nesting is
    limited."""
    if depth < 0:
        raise BadLine("its JSON is nested too deeply")
    if isinstance(value, str) and _SURROGATE.search(value):
        raise BadLine("it contains an unpaired surrogate, which is not valid text")
    if isinstance(value, list | dict):
        for member in value:
            _check_fits_reply(member, depth - 1)
    if isinstance(value, dict):
        for member in value.values():
            _check_fits_reply(member, depth - 1)


def _parse_csv(text: str, fields: Sequence[str]) -> Readings:
    try:
        (values,) = csv.reader([text])
    except (csv.Error, ValueError):
        raise BadLine("it is not CSV") from None
    if len(values) != len(fields):
        raise BadLine(f"it has {len(values)} values instead of {len(fields)}")
    return {name: _parse_value(text.strip()) for name, text in zip(fields, values, strict=True)}


def _parse_pairs(text: str) -> Readings:
    pairs = {key: _parse_value(value) for key, value in _PAIR.findall(text)}
    if not pairs:
        raise BadLine("it contains no key=value pair")
    return pairs


def _parse_value(text: str) -> float | str:
    try:
        return _parse_finite(text)
    except BadLine:
        return text


def _parse_finite(text: str) -> float:
    """Parse a finite number: readings are doubles on the wire, and JSON allows only finite ones."""
    try:
        number = float(text)
    except ValueError:
        raise BadLine(f"{text} is not a number") from None
    if not math.isfinite(number):
        raise BadLine(f"{text} is not a finite number")
    return number

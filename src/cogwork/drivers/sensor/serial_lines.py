"""Lines of a serial port, and the readings in them. Pure: it knows no port."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Sequence
from typing import Any

LONGEST = 65_536
"""Bytes of a line; what is longer is no line, but noise."""
_PAIR = re.compile(r"([^\s=,;]+)\s*=\s*([^\s,;]+)")

Readings = dict[str, Any]


class BadLine(ValueError):
    """A line that is not what it should be, and why."""


class Lines:
    """Cuts what comes into lines, and leaves out any that does not end."""

    def __init__(self) -> None:
        self.too_long = 0
        self._begun = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that end in it, without their ends. Empty ones are none."""
        *ended, rest = data.replace(b"\r", b"\n").split(b"\n")
        lines = []
        for piece in ended:
            self._add(piece)
            if self._begun and not self._skipping:
                lines.append(bytes(self._begun))
            self._begun.clear()
            self._skipping = False
        self._add(rest)
        return lines

    def _add(self, piece: bytes) -> None:
        if not self._skipping and len(self._begun) + len(piece) > LONGEST:
            self.too_long += 1
            self._skipping = True
            self._begun.clear()
        if not self._skipping:
            self._begun += piece


def readings(kind: str, fields: Sequence[str], line: bytes) -> Readings:
    """`kind`: the format, as the configuration names it."""
    if kind == "text":
        return {"text": line.decode(errors="replace").strip()}
    try:
        text = line.decode().strip()
    except UnicodeDecodeError:
        raise BadLine("it is not text") from None
    if kind == "json":
        return _json(text)
    return _csv(text, fields) if kind == "csv" else _pairs(text)


def _json(text: str) -> Readings:
    try:
        value = json.loads(text, parse_float=_finite, parse_int=_finite, parse_constant=_finite)
    except json.JSONDecodeError as error:
        raise BadLine(f"it is not JSON: {error}") from None
    except RecursionError:
        raise BadLine("its JSON is nested too deeply") from None
    return value if isinstance(value, dict) else {"value": value}


def _csv(text: str, fields: Sequence[str]) -> Readings:
    try:
        (values,) = csv.reader([text])
    except (csv.Error, ValueError):
        raise BadLine("it is not CSV") from None
    if len(values) != len(fields):
        raise BadLine(f"it has {len(values)} values instead of {len(fields)}")
    return {name: _value(text.strip()) for name, text in zip(fields, values, strict=True)}


def _pairs(text: str) -> Readings:
    found = {key: _value(value) for key, value in _PAIR.findall(text)}
    if not found:
        raise BadLine("there is no key=value in it")
    return found


def _value(text: str) -> float | str:
    try:
        return _finite(text)
    except BadLine:
        return text


def _finite(text: str) -> float:
    """A reading is a double on the wire, and JSON there has no others."""
    try:
        number = float(text)
    except ValueError:
        raise BadLine(f"{text} is not a number") from None
    if not math.isfinite(number):
        raise BadLine(f"{text} is not a number that there is")
    return number

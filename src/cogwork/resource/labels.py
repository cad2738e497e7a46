"""Parse label files, which name the classes of a model.

These formats are supported:

- one label per line; blank lines are skipped
- one line of labels, separated by commas, or by spaces if there is no comma
- one numbered label per line, with gaps allowed: `7 cat`, `7: cat` or `7,cat`
- JSON or a Python literal: `["cat", "dog"]`, `{"7": "cat"}`, `{7: 'cat'}` or `{"cat": 7}`
- a TensorFlow label map: `item { id: 7 name: "/m/01yrx" display_name: "cat" }`
- a CSV table with a header that names an index column and a label column: `id,name`
"""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cogwork.config.text.json_errors import clip
from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import os_reason

MAX_CHARACTERS = 1 << 20
"""Maximum length of a label file in characters."""
MAX_LABELS = 100_000
"""Maximum number of labels, including gaps."""

_INVALID_CHARACTERS = re.compile("[\0\ud800-\udfff]")
_Pairs = Iterable[tuple[int, str]]


class InvalidLabels(CogworkError):
    """A label file cannot be parsed."""

    status = "FAILED_PRECONDITION"


@dataclass(frozen=True, slots=True)
class Labels:
    names: Mapping[int, str]
    """Names by class index. Classes without a name are omitted."""

    def __len__(self) -> int:
        """Return the minimum number of classes, including those without a name."""
        return max(self.names, default=-1) + 1

    def get(self, index: int) -> str | None:
        return self.names.get(index)


def load_labels(path: str) -> Labels:
    """Read and parse a label file. Blocks."""
    try:
        return parse_labels(Path(path).read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidLabels(f"{path} cannot be read: {os_reason(error)}") from error
    except InvalidLabels as error:
        raise InvalidLabels(f"{path}: {error}") from error


def parse_labels(text: str) -> Labels:
    if len(text) > MAX_CHARACTERS:
        raise InvalidLabels(
            f"the labels have {len(text)} characters, but the limit is {MAX_CHARACTERS}; "
            "check that this is a label file"
        )
    if _INVALID_CHARACTERS.search(text):
        raise InvalidLabels("the labels are not text; save them as UTF-8")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").strip()
    for parse in (_parse_label_map, _parse_literal, _parse_table):
        pairs = parse(text)
        if pairs is not None:
            return _build_labels(pairs)
    return _build_labels(_parse_lines(text))


def _build_labels(pairs: _Pairs) -> Labels:
    names = dict[int, str]()
    for index, name in pairs:
        if not 0 <= index < MAX_LABELS:
            raise InvalidLabels(
                f'label "{clip(name)}" has the index {clip(str(index))}; '
                f"number the labels from 0 to at most {MAX_LABELS - 1}"
            )
        if index in names:
            raise InvalidLabels(
                f'labels "{clip(names[index])}" and "{clip(name)}" both have the index {index}; '
                "each label needs its own"
            )
        names[index] = _clean_name(name)
    named = {index: name for index, name in names.items() if name}
    if not named:
        raise InvalidLabels("there are no labels; write one per line")
    return Labels(named)


def _clean_name(text: str) -> str:
    if _INVALID_CHARACTERS.search(text):
        raise InvalidLabels(
            f'label "{clip(text)}" contains a null character or an unpaired surrogate; remove it'
        )
    return text.strip()


_NUMBERED = re.compile(r"([0-9]{1,9})(?:\s*[:,]\s*|\s+)(\S.*)")
_NUMBERED_IN_LINE = re.compile(r"\s*([0-9]{1,9})\s*:\s*(\S.*)")


def _parse_lines(text: str) -> _Pairs:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if len(lines) == 1:
        return _parse_numbered(_NUMBERED_IN_LINE, lines[0].split(",")) or enumerate(
            _split_line(lines[0])
        )
    return _parse_numbered(_NUMBERED, lines) or enumerate(lines)


def _split_line(line: str) -> list[str]:
    return line.split("," if "," in line else None)


def _parse_numbered(pattern: re.Pattern[str], lines: list[str]) -> _Pairs | None:
    """Parse numbered labels. Return None unless each line has a unique number."""
    matches = [match for match in map(pattern.fullmatch, lines) if match]
    numbered = {int(match[1]): _unquote(match[2]) for match in matches}
    return numbered.items() if len(numbered) == len(lines) else None


def _unquote(name: str) -> str:
    """Remove the quotes that spreadsheets put around names with a comma."""
    quoted = len(name) > 1 and name[0] == name[-1] == '"'
    return name[1:-1].replace('""', '"') if quoted else name


_ESCAPE_CODE = "x[0-9a-f]{2}|u[0-9a-f]{4}|U00(?:0[0-9a-f]|10)[0-9a-f]{4}"
_STRING = "|".join(
    rf"{quote}(?:[^{quote}\\\n]|\\(?:['\"\\nrt]|{_ESCAPE_CODE}))*+{quote}" for quote in "'\""
)
_ITEM = rf"(?:0|[1-9][0-9]{{0,8}}|{_STRING})"
_SPACE = r"[ \t\n]*"
_PYTHON_LITERAL = re.compile(
    rf"\{{{_SPACE}(?:{_ITEM}{_SPACE}:{_SPACE}{_ITEM}{_SPACE}(?:,{_SPACE}|(?=\}})))*+\}}"
    rf"|\[{_SPACE}(?:(?:{_STRING}){_SPACE}(?:,{_SPACE}|(?=\])))*+\]"
)
"""Matches a flat Python dict or list literal. Deeper nesting could crash Python's parser."""


def _parse_literal(text: str) -> _Pairs | None:
    if not text.startswith(("[", "{")):
        return None
    try:
        return _to_pairs(json.loads(text))
    except (ValueError, RecursionError) as error:
        if _PYTHON_LITERAL.fullmatch(text):
            return _to_pairs(ast.literal_eval(text))
        if re.match(r".*]\s*\n", text):
            return None  # not JSON, but one label per line, and the first label is in brackets
        raise InvalidLabels(
            f"the labels begin like JSON, but are not valid JSON: {error}; "
            "fix the JSON, or write one label per line"
        ) from error


def _to_pairs(value: Any) -> _Pairs:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return enumerate(value)
    if isinstance(value, dict):
        if all(isinstance(each, str) for each in value.values()):
            return [(_parse_index(str(key)), name) for key, name in value.items()]
        if all(type(each) is int for each in value.values()):
            return [(index, str(name)) for name, index in value.items()]
    raise InvalidLabels(
        'the labels have an unknown format; write ["cat", "dog"] or {"0": "cat", "1": "dog"}'
    )


def _parse_index(text: str) -> int:
    digits = text.strip()
    if not re.fullmatch("[0-9]{1,9}", digits):
        raise InvalidLabels(f'"{clip(text)}" is not a label index; write an integer of 0 or more')
    return int(digits)


_ESCAPE = re.compile(rb"\\(?:([0-3]?[0-7]{1,2})|(.))", re.DOTALL)
_LABEL_MAP = re.compile(r"(?:\s|#.*\n)*+item\s*:?\s*[{<]")
_TOKEN = re.compile(
    r"""#.*|'(?:[^'\\\n]|\\.)*+'|"(?:[^"\\\n]|\\.)*+"|[{}<>[\]]|[^\s'"{}<>[\]:,;#]+|['"]"""
)


def _parse_label_map(text: str) -> _Pairs | None:
    if not _LABEL_MAP.match(text):
        return None
    return [_parse_item(item) for item in _parse_items(_tokenize(text))]


def _tokenize(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in ("'", '"'):
            line = text.count("\n", 0, match.start()) + 1
            raise InvalidLabels(f"line {line} of the label map has an unterminated string")
        if not token.startswith("#"):
            yield token


def _parse_items(tokens: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield the fields of each item. Nested messages, such as key points, are skipped."""
    depth, key, item = 0, "", dict[str, str]()
    for token in tokens:
        if token in ("{", "<", "["):
            depth, key = depth + 1, ""
        elif token in ("}", ">", "]"):
            depth, key = depth - 1, ""
            if depth == 0:
                yield item
                item = {}
        elif depth == 1 and key:
            item[key], key = token, ""
        elif depth == 1:
            key = token
    if depth:
        raise InvalidLabels('the braces of the label map do not match; each "{" needs a "}"')


def _parse_item(item: dict[str, str]) -> tuple[int, str]:
    name = item.get("display_name") or item.get("name")
    if name is None or "id" not in item:
        raise InvalidLabels("an item of the label map has no name or no id; write both")
    return _parse_index(item["id"]), _unescape(name)


def _unescape(token: str) -> str:
    """Decode a quoted string; non-ASCII characters may be written as octal escapes of bytes."""
    if len(token) < 2 or token[0] not in "'\"":
        raise InvalidLabels(f"label name {clip(token)} is not quoted; write it in quotes")
    plain = _ESCAPE.sub(
        lambda match: bytes([int(match[1], 8)]) if match[1] else match[2],
        token[1:-1].encode(),
    )
    return plain.decode(errors="replace")


_INDEX_COLUMNS = ("id", "index", "class_id", "label_id", "class_index", "idx")
_NAME_COLUMNS = ("display_name", "name", "label", "class_name", "label_name", "class")


def _parse_table(text: str) -> _Pairs | None:
    header, _, body = text.partition("\n")
    for delimiter in ",;\t":
        titles = [title.strip(' "').lower() for title in header.split(delimiter)]
        index, name = _find_column(titles, _INDEX_COLUMNS), _find_column(titles, _NAME_COLUMNS)
        if body and index is not None and name is not None:
            return [
                (_parse_index(row[index]), row[name])
                for row in _read_rows(body, delimiter, len(titles))
            ]
    return None


def _find_column(titles: list[str], known: tuple[str, ...]) -> int | None:
    return next((titles.index(title) for title in known if title in titles), None)


def _read_rows(body: str, delimiter: str, width: int) -> Iterator[list[str]]:
    try:
        for row in csv.reader(body.split("\n"), delimiter=delimiter, strict=True):
            if any(map(str.strip, row)):
                yield row + [""] * (width - len(row))
    except csv.Error as error:
        raise InvalidLabels(
            f"the table of labels cannot be parsed: {error}; save it as CSV again"
        ) from error

"""What the classes of a model are called, from the text that comes with it.

It may be any of these:

- a label per line; blank lines take no index
- one line, with commas between the labels, or spaces where there is no comma
- a numbered label per line, gaps allowed: `7 cat`, `7: cat` or `7,cat`
- JSON, or what Python prints: `["cat", "dog"]`, `{"7": "cat"}`, `{7: 'cat'}` or `{"cat": 7}`
- a label map of TensorFlow: `item { id: 7 name: "/m/01yrx" display_name: "cat" }`
- a table whose first line names a column of indices and one of labels: `id,name`
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

from cogwork.config.json_faults import clip
from cogwork.core.errors import CogworkError

LONGEST = 1 << 20
"""Characters of the text."""
MOST = 100_000
"""Labels, gaps included."""

_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_Pairs = Iterable[tuple[int, str]]


class InvalidLabels(CogworkError):
    """The text that should name the classes of a model does not."""

    status = "FAILED_PRECONDITION"


@dataclass(frozen=True, slots=True)
class Labels:
    names: Mapping[int, str]
    """By index. What is left out has no name."""

    def __len__(self) -> int:
        """How many classes there are at least: those without a name count."""
        return max(self.names, default=-1) + 1

    def get(self, index: int) -> str | None:
        return self.names.get(index)


def labels_in(path: str) -> Labels:
    """Of a file. Blocks."""
    try:
        return read_labels(Path(path).read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidLabels(f"{path} cannot be read: {error}") from error
    except InvalidLabels as error:
        raise InvalidLabels(f"{path}: {error}") from error


def read_labels(text: str) -> Labels:
    if len(text) > LONGEST:
        raise InvalidLabels(
            f"the labels take {len(text)} characters, and at most {LONGEST} are read: "
            "is this the label file?"
        )
    if _NO_TEXT.search(text):
        raise InvalidLabels("the labels are not text: save them as UTF-8")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").strip()
    for read in (_label_map, _literal, _table):
        pairs = read(text)
        if pairs is not None:
            return _checked(pairs)
    return _checked(_lines(text))


def _checked(pairs: _Pairs) -> Labels:
    names = dict[int, str]()
    for index, name in pairs:
        if not 0 <= index < MOST:
            raise InvalidLabels(
                f'label "{clip(name)}" has the index {clip(str(index))}: '
                f"number the labels from 0 to at most {MOST - 1}"
            )
        if index in names:
            raise InvalidLabels(
                f'labels "{clip(names[index])}" and "{clip(name)}" both have the index {index}: '
                "give each its own"
            )
        names[index] = _name(name)
    named = {index: name for index, name in names.items() if name}
    if not named:
        raise InvalidLabels("there are no labels: write one per line")
    return Labels(named)


def _name(text: str) -> str:
    if _NO_TEXT.search(text):
        raise InvalidLabels(f'label "{clip(text)}" is not text: write it without escapes')
    return text.strip()


_NUMBERED = re.compile(r"([0-9]{1,9})(?:\s*[:,]\s*|\s+)(\S.*)")
_NUMBERED_IN_LINE = re.compile(r"\s*([0-9]{1,9})\s*:\s*(\S.*)")


def _lines(text: str) -> _Pairs:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if len(lines) == 1:
        return _numbered(_NUMBERED_IN_LINE, lines[0].split(",")) or enumerate(_split(lines[0]))
    return _numbered(_NUMBERED, lines) or enumerate(lines)


def _split(line: str) -> list[str]:
    return line.split("," if "," in line else None)


def _numbered(pattern: re.Pattern[str], lines: list[str]) -> _Pairs | None:
    """None unless each line has a number of its own."""
    matches = [match for match in map(pattern.fullmatch, lines) if match]
    numbered = {int(match[1]): _unquoted(match[2]) for match in matches}
    return numbered.items() if len(numbered) == len(lines) else None


def _unquoted(name: str) -> str:
    """A spreadsheet puts a name with a comma between quotation marks."""
    quoted = len(name) > 1 and name[0] == name[-1] == '"'
    return name[1:-1].replace('""', '"') if quoted else name


_CODE = "x[0-9a-f]{2}|u[0-9a-f]{4}|U00(?:0[0-9a-f]|10)[0-9a-f]{4}"
_STRING = "|".join(
    rf"{quote}(?:[^{quote}\\\n]|\\(?:['\"\\nrt]|{_CODE}))*+{quote}" for quote in "'\""
)
_ITEM = rf"(?:0|[1-9][0-9]{{0,8}}|{_STRING})"
_GAP = r"[ \t\n]*"
_PRINTED = re.compile(
    rf"\{{{_GAP}(?:{_ITEM}{_GAP}:{_GAP}{_ITEM}{_GAP}(?:,{_GAP}|(?=\}})))*+\}}"
    rf"|\[{_GAP}(?:(?:{_STRING}){_GAP}(?:,{_GAP}|(?=\])))*+\]"
)
"""What Python prints of a flat dict or list: nothing that can bring its parser down."""


def _literal(text: str) -> _Pairs | None:
    if not text.startswith(("[", "{")):
        return None
    try:
        return _pairs(json.loads(text))
    except (ValueError, RecursionError) as error:
        if _PRINTED.fullmatch(text):
            return _pairs(ast.literal_eval(text))
        if re.match(r".*]\s*\n", text):
            return None  # The first of several lines is a label between brackets.
        raise InvalidLabels(
            f"the labels begin like JSON, and are not: {error}. "
            "Correct that, or write one label per line"
        ) from error


def _pairs(value: Any) -> _Pairs:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return enumerate(value)
    if isinstance(value, dict):
        if all(isinstance(each, str) for each in value.values()):
            return [(_index(str(key)), name) for key, name in value.items()]
        if all(type(each) is int for each in value.values()):
            return [(index, str(name)) for name, index in value.items()]
    raise InvalidLabels(
        'the labels are in no known form: write ["cat", "dog"] or {"0": "cat", "1": "dog"}'
    )


def _index(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text.strip()):
        raise InvalidLabels(
            f'"{clip(text)}" is not the index of a label: write a whole number from 0 on'
        )
    return int(text)


_ESCAPED = re.compile(rb"\\([0-3]?[0-7]{1,2}|.)")
_LABEL_MAP = re.compile(r"(?:\s|#.*\n)*+item\s*:?\s*[{<]")
_TOKEN = re.compile(
    r"""#.*|'(?:[^'\\\n]|\\.)*+'|"(?:[^"\\\n]|\\.)*+"|[{}<>[\]]|[^\s'"{}<>[\]:,;#]+|['"]"""
)


def _label_map(text: str) -> _Pairs | None:
    if not _LABEL_MAP.match(text):
        return None
    return [_labelled(item) for item in _items(_tokens(text))]


def _tokens(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in ("'", '"'):
            line = text.count("\n", 0, match.start()) + 1
            raise InvalidLabels(f"line {line} of the label map has a text without its end quote")
        if not token.startswith("#"):
            yield token


def _items(tokens: Iterable[str]) -> Iterator[dict[str, str]]:
    """What is nested in an item, such as the key points of a person, is passed over."""
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
        raise InvalidLabels('the braces of the label map do not match: each "{" needs its "}"')


def _labelled(item: dict[str, str]) -> tuple[int, str]:
    name = item.get("display_name") or item.get("name")
    if name is None or "id" not in item:
        raise InvalidLabels("an item of the label map has no name, or no id: write both")
    return _index(item["id"]), _unescaped(name)


def _unescaped(token: str) -> str:
    """Letters beyond ASCII may be written as the octal numbers of their bytes."""
    if len(token) < 2 or token[0] not in "'\"":
        raise InvalidLabels(f"{clip(token)} is not the name of a label: write it in quotes")
    plain = _ESCAPED.sub(
        lambda match: bytes([int(match[1], 8)]) if match[1].isdigit() else match[1],
        token[1:-1].encode(),
    )
    return plain.decode(errors="replace")


_INDEX_COLUMNS = ("id", "index", "class_id", "label_id", "class_index", "idx")
_NAME_COLUMNS = ("display_name", "name", "label", "class_name", "label_name", "class")


def _table(text: str) -> _Pairs | None:
    header, _, body = text.partition("\n")
    for delimiter in ",;\t":
        titles = [title.strip(' "').lower() for title in header.split(delimiter)]
        index, name = _column(titles, _INDEX_COLUMNS), _column(titles, _NAME_COLUMNS)
        if body and index is not None and name is not None:
            return [(_index(row[index]), row[name]) for row in _rows(body, delimiter, len(titles))]
    return None


def _column(titles: list[str], known: tuple[str, ...]) -> int | None:
    return next((titles.index(title) for title in known if title in titles), None)


def _rows(body: str, delimiter: str, width: int) -> Iterator[list[str]]:
    try:
        for row in csv.reader(body.split("\n"), delimiter=delimiter, strict=True):
            if any(map(str.strip, row)):
                yield row + [""] * (width - len(row))
    except csv.Error as error:
        raise InvalidLabels(
            f"the table of labels cannot be read: {error}. Save it as CSV again"
        ) from error

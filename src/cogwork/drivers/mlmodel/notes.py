"""What exporters write beside a model: texts by name, some of them values as Python spells them."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cogwork.core.errors import InvalidRequest
from cogwork.resource.labels import InvalidLabels, Labels, read_labels
from cogwork.resource.wire_fields import Field, FieldReader

_LABELS = "names"
"""As Ultralytics and others call them."""
_DESCRIPTION = "description"
_PROPERTIES = 14
"""The field `metadata_props` of an ONNX file; each has a key (1) and a value (2)."""
_GRAPH, _INITIALIZER, _EXTERNAL_DATA = 7, 5, 13
"""Of the model, its graph, and a tensor in it; the last are pairs as above."""
_LARGEST = 64 * 1024 * 1024
"""Larger files are only read for this by the engine itself."""
_LONGEST = 10_000
"""Characters of a text that may be a value: people read them."""
_DEEPEST = 8
_MOST_EXACT = 1 << 53


class Notes(NamedTuple):
    labels: Labels | None
    description: str
    others: Mapping[str, Any]
    """Plain values."""


def read_notes(texts: Mapping[str, str]) -> Notes:
    known = (_LABELS, _DESCRIPTION)
    others = {key: _plain(text) for key, text in texts.items() if key not in known}
    return Notes(_labels(texts.get(_LABELS)), texts.get(_DESCRIPTION, ""), others)


def texts_of_onnx(path: str) -> dict[str, str]:
    """For engines that read ONNX files and do not tell. What cannot be read is left to them."""
    try:
        reader = _reader(path)
        return dict(_pairs(reader, reader.by_number([reader.whole()])[_PROPERTIES]))
    except (InvalidRequest, IndexError, OSError):
        return {}


def data_files_of_onnx(path: str) -> set[str]:
    """Those that hold tensors of the model, as it calls them: beside its own file."""
    try:
        reader = _reader(path)
        graph = reader.by_number([reader.whole()])[_GRAPH]
        tensors = reader.by_number(graph)[_INITIALIZER]
        pairs = [each for tensor in tensors for each in reader.by_number([tensor])[_EXTERNAL_DATA]]
        return {value for key, value in _pairs(reader, pairs) if key == "location"}
    except (InvalidRequest, IndexError, OSError):
        return set()


def _reader(path: str) -> FieldReader:
    file = Path(path)
    return FieldReader(file.read_bytes() if file.stat().st_size <= _LARGEST else b"")


def _pairs(reader: FieldReader, messages: Iterable[Field]) -> Iterator[tuple[str, str]]:
    for each in messages:
        pair = reader.by_number([each])
        yield reader.text(pair[1][-1]), reader.text(pair[2][-1])


def _labels(names: str | None) -> Labels | None:
    """A model without readable ones still runs."""
    try:
        return read_labels(names) if names else None
    except InvalidLabels:
        return None


def _plain(text: str) -> Any:
    if len(text) > _LONGEST:
        return text
    try:
        value = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text
    return value if _is_plain(value, _DEEPEST) else text


def _is_plain(value: Any, depth: int) -> bool:
    """Whether a reply has room for it as it is."""
    match value:
        case None | bool():
            return True
        case int():
            return abs(value) <= _MOST_EXACT
        case float():
            return math.isfinite(value)
        case str():
            return _is_text(value)
        case list() | tuple() if depth:
            return all(_is_plain(each, depth - 1) for each in value)
        case dict() if depth:
            return all(
                isinstance(key, str) and _is_text(key) and _is_plain(each, depth - 1)
                for key, each in value.items()
            )
    return False


def _is_text(value: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in value)

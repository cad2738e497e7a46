"""Metadata that exporters embed in model files: text by key, some of it Python literals."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cogwork.core.errors import InvalidRequest
from cogwork.resource.labels import InvalidLabels, Labels, parse_labels
from cogwork.resource.messages.protobuf_reader import Field, FieldReader

_LABELS_KEY = "names"
"""Key of the labels in the files of Ultralytics and other exporters."""
_DESCRIPTION_KEY = "description"
_METADATA_PROPS = 14
"""Field number of `metadata_props` in an ONNX file; each entry has a key (1) and a value (2)."""
_GRAPH, _INITIALIZER, _EXTERNAL_DATA = 7, 5, 13
"""Field numbers of `graph` in a model, `initializer` in a graph and `external_data` in a tensor.
External data consists of key-value pairs, like `metadata_props`."""
_MAX_FILE_SIZE = 64 * 1024 * 1024
"""Maximum file size in bytes to parse; larger files are read only by the engine."""
_MAX_TEXT_LENGTH = 10_000
"""Maximum length of text that is parsed as a Python literal."""
_MAX_DEPTH = 8
_MAX_EXACT_INT = 1 << 53


class FileMetadata(NamedTuple):
    labels: Labels | None
    description: str
    properties: Mapping[str, Any]
    """Values that JSON can represent."""


def parse_file_metadata(texts: Mapping[str, str]) -> FileMetadata:
    known = (_LABELS_KEY, _DESCRIPTION_KEY)
    others = {key: _parse_value(text) for key, text in texts.items() if key not in known}
    return FileMetadata(
        _parse_labels(texts.get(_LABELS_KEY)), texts.get(_DESCRIPTION_KEY, ""), others
    )


def read_onnx_properties(path: str) -> dict[str, str]:
    """Read the metadata of a file for engines that do not expose it.

    Errors are ignored, because the engine reports them.
    """
    try:
        reader = _open_reader(path)
        return dict(_read_pairs(reader, reader.group_by_number([reader.root()])[_METADATA_PROPS]))
    except (InvalidRequest, IndexError, OSError):
        return {}


def list_onnx_data_files(path: str) -> set[str]:
    """Return the names of the external data files of the model, relative to its folder."""
    try:
        reader = _open_reader(path)
        graph = reader.group_by_number([reader.root()])[_GRAPH]
        tensors = reader.group_by_number(graph)[_INITIALIZER]
        pairs = [
            each for tensor in tensors for each in reader.group_by_number([tensor])[_EXTERNAL_DATA]
        ]
        return {value for key, value in _read_pairs(reader, pairs) if key == "location"}
    except (InvalidRequest, IndexError, OSError):
        return set()


def _open_reader(path: str) -> FieldReader:
    file = Path(path)
    return FieldReader(file.read_bytes() if file.stat().st_size <= _MAX_FILE_SIZE else b"")


def _read_pairs(reader: FieldReader, messages: Iterable[Field]) -> Iterator[tuple[str, str]]:
    for each in messages:
        pair = reader.group_by_number([each])
        yield reader.read_text(pair[1][-1]), reader.read_text(pair[2][-1])


def _parse_labels(names: str | None) -> Labels | None:
    """Return the labels, or None if they are invalid: the model runs without labels, too."""
    try:
        return parse_labels(names) if names else None
    except InvalidLabels:
        return None


def _parse_value(text: str) -> Any:
    if len(text) > _MAX_TEXT_LENGTH:
        return text
    try:
        value = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text
    return value if _is_json_value(value, _MAX_DEPTH) else text


def _is_json_value(value: Any, depth: int) -> bool:
    """Return whether a reply can carry the value unchanged."""
    match value:
        case None | bool():
            return True
        case int():
            return abs(value) <= _MAX_EXACT_INT
        case float():
            return math.isfinite(value)
        case str():
            return _is_valid_text(value)
        case list() | tuple() if depth:
            return all(_is_json_value(each, depth - 1) for each in value)
        case dict() if depth:
            return all(
                isinstance(key, str) and _is_valid_text(key) and _is_json_value(each, depth - 1)
                for key, each in value.items()
            )
    return False


def _is_valid_text(value: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in value)

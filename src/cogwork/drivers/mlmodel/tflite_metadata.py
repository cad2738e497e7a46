"""Metadata of a TensorFlow Lite file, and the files that are packed with it.

The metadata is a flatbuffer in one of the model's buffers. The files are in a zip archive after the
model. A model runs without either, so invalid metadata and files are ignored.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import math
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cogwork.drivers.mlmodel.file_metadata import parse_file_metadata
from cogwork.drivers.mlmodel.flatbuffer import Flatbuffer, MalformedFlatbuffer, Table
from cogwork.drivers.mlmodel.tflite_file import TfliteFile
from cogwork.resource.labels import InvalidLabels, Labels, parse_labels

_IDENTIFIER = b"M001"

_MAX_FILE_SIZE = 1 << 20
"""Maximum size of a packed file in bytes."""
_MAX_FILES = 64
_MAX_VALUES = 4096
"""Maximum number of values of a mean, a standard deviation or a range: one per channel."""


@dataclass(frozen=True, slots=True)
class PackedFile:
    name: str
    kind: int
    locale: str = ""


@dataclass(frozen=True, slots=True)
class TensorMetadata:
    name: str = ""
    description: str = ""
    files: tuple[PackedFile, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TfliteMetadata:
    name: str = ""
    description: str = ""
    inputs: tuple[TensorMetadata, ...] = ()
    """Inputs in the order of the model; empty if not declared."""
    outputs: tuple[TensorMetadata, ...] = ()
    labels: Labels | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)
    """Values that JSON can represent."""


def read_metadata(data: bytes) -> TfliteMetadata:
    try:
        metadata = _parse_metadata(TfliteFile(data).find_metadata("TFLITE_METADATA"))
    except MalformedFlatbuffer:
        metadata = TfliteMetadata()
    files = dict(_read_packed_files(data))
    exported = parse_file_metadata(_find_exporter_properties(files))
    return replace(
        metadata,
        description=metadata.description or exported.description,
        labels=_find_labels(metadata.outputs, files) or exported.labels,
        properties={**exported.properties, **_merge_input_properties(metadata.inputs)},
    )


class _MetadataField:
    """Field numbers of the metadata schema."""

    NAME, DESCRIPTION = 0, 1  # the same in every table that has a name or a description
    MODEL_SUBGRAPHS = 3
    SUBGRAPH_INPUTS, SUBGRAPH_OUTPUTS = 2, 3
    TENSOR_UNITS, TENSOR_STATS, TENSOR_FILES = 4, 5, 6
    FILE_KIND, FILE_LOCALE = 2, 3
    UNIT_KIND, UNIT_OPTIONS = 0, 1
    NORMALIZATION_MEAN, NORMALIZATION_STD = 0, 1
    STATS_MAX, STATS_MIN = 0, 1


_AXIS_LABELS, _VALUE_LABELS = 2, 3
_NORMALIZATION = 1


def _parse_metadata(data: memoryview | None) -> TfliteMetadata:
    if data is None:
        return TfliteMetadata()
    model = Flatbuffer(data, _IDENTIFIER).root()
    graph = next(model.tables(_MetadataField.MODEL_SUBGRAPHS), None)
    return TfliteMetadata(
        model.text(_MetadataField.NAME),
        model.text(_MetadataField.DESCRIPTION),
        inputs=tuple(map(_parse_tensor, graph.tables(_MetadataField.SUBGRAPH_INPUTS)))
        if graph
        else (),
        outputs=tuple(map(_parse_tensor, graph.tables(_MetadataField.SUBGRAPH_OUTPUTS)))
        if graph
        else (),
    )


def _parse_tensor(table: Table) -> TensorMetadata:
    return TensorMetadata(
        table.text(_MetadataField.NAME),
        table.text(_MetadataField.DESCRIPTION),
        tuple(map(_parse_packed_file, table.tables(_MetadataField.TENSOR_FILES))),
        dict(_tensor_properties(table)),
    )


def _parse_packed_file(table: Table) -> PackedFile:
    return PackedFile(
        table.text(_MetadataField.NAME),
        table.byte(_MetadataField.FILE_KIND),
        table.text(_MetadataField.FILE_LOCALE),
    )


def _tensor_properties(table: Table) -> Iterator[tuple[str, Any]]:
    for unit in table.tables(_MetadataField.TENSOR_UNITS):
        options = unit.table(_MetadataField.UNIT_OPTIONS)
        if options is not None and unit.byte(_MetadataField.UNIT_KIND) == _NORMALIZATION:
            mean = _read_floats(options, _MetadataField.NORMALIZATION_MEAN)
            std = _read_floats(options, _MetadataField.NORMALIZATION_STD)
            if mean and std:
                yield "normalization", {"mean": mean, "std": std}
    stats = table.table(_MetadataField.TENSOR_STATS)
    if stats is not None:
        low, high = (
            _read_floats(stats, _MetadataField.STATS_MIN),
            _read_floats(stats, _MetadataField.STATS_MAX),
        )
        if low and high:
            yield "range", {"min": low, "max": high}


def _read_floats(table: Table, number: int) -> list[float]:
    values = table.floats(number)
    if len(values) > _MAX_VALUES or not all(map(math.isfinite, values)):
        raise MalformedFlatbuffer("its limits are not finite numbers")
    return values


def _merge_input_properties(inputs: Iterable[TensorMetadata]) -> dict[str, Any]:
    """Merge the properties of all inputs. The first one, usually the image, takes precedence."""
    return {key: value for each in reversed(list(inputs)) for key, value in each.properties.items()}


def _find_labels(outputs: Iterable[TensorMetadata], files: Mapping[str, str]) -> Labels | None:
    declared = [file for each in outputs for file in each.files]
    # Prefer English: other locales are translations.
    declared.sort(key=lambda file: file.locale not in ("", "en"))
    names = [file.name for file in declared if file.kind in (_AXIS_LABELS, _VALUE_LABELS)]
    guessed = [name for name in files if "label" in name.lower() and name.endswith(".txt")]
    for name in [*names, *guessed]:
        try:
            return parse_labels(files[name])
        except (KeyError, InvalidLabels):
            continue
    return None


def _find_exporter_properties(files: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata that Ultralytics packs: a dict, as JSON or as a Python literal."""
    for name, text in files.items():
        if "meta" in name.lower():
            properties = _parse_literal(text)
            if isinstance(properties, dict):
                return dict(_to_texts(properties))
    return {}


def _to_texts(properties: dict[Any, Any]) -> Iterator[tuple[str, str]]:
    for key, value in properties.items():
        # Skip values that `repr` rejects: integers with too many digits, and lists nested too
        # deeply.
        with contextlib.suppress(ValueError, RecursionError):
            yield str(key), value if isinstance(value, str) else repr(value)


def _parse_literal(text: str) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
    return None


_ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    EOFError,
    ValueError,
    NotImplementedError,  # unsupported compression or version
    RuntimeError,  # encrypted
    OverflowError,
)


def _read_packed_files(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the names and contents of packed text files."""
    if not _has_small_directory(data):
        return
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for entry in archive.infolist()[:_MAX_FILES]:
                if entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    yield from _read_entry(archive, entry)
    except _ARCHIVE_ERRORS:
        return


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[tuple[str, str]]:
    try:
        # Limit the number of bytes to read: an entry may be larger than it declares.
        with archive.open(entry) as file:
            content = file.read(_MAX_FILE_SIZE + 1)
        if len(content) <= _MAX_FILE_SIZE:
            yield entry.filename, content.decode()
    except _ARCHIVE_ERRORS:
        return


_EOCD = b"PK\5\6"
_EOCD_SIZE, _MAX_COMMENT = 22, 1 << 16
_DIRECTORY_SIZE = slice(12, 16)
_MAX_DIRECTORY_SIZE = 1 << 16
_ZIP64_LOCATOR = b"PK\6\7"
_ZIP64_LOCATOR_SIZE = 20


def _has_small_directory(data: bytes) -> bool:
    """Return whether the directory of the archive is small: zipfile always reads all of it."""
    at = data.rfind(_EOCD, -_EOCD_SIZE - _MAX_COMMENT)
    if at < 0:
        return False
    size = int.from_bytes(data[at:][_DIRECTORY_SIZE], "little")
    return size <= _MAX_DIRECTORY_SIZE and data[at - _ZIP64_LOCATOR_SIZE :][:4] != _ZIP64_LOCATOR

"""What a TensorFlow Lite file says of itself: its metadata, and the files that are packed with it.

The metadata is a flatbuffer in one of the model's buffers. The files are a zip archive behind the
model. A model runs without either, so what cannot be read is left out.
"""

from __future__ import annotations

import ast
import io
import json
import math
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cogwork.drivers.mlmodel.flatbuffer import Flatbuffer, Malformed, Table
from cogwork.drivers.mlmodel.notes import read_notes
from cogwork.drivers.mlmodel.tflite_file import TfliteFile
from cogwork.resource.labels import InvalidLabels, Labels, read_labels

_IDENTIFIER = b"M001"

_LONGEST_FILE = 1 << 20
"""Bytes of a packed file."""
_MOST_FILES = 64
_MOST_VALUES = 4096
"""Of a mean, a deviation or a limit: one for each channel."""


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
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TfliteMetadata:
    name: str = ""
    description: str = ""
    inputs: tuple[TensorMetadata, ...] = ()
    """In the order of the model's own; none where the file does not say."""
    outputs: tuple[TensorMetadata, ...] = ()
    labels: Labels | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Plain values."""


def read_metadata(data: bytes) -> TfliteMetadata:
    try:
        told = _told(TfliteFile(data).metadata("TFLITE_METADATA"))
    except Malformed:
        told = TfliteMetadata()
    files = dict(_packed_files(data))
    exported = read_notes(_exported(files))
    return replace(
        told,
        description=told.description or exported.description,
        labels=_labels(told.outputs, files) or exported.labels,
        notes={**exported.others, **_of_the_inputs(told.inputs)},
    )


class _Field:
    """Of the schema of the metadata."""

    NAME, DESCRIPTION = 0, 1  # of all that have one
    MODEL_SUBGRAPHS = 3
    SUBGRAPH_INPUTS, SUBGRAPH_OUTPUTS = 2, 3
    TENSOR_UNITS, TENSOR_STATS, TENSOR_FILES = 4, 5, 6
    FILE_KIND, FILE_LOCALE = 2, 3
    UNIT_KIND, UNIT_OPTIONS = 0, 1
    NORMALIZATION_MEAN, NORMALIZATION_STD = 0, 1
    STATS_MAX, STATS_MIN = 0, 1


_AXIS_LABELS, _VALUE_LABELS = 2, 3
_NORMALIZATION = 1


def _told(data: memoryview | None) -> TfliteMetadata:
    if data is None:
        return TfliteMetadata()
    model = Flatbuffer(data, _IDENTIFIER).root()
    graph = next(model.tables(_Field.MODEL_SUBGRAPHS), None)
    return TfliteMetadata(
        model.text(_Field.NAME),
        model.text(_Field.DESCRIPTION),
        inputs=tuple(map(_tensor, graph.tables(_Field.SUBGRAPH_INPUTS))) if graph else (),
        outputs=tuple(map(_tensor, graph.tables(_Field.SUBGRAPH_OUTPUTS))) if graph else (),
    )


def _tensor(table: Table) -> TensorMetadata:
    return TensorMetadata(
        table.text(_Field.NAME),
        table.text(_Field.DESCRIPTION),
        tuple(map(_file, table.tables(_Field.TENSOR_FILES))),
        dict(_tensor_notes(table)),
    )


def _file(table: Table) -> PackedFile:
    return PackedFile(
        table.text(_Field.NAME), table.byte(_Field.FILE_KIND), table.text(_Field.FILE_LOCALE)
    )


def _tensor_notes(table: Table) -> Iterator[tuple[str, Any]]:
    for unit in table.tables(_Field.TENSOR_UNITS):
        options = unit.table(_Field.UNIT_OPTIONS)
        if options is not None and unit.byte(_Field.UNIT_KIND) == _NORMALIZATION:
            mean = _values(options, _Field.NORMALIZATION_MEAN)
            deviation = _values(options, _Field.NORMALIZATION_STD)
            if mean and deviation:
                yield "normalization", {"mean": mean, "std": deviation}
    stats = table.table(_Field.TENSOR_STATS)
    if stats is not None:
        least, most = _values(stats, _Field.STATS_MIN), _values(stats, _Field.STATS_MAX)
        if least and most:
            yield "range", {"min": least, "max": most}


def _values(table: Table, number: int) -> list[float]:
    values = table.floats(number)
    if len(values) > _MOST_VALUES or not all(map(math.isfinite, values)):
        raise Malformed("it has limits that are no numbers")
    return values


def _of_the_inputs(inputs: Iterable[TensorMetadata]) -> dict[str, Any]:
    """Of the first that has them: that is the picture, where there are several."""
    return {key: value for each in reversed(list(inputs)) for key, value in each.notes.items()}


def _labels(outputs: Iterable[TensorMetadata], files: Mapping[str, str]) -> Labels | None:
    told = [file for each in outputs for file in each.files]
    # Others are translations.
    told.sort(key=lambda file: file.locale not in ("", "en"))
    names = [file.name for file in told if file.kind in (_AXIS_LABELS, _VALUE_LABELS)]
    guessed = [name for name in files if "label" in name.lower() and name.endswith(".txt")]
    for name in [*names, *guessed]:
        try:
            return read_labels(files[name])
        except (KeyError, InvalidLabels):
            continue
    return None


def _exported(files: Mapping[str, str]) -> dict[str, str]:
    """What Ultralytics packs: a dict of all it has to say, as JSON or as Python prints it."""
    for name, text in files.items():
        if "meta" in name.lower():
            told = _literal(text)
            if isinstance(told, dict):
                return {
                    str(key): value if isinstance(value, str) else repr(value)
                    for key, value in told.items()
                }
    return {}


def _literal(text: str) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return None


_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    EOFError,
    ValueError,
    NotImplementedError,  # a compression or a version that zipfile does not know
    RuntimeError,  # encrypted
    OverflowError,
)


def _packed_files(data: bytes) -> Iterator[tuple[str, str]]:
    """The texts among them, by name."""
    if not _has_small_directory(data):
        return
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for entry in archive.infolist()[:_MOST_FILES]:
                if entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    yield from _read(archive, entry)
    except _UNREADABLE:
        return


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[tuple[str, str]]:
    try:
        # The size that an entry claims may be far from what it unpacks to.
        with archive.open(entry) as file:
            content = file.read(_LONGEST_FILE + 1)
        if len(content) <= _LONGEST_FILE:
            yield entry.filename, content.decode()
    except _UNREADABLE:
        return


_END = b"PK\5\6"
_END_SIZE, _LONGEST_COMMENT = 22, 1 << 16
_DIRECTORY_SIZE = slice(12, 16)
_LARGEST_DIRECTORY = 1 << 16
_END_64 = b"PK\6\7"
_END_64_SIZE = 20


def _has_small_directory(data: bytes) -> bool:
    """zipfile reads the whole directory of an archive, however many files it names."""
    at = data.rfind(_END, -_END_SIZE - _LONGEST_COMMENT)
    if at < 0:
        return False
    size = int.from_bytes(data[at:][_DIRECTORY_SIZE], "little")
    return size <= _LARGEST_DIRECTORY and data[at - _END_64_SIZE :][:4] != _END_64

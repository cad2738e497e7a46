"""Parsers of model files: TensorFlow Lite, ONNX notes, PyTorch archives."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

import onnx
import torch
from tests.fuzz.target import ContractViolation, Target, allow_errors
from tests.support.models.onnx_models import FLOAT, model
from tests.unit.drivers.mlmodel.tflite_files import (
    Signature,
    addition,
    file_of,
    flatbuffer,
    packed_weights,
    running_sum,
    with_files,
)
from tests.unit.drivers.mlmodel.torch_networks import Double

from cogwork.drivers.mlmodel.engine import BadModel
from cogwork.drivers.mlmodel.file_metadata import list_onnx_data_files, read_onnx_properties
from cogwork.drivers.mlmodel.flatbuffer import MalformedFlatbuffer
from cogwork.drivers.mlmodel.tflite_file import TfliteFile
from cogwork.drivers.mlmodel.tflite_metadata import read_metadata
from cogwork.drivers.mlmodel.torch_archive import TorchArchive
from cogwork.drivers.mlmodel.torch_program import _safe_records
from cogwork.resource.messages.structs import to_struct


def target_tflite(data: bytes) -> None:
    with allow_errors(data, MalformedFlatbuffer):
        file = TfliteFile(data)
        file.is_stateful()
        file.check_operator_inputs()
        file.check_unpacked_weights()


def target_tflite_metadata(data: bytes) -> None:
    """Check that metadata never refuse a model and fit into a message."""
    metadata = read_metadata(data)
    to_struct(metadata.properties).SerializeToString()
    metadata.name.encode(), metadata.description.encode()


def target_packed_files(data: bytes) -> None:
    """Mutate the content of the files packed behind a model, with valid checksums."""
    target_tflite_metadata(with_files(b"", {"meta.json": data, "labels.txt": data}))


def target_onnx(data: bytes) -> None:
    with _temporary_file(data) as path:
        for key, value in read_onnx_properties(path).items():
            (key + value).encode()
        list_onnx_data_files(path)


def target_torch(data: bytes) -> None:
    with _temporary_file(data) as path, allow_errors(data, BadModel):
        _read_archive(TorchArchive(path))


def target_torch_records(data: bytes) -> None:
    """Mutate the content of the records in a valid archive."""
    code, note, config = (*data.split(b"\0"), b"", b"")[:3]
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("model/constants.pkl", b"x")
        archive.writestr("model/code/__torch__.py", code)
        archive.writestr("model/extra/cogwork.json", note)
        archive.writestr("model/extra/config.txt", config)
        archive.writestr("model/version", b"3\n")
    with _temporary_file(content.getvalue()) as path, allow_errors(data, BadModel):
        _read_archive(TorchArchive(path))


class _MemoryArchive(TorchArchive):
    """An archive in memory."""

    def __init__(self, records: Mapping[str, bytes]) -> None:
        self.path = "model.pt2"
        self._records = records

    def read(self, name: str) -> bytes:
        return self._records[name]


def target_torch_program(data: bytes) -> None:
    """Check that the accepted JSON of a program contains nothing that torch could run."""
    model, weights = (*data.split(b"\0"), b"{}")[:2]
    archive = _MemoryArchive(
        {
            "archive_format": b"pt2",
            "archive_version": b"0",
            "models/model.json": model,
            "data/weights/model_weights_config.json": weights,
            "data/weights/weight_0": b"",
            "data/constants/model_constants_config.json": b'{"config": {}}',
        }
    )
    with allow_errors(data, BadModel), contextlib.suppress(KeyError):
        safe_model = json.loads(dict(_safe_records(archive))["models/model.json"])
        for text in _iter_texts(safe_model):
            if "__import__(" in text or "lambda " in text:
                raise ContractViolation(f"{text!r} was taken over, which torch could run")


def _iter_texts(value: Any) -> Iterator[str]:
    """Yield all texts except operator arguments, which become literals, and parsed JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _iter_texts(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            if key not in ("as_string", "as_strings", "in_spec", "out_spec"):
                yield from _iter_texts(each)


def _read_archive(archive: TorchArchive) -> None:
    if not isinstance(archive.read_ultralytics_metadata(), dict):
        raise ContractViolation("the notes are not a mapping")
    archive.reject_file_access()
    archive.read_manifest()


@contextlib.contextmanager
def _temporary_file(content: bytes) -> Iterator[str]:
    with tempfile.NamedTemporaryFile(prefix="cogwork-fuzz-") as file:
        file.write(content)
        file.flush()
        yield file.name


@functools.cache
def _tflite_seeds() -> tuple[bytes, ...]:
    tensors = [{0: "image", 4: [{0: 1, 1: {0: [127.5], 1: [127.5]}}], 5: {0: [255.0], 1: [0.0]}}]
    labels = [{0: "scores", 1: "of classes", 6: [{0: "labels.txt", 2: 2, 3: "en"}]}]
    metadata = flatbuffer({0: "name", 1: "words", 3: [{2: tensors, 3: labels}]}, b"M001")
    signature = Signature("serve", {"a": "left", "b": "right"}, {"c": "sum"})
    model = file_of(addition(), signatures=(signature,), metadata=metadata)
    return (
        model,
        file_of(running_sum()),
        file_of(packed_weights()),
        with_files(model, {"labels.txt": "cat\ndog"}),
        with_files(
            file_of(addition()), {"metadata.json": '{"names": {"0": "cat"}, "imgsz": [8, 8]}'}
        ),
    )


@functools.cache
def _onnx_seeds() -> tuple[bytes, ...]:
    value = onnx.helper.make_tensor("w", FLOAT, [1], [1.0])
    value.external_data.add(key="location", value="weights.bin")
    node = onnx.helper.make_node("Identity", ["x"], ["y"])
    made = model([node], [("x", FLOAT, [1])], [("y", FLOAT, [1])], notes={"names": "{0: 'cat'}"})
    made.graph.initializer.append(value)
    return (made.SerializeToString(),)


@functools.cache
def _torch_seeds() -> tuple[bytes, ...]:
    scripted, pickled = io.BytesIO(), io.BytesIO()
    note = json.dumps({"inputs": [{"name": "x", "shape": [-1, 3]}], "labels": ["cat"]})
    extra = {"cogwork.json": note, "config.txt": '{"imgsz": [8, 8], "batch": 1}'}
    torch.jit.save(torch.jit.script(Double()), scripted, _extra_files=extra)
    torch.save({}, pickled)
    return scripted.getvalue(), pickled.getvalue()


_PROGRAM = {
    "graph_module": {
        "graph": {
            "nodes": [
                {
                    "target": "torch.ops.aten.add.Tensor",
                    "inputs": [{"name": "x", "arg": {"as_tensor": {"name": "x"}}}],
                    "metadata": {"stack_trace": "anything"},
                },
                {"target": "_operator.getitem", "inputs": [{"arg": {"as_string": "free text"}}]},
            ],
            "sym_int_values": {"s0": {"as_expr": {"expr_str": "Mul(Integer(2), Symbol('s0'))"}}},
        },
        "in_spec": json.dumps(
            [1, {"type": "builtins.tuple", "context": "null",
                 "children_spec": [{"type": None, "context": None, "children_spec": []}]}]
        ),
    },
    "guards_code": ["anything"],
    "device": {"type": "cuda", "index": 0},
}  # fmt: skip
_WEIGHTS = {"config": {"w": {"path_name": "weight_0", "use_pickle": False}}}
_LITERALS = (
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b"'",
    b":",
    b",",
    b"-",
    b"0x",
    b"(",
    b")",
    b"names",
    b"1e400",
)

TARGETS = (
    Target(
        "models.tflite",
        target_tflite,
        _tflite_seeds,
        ("cogwork.drivers.mlmodel.tflite_file", "cogwork.drivers.mlmodel.flatbuffer"),
        (b"TFL3",),
        largest=8192,
    ),
    Target(
        "models.tflite_metadata",
        target_tflite_metadata,
        _tflite_seeds,
        ("cogwork.drivers.mlmodel.tflite_metadata", "cogwork.drivers.mlmodel.flatbuffer"),
        (b"M001", b"TFL3", b"PK\1\2", b"PK\3\4", b"PK\5\6", b"PK\6\7", b"TFLITE_METADATA"),
        largest=8192,
    ),
    Target(
        "models.packed_files",
        target_packed_files,
        lambda: [b'{"names": {"0": "cat"}, "imgsz": [8, 8]}', b"{'a': (1, None), 'names': ['x']}"],
        ("cogwork.drivers.mlmodel.tflite_metadata", "cogwork.drivers.mlmodel.file_metadata"),
        _LITERALS,
    ),
    Target(
        "models.onnx",
        target_onnx,
        _onnx_seeds,
        ("cogwork.drivers.mlmodel.file_metadata", "cogwork.resource.messages.protobuf_reader"),
        (b"\x72", b"\x3a", b"\x2a", b"\x6a", b"location"),
    ),
    Target(
        "models.torch",
        target_torch,
        _torch_seeds,
        ("cogwork.drivers.mlmodel.torch_archive",),
        (b"PK\1\2", b"PK\3\4", b"PK\5\6", b"code/", b"constants.pkl", b"\x80"),
        largest=8192,
    ),
    Target(
        "models.torch_records",
        target_torch_records,
        lambda: [
            b'class A(Module):\n  def f(self, x):\n    return getattr(self.a, "0").f(x)\n\0'
            b'{"inputs": [{"name": "x", "shape": [-1]}], "labels": ["a"]}\0{"imgsz": [8, 8]}',
            b"torch.save(x)\0{}\0[]",
            b'getattr(getattr(a, "0"), "1")',
        ],
        ("cogwork.drivers.mlmodel.torch_archive",),
        (
            b"getattr(",
            b'a, "0")',
            b".save",
            b".from_file",
            b"torch",
            b"\\",
            b"#",
            b"\n",
            *_LITERALS,
        ),
    ),
    Target(
        "models.torch_program",
        target_torch_program,
        lambda: [f"{json.dumps(_PROGRAM)}\0{json.dumps(_WEIGHTS)}".encode()],
        ("cogwork.drivers.mlmodel.torch_program:_safe_records",
         "cogwork.drivers.mlmodel.torch_program:_tensor_paths",
         "cogwork.drivers.mlmodel.torch_program:_sanitize_json",
         "cogwork.drivers.mlmodel.torch_program:_sanitize",
         "cogwork.drivers.mlmodel.torch_program:_is_dropped",
         "cogwork.drivers.mlmodel.torch_program:_check_text",
         "cogwork.drivers.mlmodel.torch_program:_check_tree",
         "cogwork.drivers.mlmodel.torch_program:_is_valid_tree"),
        (b"torch.ops.aten.", b"__import__(", b"lambda ", b"'", b'"expr_str"', b'"target"',
         b'"in_spec"', b'"as_string"', b'"guards_code"', *_LITERALS),
    ),
)  # fmt: skip

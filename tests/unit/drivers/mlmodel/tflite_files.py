"""Handmade TensorFlow Lite files of a few operations, and their metadata."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import flatbuffers  # type: ignore[import-untyped]
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

TYPES = {
    "float32": schema.TensorType.FLOAT32,
    "float16": schema.TensorType.FLOAT16,
    "int64": schema.TensorType.INT64,
    "uint8": schema.TensorType.UINT8,
    "bool": schema.TensorType.BOOL,
    "string": schema.TensorType.STRING,
}
Op = schema.BuiltinOperator


@dataclass(frozen=True)
class Tensor:
    name: str
    dtype: str = "float32"
    shape: tuple[int, ...] = (2,)
    """-1 where it is open."""
    values: NDArray[Any] | None = None
    is_variable: bool = False


@dataclass(frozen=True)
class Operation:
    code: int | str
    """A text names one that is not LiteRT's own."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    options_type: int = 0
    options: Any = None


@dataclass(frozen=True)
class Graph:
    tensors: tuple[Tensor, ...]
    operations: tuple[Operation, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def index(self, name: str) -> int:
        return [each.name for each in self.tensors].index(name)


@dataclass(frozen=True)
class Signature:
    key: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    graph: int = 0


def file_of(*graphs: Graph, signatures: tuple[Signature, ...] = (), metadata: bytes = b"") -> bytes:
    made = _Builder()
    model = schema.ModelT()
    model.version = 3
    model.subgraphs = [made.graph(each) for each in graphs]
    model.signatureDefs = [_signature(each, graphs[each.graph]) for each in signatures]
    model.operatorCodes = made.codes
    if metadata:
        entry = schema.MetadataT()
        entry.name, entry.buffer = "TFLITE_METADATA", made.buffer(metadata)
        model.metadata = [entry]
    model.buffers = made.buffers
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


@dataclass
class _Builder:
    codes: list[Any] = field(default_factory=list)
    buffers: list[Any] = field(default_factory=lambda: [schema.BufferT()])

    def graph(self, graph: Graph) -> Any:
        made = schema.SubGraphT()
        made.tensors = [self._tensor(each) for each in graph.tensors]
        made.operators = [self._operator(each, graph) for each in graph.operations]
        made.inputs = [graph.index(name) for name in graph.inputs]
        made.outputs = [graph.index(name) for name in graph.outputs]
        return made

    def buffer(self, content: bytes) -> int:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(content, np.uint8)
        self.buffers.append(buffer)
        return len(self.buffers) - 1

    def _tensor(self, tensor: Tensor) -> Any:
        made = schema.TensorT()
        made.name = tensor.name
        made.type = TYPES[tensor.dtype]
        made.shape = [max(extent, 1) for extent in tensor.shape]
        if -1 in tensor.shape:
            made.shapeSignature = list(tensor.shape)
        made.buffer = 0 if tensor.values is None else self.buffer(tensor.values.tobytes())
        made.isVariable = tensor.is_variable
        return made

    def _operator(self, operation: Operation, graph: Graph) -> Any:
        code = schema.OperatorCodeT()
        code.version = 1
        if isinstance(operation.code, str):
            code.customCode, code.builtinCode = operation.code, Op.CUSTOM
        else:
            code.builtinCode = operation.code
        code.deprecatedBuiltinCode = min(code.builtinCode, 127)
        self.codes.append(code)
        made = schema.OperatorT()
        made.opcodeIndex = len(self.codes) - 1
        made.inputs = [graph.index(name) for name in operation.inputs]
        made.outputs = [graph.index(name) for name in operation.outputs]
        made.builtinOptionsType, made.builtinOptions = operation.options_type, operation.options
        return made


def _signature(signature: Signature, graph: Graph) -> Any:
    made = schema.SignatureDefT()
    made.signatureKey, made.subgraphIndex = signature.key, signature.graph
    made.inputs = [_tensor_map(name, graph.index(at)) for name, at in signature.inputs.items()]
    made.outputs = [_tensor_map(name, graph.index(at)) for name, at in signature.outputs.items()]
    return made


def _tensor_map(name: str, index: int) -> Any:
    made = schema.TensorMapT()
    made.name, made.tensorIndex = name, index
    return made


def one_operation(
    code: int | str, inputs: tuple[Tensor, ...], output: Tensor, options_type: int = 0
) -> Graph:
    names = tuple(each.name for each in inputs)
    operation = Operation(code, names, (output.name,), options_type)
    return Graph((*inputs, output), (operation,), names, (output.name,))


def addition(rows: int = 2, left: str = "left", right: str = "right", total: str = "sum") -> Graph:
    inputs = (Tensor(left, shape=(rows, 2)), Tensor(right, shape=(rows, 2)))
    return one_operation(Op.ADD, inputs, Tensor(total, shape=(rows, 2)))


def running_sum() -> Graph:
    """A recurrent network of one number, whose output is the sum of all inputs so far."""
    one = np.ones(1, np.float32)
    options = schema.SequenceRNNOptionsT()
    return Graph(
        (
            Tensor("x", shape=(1, 1, 1)),
            Tensor("weight", shape=(1, 1), values=one),
            Tensor("recurrent weight", shape=(1, 1), values=one),
            Tensor("bias", shape=(1,), values=0 * one),
            Tensor("state", shape=(1, 1), is_variable=True),
            Tensor("total", shape=(1, 1, 1)),
        ),
        (
            Operation(
                Op.UNIDIRECTIONAL_SEQUENCE_RNN,
                ("x", "weight", "recurrent weight", "bias", "state"),
                ("total",),
                schema.BuiltinOptions.SequenceRNNOptions,
                options,
            ),
        ),
        ("x",),
        ("total",),
    )


def packed_weights(unpacked: int = 4) -> Graph:
    """Adds four numbers, stored in half precision, to the input."""
    return Graph(
        (
            Tensor("x", shape=(4,)),
            Tensor("packed", "float16", (4,), values=np.arange(4, dtype=np.float16)),
            Tensor("weights", shape=(unpacked,)),
            Tensor("y", shape=(4,)),
        ),
        (
            Operation(Op.DEQUANTIZE, ("packed",), ("weights",)),
            Operation(Op.ADD, ("x", "weights"), ("y",)),
        ),
        ("x",),
        ("y",),
    )


Fields = Mapping[int, Any]
"""A table of a flatbuffer: texts, numbers of a byte, lists of floats or tables, and tables."""


def flatbuffer(root: Fields, identifier: bytes) -> bytes:
    builder = flatbuffers.Builder(256)
    builder.Finish(_table(builder, root), identifier)
    return bytes(builder.Output())


def _table(builder: Any, fields: Fields) -> int:
    placed = {
        number: value if isinstance(value, int) else _place(builder, value)
        for number, value in fields.items()
    }
    builder.StartObject(max(fields, default=-1) + 1)
    for number, value in placed.items():
        if isinstance(fields[number], int):
            builder.PrependInt8Slot(number, value, 0)
        else:
            builder.PrependUOffsetTRelativeSlot(number, value, 0)
    end: int = builder.EndObject()
    return end


def _place(builder: Any, value: Any) -> int:
    if isinstance(value, str):
        at: int = builder.CreateString(value)
        return at
    if isinstance(value, Mapping):
        return _table(builder, value)
    floats = all(isinstance(each, float) for each in value)
    items = value if floats else [_place(builder, each) for each in value]
    builder.StartVector(4, len(items), 4)
    for item in reversed(items):
        (builder.PrependFloat32 if floats else builder.PrependUOffsetTRelative)(item)
    end: int = builder.EndVector()
    return end


def with_files(model: bytes, files: Mapping[str, str | bytes]) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return model + archive.getvalue()

"""A TensorFlow Lite file as far as LiteRT does not tell of it, or does not check it."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from cogwork.drivers.mlmodel.flatbuffer import Flatbuffer, Malformed, Table

IDENTIFIER = b"TFL3"


class _Field:
    """Of the schema of the models."""

    MODEL_CODES, MODEL_GRAPHS, MODEL_BUFFERS, MODEL_METADATA, MODEL_SIGNATURES = 1, 2, 4, 6, 7
    CODE_BUILTIN_BYTE, CODE_BUILTIN = 0, 3
    GRAPH_TENSORS, GRAPH_OPERATORS = 0, 3
    TENSOR_SHAPE, TENSOR_BUFFER, TENSOR_IS_VARIABLE = 0, 2, 5
    OPERATOR_CODE, OPERATOR_INPUTS, OPERATOR_OUTPUTS = 0, 1, 2
    BUFFER_DATA = 0
    METADATA_NAME, METADATA_BUFFER = 0, 1
    SIGNATURE_KEY, SIGNATURE_GRAPH = 2, 4


_DEQUANTIZE, _DENSIFY, _VAR_HANDLE = 6, 124, 142
_CUSTOM, _CALL_ONCE, _HASHTABLE = 32, 129, 136
_FROM_NOTHING = frozenset((_CUSTOM, _CALL_ONCE, _HASHTABLE, _VAR_HANDLE))


class TfliteFile:
    """Raises Malformed."""

    def __init__(self, data: bytes) -> None:
        model = Flatbuffer(data, IDENTIFIER).root()
        self._codes = [_code(each) for each in model.tables(_Field.MODEL_CODES)]
        self._graphs = list(model.tables(_Field.MODEL_GRAPHS))
        self._buffers = list(model.tables(_Field.MODEL_BUFFERS))
        self._metadata = list(model.tables(_Field.MODEL_METADATA))
        self.signatures = {
            key: each.uint32(_Field.SIGNATURE_GRAPH)
            for each in model.tables(_Field.MODEL_SIGNATURES)
            if (key := each.text(_Field.SIGNATURE_KEY))
        }
        """By name, which of the graphs each is for."""

    def metadata(self, name: str) -> memoryview | None:
        for entry in self._metadata:
            if entry.text(_Field.METADATA_NAME) == name:
                return self._content(entry.uint32(_Field.METADATA_BUFFER))
        return None

    def keeps_state(self) -> bool:
        """Whether a run depends on the one before."""
        return _VAR_HANDLE in self._codes or any(
            tensor.byte(_Field.TENSOR_IS_VARIABLE)
            for graph in self._graphs
            for tensor in graph.tables(_Field.GRAPH_TENSORS)
        )

    def check_operators(self) -> None:
        """Some of LiteRT's take their first input to be there, and read whatever is."""
        for graph in self._graphs:
            for number, operator in enumerate(graph.tables(_Field.GRAPH_OPERATORS)):
                code = operator.uint32(_Field.OPERATOR_CODE)
                known = self._codes[code] if code < len(self._codes) else _CUSTOM
                if known not in _FROM_NOTHING and not operator.int32s(_Field.OPERATOR_INPUTS):
                    raise Malformed(f"its operation {number} has no inputs")

    def check_unpacked_weights(self) -> None:
        """LiteRT unpacks them while it loads a model, as many as the result has room for: where
        there are fewer, it reads whatever lies behind them, or ends the process."""
        for graph in self._graphs:
            self._check_unpacked_weights(graph)

    def _check_unpacked_weights(self, graph: Table) -> None:
        tensors = list(graph.tables(_Field.GRAPH_TENSORS))
        weights = {at for at, each in enumerate(tensors) if self._is_weight(each)}
        for packed, unpacked in self._unpackings(graph):
            if packed not in weights or not 0 <= unpacked < len(tensors):
                continue
            if _size(tensors[unpacked]) > _size(tensors[packed]):
                raise Malformed(f"its tensor {unpacked} is larger than the weights it is made of")
            weights.add(unpacked)

    def _unpackings(self, graph: Table) -> Iterator[tuple[int, int]]:
        wanted = {at for at, code in enumerate(self._codes) if code in (_DEQUANTIZE, _DENSIFY)}
        for operator in graph.tables(_Field.GRAPH_OPERATORS) if wanted else ():
            if operator.uint32(_Field.OPERATOR_CODE) in wanted:
                inputs = operator.int32s(_Field.OPERATOR_INPUTS)
                outputs = operator.int32s(_Field.OPERATOR_OUTPUTS)
                if inputs and outputs:
                    yield inputs[0], outputs[0]

    def _is_weight(self, tensor: Table) -> bool:
        return bool(self._content(tensor.uint32(_Field.TENSOR_BUFFER)))

    def _content(self, buffer: int) -> memoryview | None:
        if buffer >= len(self._buffers):
            return None
        return self._buffers[buffer].octets(_Field.BUFFER_DATA)


def _code(table: Table) -> int:
    """The first 127 have a field of their own."""
    return max(table.byte(_Field.CODE_BUILTIN_BYTE), table.int32(_Field.CODE_BUILTIN))


def _size(tensor: Table) -> int:
    return prod(tensor.int32s(_Field.TENSOR_SHAPE))

"""The parts of a TensorFlow Lite file that LiteRT does not expose or does not check."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from cogwork.drivers.mlmodel.flatbuffer import Flatbuffer, MalformedFlatbuffer, Table

IDENTIFIER = b"TFL3"


class _ModelField:
    """Field numbers of the model schema."""

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
_INPUTLESS_OPERATORS = frozenset((_CUSTOM, _CALL_ONCE, _HASHTABLE, _VAR_HANDLE))


class TfliteFile:
    """A parsed file. The constructor raises MalformedFlatbuffer."""

    def __init__(self, data: bytes) -> None:
        model = Flatbuffer(data, IDENTIFIER).root()
        self._operator_codes = [
            _operator_code(each) for each in model.tables(_ModelField.MODEL_CODES)
        ]
        self._graphs = list(model.tables(_ModelField.MODEL_GRAPHS))
        self._buffers = list(model.tables(_ModelField.MODEL_BUFFERS))
        self._metadata = list(model.tables(_ModelField.MODEL_METADATA))
        self.signatures = {
            key: each.uint32(_ModelField.SIGNATURE_GRAPH)
            for each in model.tables(_ModelField.MODEL_SIGNATURES)
            if (key := each.text(_ModelField.SIGNATURE_KEY))
        }
        """Graph index by signature name."""

    def find_metadata(self, name: str) -> memoryview | None:
        for entry in self._metadata:
            if entry.text(_ModelField.METADATA_NAME) == name:
                return self._buffer_data(entry.uint32(_ModelField.METADATA_BUFFER))
        return None

    def is_stateful(self) -> bool:
        """Return whether a run depends on previous runs."""
        return _VAR_HANDLE in self._operator_codes or any(
            tensor.byte(_ModelField.TENSOR_IS_VARIABLE)
            for graph in self._graphs
            for tensor in graph.tables(_ModelField.GRAPH_TENSORS)
        )

    def check_operator_inputs(self) -> None:
        """Check that operators have inputs, because some operators of LiteRT read their first input
        without a check."""
        for graph in self._graphs:
            for number, operator in enumerate(graph.tables(_ModelField.GRAPH_OPERATORS)):
                code = operator.uint32(_ModelField.OPERATOR_CODE)
                operator_code = (
                    self._operator_codes[code] if code < len(self._operator_codes) else _CUSTOM
                )
                if operator_code not in _INPUTLESS_OPERATORS and not operator.int32s(
                    _ModelField.OPERATOR_INPUTS
                ):
                    raise MalformedFlatbuffer(f"its operation {number} has no inputs")

    def check_unpacked_weights(self) -> None:
        """Check the sizes of packed weights.

        LiteRT unpacks as many weights as the output tensor holds. If the file has fewer, LiteRT
        reads beyond their end or crashes.
        """
        for graph in self._graphs:
            self._check_unpacked_weights(graph)

    def _check_unpacked_weights(self, graph: Table) -> None:
        tensors = list(graph.tables(_ModelField.GRAPH_TENSORS))
        weights = {index for index, each in enumerate(tensors) if self._is_weight(each)}
        for packed, unpacked in self._list_unpackings(graph):
            if packed not in weights or not 0 <= unpacked < len(tensors):
                continue
            if _element_count(tensors[unpacked]) > _element_count(tensors[packed]):
                raise MalformedFlatbuffer(
                    f"its tensor {unpacked} is larger than its packed weights"
                )
            weights.add(unpacked)

    def _list_unpackings(self, graph: Table) -> Iterator[tuple[int, int]]:
        unpacking_codes = {
            index
            for index, code in enumerate(self._operator_codes)
            if code in (_DEQUANTIZE, _DENSIFY)
        }
        for operator in graph.tables(_ModelField.GRAPH_OPERATORS) if unpacking_codes else ():
            if operator.uint32(_ModelField.OPERATOR_CODE) in unpacking_codes:
                inputs = operator.int32s(_ModelField.OPERATOR_INPUTS)
                outputs = operator.int32s(_ModelField.OPERATOR_OUTPUTS)
                if inputs and outputs:
                    yield inputs[0], outputs[0]

    def _is_weight(self, tensor: Table) -> bool:
        return bool(self._buffer_data(tensor.uint32(_ModelField.TENSOR_BUFFER)))

    def _buffer_data(self, buffer: int) -> memoryview | None:
        if buffer >= len(self._buffers):
            return None
        return self._buffers[buffer].octets(_ModelField.BUFFER_DATA)


def _operator_code(table: Table) -> int:
    """Return the operator code. Codes below 127 are in a separate field."""
    return max(table.byte(_ModelField.CODE_BUILTIN_BYTE), table.int32(_ModelField.CODE_BUILTIN))


def _element_count(tensor: Table) -> int:
    return prod(tensor.int32s(_ModelField.TENSOR_SHAPE))

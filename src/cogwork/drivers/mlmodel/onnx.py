"""ONNX models, by onnxruntime."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as faults

from cogwork.drivers.mlmodel.attributes import OnnxAttributes
from cogwork.drivers.mlmodel.engine import BadModel, RunFailed
from cogwork.drivers.mlmodel.engine_model import EngineModel
from cogwork.drivers.mlmodel.facts import ANY, ModelFacts, TensorFacts
from cogwork.drivers.mlmodel.notes import data_files_of_onnx, read_notes
from cogwork.drivers.mlmodel.wire_types import (
    after_a_run,
    before_a_run,
    cast,
    not_carried,
    on_the_wire,
)
from cogwork.resource.tensors import Tensors

_ONLY_THE_END = 4
"""What else it says is in its errors, too; a client could fill the log with it."""
onnxruntime.set_default_logger_severity(_ONLY_THE_END)
_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(int16)": np.int16,
    "tensor(uint16)": np.uint16,
    "tensor(int32)": np.int32,
    "tensor(uint32)": np.uint32,
    "tensor(int64)": np.int64,
    "tensor(uint64)": np.uint64,
    "tensor(bool)": np.bool_,
}


class OnnxModel(EngineModel):
    @staticmethod
    def load(attributes: OnnxAttributes, threads: int) -> OnnxEngine:
        return OnnxEngine(attributes.model_path, threads)


class OnnxEngine:
    def __init__(self, path: str, threads: int) -> None:
        try:
            self._session = _session(path, threads)
            self._stored = {
                each.name: _dtype(path, each)
                for each in (*self._session.get_inputs(), *self._session.get_outputs())
            }
            self.facts = self._read_facts()
        except _NOT_A_MODEL as error:
            raise BadModel(
                f"{path} is not a model that onnxruntime {onnxruntime.__version__} can run: "
                f"{_words(error)}; check that the file is whole, or export it anew"
            ) from error
        self._cast_in = before_a_run(self._stored)
        self._cast_out = after_a_run(self._stored)
        self._outputs = [each.name for each in self._session.get_outputs()]

    def run(self, tensors: Tensors) -> dict[str, NDArray[Any]]:
        try:
            outputs = self._session.run(self._outputs, cast(tensors, self._cast_in))
        except _RUN_FAULTS as error:
            raise RunFailed(f"the model cannot be run on these tensors: {_words(error)}") from error
        return cast(dict(zip(self._outputs, outputs, strict=True)), self._cast_out)

    def close(self) -> None:
        del self._session

    def _read_facts(self) -> ModelFacts:
        meta = self._session.get_modelmeta()
        notes = read_notes(meta.custom_metadata_map)
        return ModelFacts(
            "ONNX",
            inputs=tuple(self._tensor(each) for each in self._session.get_inputs()),
            outputs=tuple(self._tensor(each) for each in self._session.get_outputs()),
            name=meta.graph_name,
            description=meta.description or notes.description,
            labels=notes.labels,
            notes=notes.others,
        )

    def _tensor(self, described: Any) -> TensorFacts:
        # A text, such as "batch", names an extent that is open. Of a scalar, onnxruntime says the
        # same as of a tensor of any shape, and takes every one.
        shape = tuple(e if isinstance(e, int) and e > 0 else ANY for e in described.shape)
        return TensorFacts(described.name, on_the_wire(self._stored[described.name]), shape or None)


_NOT_A_MODEL = (
    faults.Fail,
    faults.InvalidGraph,
    faults.InvalidProtobuf,
    faults.InvalidArgument,
    faults.NoSuchFile,
    faults.NotImplemented,
    faults.RuntimeException,
    UnicodeDecodeError,  # of a name
    OSError,  # of a file beside it
)
_RUN_FAULTS = (
    faults.Fail,
    faults.InvalidArgument,
    faults.NotImplemented,
    faults.RuntimeException,
)


def _session(path: str, threads: int) -> onnxruntime.InferenceSession:
    options = _options(threads)
    # Left to itself, it maps these files: whoever shortens one would end the whole process.
    # Those it would refuse, elsewhere or missing, are left to it.
    folder = Path(path).parent
    data = {
        name: (folder / name).read_bytes()
        for name in data_files_of_onnx(path)
        if ".." not in Path(name).parts and not Path(name).is_absolute()
        if (folder / name).is_file()
    }
    options.add_external_initializers_from_files_in_memory(
        list(data), list(data.values()), [len(each) for each in data.values()]
    )
    # Its way out of a fault is to print it, and to do the same again.
    return onnxruntime.InferenceSession(
        path, options, providers=["CPUExecutionProvider"], enable_fallback=0
    )


def _options(threads: int) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ONLY_THE_END
    # A pool that spins after each run takes the processor from everybody else.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def _dtype(path: str, described: Any) -> np.dtype[Any]:
    dtype = _DTYPES.get(described.type)
    if dtype is None:
        raise not_carried(path, described.name, described.type)
    return np.dtype(dtype)


def _words(error: Exception) -> str:
    """Without the code that onnxruntime puts first, `[ONNXRuntimeError] : 7 : NAME : words`, and
    the places in its source."""
    return _NOT_WORDS.sub("", str(error)).strip()[:300]


_NOT_WORDS = re.compile(
    r"\[ONNXRuntimeError\] : \d+ : \w+ : |/onnxruntime_src/\S+ [^()]*\([^()]*\)(?: const)? "
)

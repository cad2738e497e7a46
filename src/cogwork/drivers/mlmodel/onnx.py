"""ONNX models, run by onnxruntime."""

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
from cogwork.drivers.mlmodel.file_metadata import list_onnx_data_files, parse_file_metadata
from cogwork.drivers.mlmodel.model_info import DYNAMIC, ModelInfo, TensorSpec
from cogwork.drivers.mlmodel.wire_types import (
    cast_tensors,
    input_casts,
    output_casts,
    to_wire_dtype,
    unsupported_type_error,
)
from cogwork.resource.messages.tensors import Tensors

_FATAL_ONLY = 4
"""Log level of onnxruntime: less severe messages repeat the texts of raised errors, and clients
could flood the log with them."""
onnxruntime.set_default_logger_severity(_FATAL_ONLY)
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
            self._session = _create_session(path, threads)
            self._stored_dtypes = {
                each.name: _parse_dtype(path, each)
                for each in (*self._session.get_inputs(), *self._session.get_outputs())
            }
            self.info = self._read_info()
        except _LOAD_ERRORS as error:
            raise BadModel(
                f"{path} is not a model that onnxruntime {onnxruntime.__version__} can run: "
                f"{_format_error(error)}; check that the file is complete, or export it again"
            ) from error
        self._cast_in = input_casts(self._stored_dtypes)
        self._cast_out = output_casts(self._stored_dtypes)
        self._output_names = [each.name for each in self._session.get_outputs()]

    def run(self, tensors: Tensors) -> dict[str, NDArray[Any]]:
        try:
            outputs = self._session.run(self._output_names, cast_tensors(tensors, self._cast_in))
        except _RUN_ERRORS as error:
            raise RunFailed(f"the model failed on these tensors: {_format_error(error)}") from error
        return cast_tensors(dict(zip(self._output_names, outputs, strict=True)), self._cast_out)

    def close(self) -> None:
        del self._session

    def _read_info(self) -> ModelInfo:
        meta = self._session.get_modelmeta()
        metadata = parse_file_metadata(meta.custom_metadata_map)
        return ModelInfo(
            "ONNX",
            inputs=tuple(self._tensor_spec(each) for each in self._session.get_inputs()),
            outputs=tuple(self._tensor_spec(each) for each in self._session.get_outputs()),
            name=meta.graph_name,
            description=meta.description or metadata.description,
            labels=metadata.labels,
            properties=metadata.properties,
        )

    def _tensor_spec(self, described: Any) -> TensorSpec:
        # A string, such as "batch", names a dynamic dimension. An empty shape becomes None, which
        # fits every tensor: onnxruntime reports an empty shape both for tensors of any shape and
        # for scalars, and accepts every tensor for either.
        shape = tuple(e if isinstance(e, int) and e > 0 else DYNAMIC for e in described.shape)
        return TensorSpec(
            described.name, to_wire_dtype(self._stored_dtypes[described.name]), shape or None
        )


_LOAD_ERRORS = (
    faults.Fail,
    faults.InvalidGraph,
    faults.InvalidProtobuf,
    faults.InvalidArgument,
    faults.NoSuchFile,
    faults.NotImplemented,
    faults.RuntimeException,
    UnicodeDecodeError,  # name that is not UTF-8
    OSError,  # unreadable external data file
)
_RUN_ERRORS = (
    faults.Fail,
    faults.InvalidArgument,
    faults.NotImplemented,
    faults.RuntimeException,
)


def _create_session(path: str, threads: int) -> onnxruntime.InferenceSession:
    options = _session_options(threads)
    # Read external data files into memory. By default, onnxruntime maps them, and truncating a
    # mapped file would kill the process. Missing files and files outside the folder are left to
    # onnxruntime, which rejects them.
    folder = Path(path).parent
    data = {
        name: (folder / name).read_bytes()
        for name in list_onnx_data_files(path)
        if ".." not in Path(name).parts and not Path(name).is_absolute()
        if (folder / name).is_file()
    }
    options.add_external_initializers_from_files_in_memory(
        list(data), list(data.values()), [len(each) for each in data.values()]
    )
    # Disable the fallback of onnxruntime, which prints the error and then tries the same again.
    return onnxruntime.InferenceSession(
        path, options, providers=["CPUExecutionProvider"], enable_fallback=0
    )


def _session_options(threads: int) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _FATAL_ONLY
    # Disable spinning: threads that spin after each run take CPU time from other work.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def _parse_dtype(path: str, described: Any) -> np.dtype[Any]:
    dtype = _DTYPES.get(described.type)
    if dtype is None:
        raise unsupported_type_error(path, described.name, described.type)
    return np.dtype(dtype)


def _format_error(error: Exception) -> str:
    """Return the message without the error code and the source locations of onnxruntime."""
    return _ERROR_NOISE.sub("", str(error)).strip()[:300]


_ERROR_NOISE = re.compile(
    r"\[ONNXRuntimeError\] : \d+ : \w+ : |/onnxruntime_src/\S+ [^()]*\([^()]*\)(?: const)? "
)

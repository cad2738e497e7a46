"""ONNX, TensorFlow Lite and OpenVINO IR models, run by OpenVINO: faster on many x86 CPUs."""

from __future__ import annotations

import queue
from collections.abc import Hashable
from typing import Any

import numpy as np
import openvino
from numpy.typing import NDArray

from cogwork.drivers.mlmodel.attributes import ModelAttributes, OpenvinoAttributes
from cogwork.drivers.mlmodel.engine import BadModel, RunFailed, max_concurrent_runs
from cogwork.drivers.mlmodel.engine_model import EngineModel
from cogwork.drivers.mlmodel.file_metadata import parse_file_metadata, read_onnx_properties
from cogwork.drivers.mlmodel.model_info import DYNAMIC, ModelInfo, TensorSpec
from cogwork.drivers.mlmodel.wire_types import (
    Dtypes,
    cast_tensors,
    input_casts,
    output_casts,
    to_wire_dtype,
    unsupported_type_error,
)
from cogwork.resource.messages.tensors import Tensors

_EXTENSIONS = (".onnx", ".tflite", ".xml")
_DTYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "u16": np.uint16,
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "u64": np.uint64,
    "boolean": np.bool_,
}


class OpenvinoModel(EngineModel):
    @staticmethod
    def load(attributes: OpenvinoAttributes, threads: int) -> OpenvinoEngine:
        return OpenvinoEngine(attributes.model_path, threads, attributes.precision)

    @staticmethod
    def options(attributes: ModelAttributes) -> Hashable:
        assert isinstance(attributes, OpenvinoAttributes)
        return attributes.precision


class OpenvinoEngine:
    def __init__(self, path: str, threads: int, precision: str) -> None:
        if not path.endswith(_EXTENSIONS):
            raise BadModel(
                f"OpenVINO cannot run {path}: supported formats are {', '.join(_EXTENSIONS)}"
            )
        try:
            core = openvino.Core()
            # Do not map the file into memory: overwriting a mapped file would kill the process.
            core.set_property({"ENABLE_MMAP": False})
            model = core.read_model(path)
            compiled = core.compile_model(model, "CPU", _compile_options(threads, precision))
            ports = (*model.inputs, *model.outputs)
            stored = {_port_name(each): _parse_dtype(path, each) for each in ports}
            self.info = _read_info(path, model, stored)
        # UnicodeDecodeError: the error message of OpenVINO is not UTF-8.
        except (RuntimeError, UnicodeDecodeError) as error:
            raise BadModel(
                f"{path} is not a model that OpenVINO can run: {_format_error(error)}; check that "
                "the file is complete, or export it again"
            ) from error
        self._cast_in = input_casts(stored)
        self._cast_out = output_casts(stored)
        self._input_names = [each.name for each in self.info.inputs]
        self._output_names = [each.name for each in self.info.outputs]
        # A request owns the memory of one run.
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for _ in range(max_concurrent_runs(threads)):
            self._requests.put(compiled.create_infer_request())

    def run(self, tensors: Tensors) -> dict[str, NDArray[Any]]:
        requests = self._requests
        request = requests.get()
        inputs = cast_tensors(tensors, self._cast_in)
        try:
            results = request.infer(
                {number: inputs[name] for number, name in enumerate(self._input_names)},
                share_inputs=True,
                share_outputs=False,
            )
        except RuntimeError as error:
            raise RunFailed(f"the model failed on these tensors: {_format_error(error)}") from error
        finally:
            requests.put(request)
        outputs = {
            name: np.asarray(results[number]) for number, name in enumerate(self._output_names)
        }
        return cast_tensors(outputs, self._cast_out)

    def close(self) -> None:
        """Free the idle requests. Runs in progress keep their requests."""
        del self._requests


def _compile_options(threads: int, precision: str) -> dict[str, Any]:
    options: dict[str, Any] = {
        "INFERENCE_NUM_THREADS": threads * max_concurrent_runs(threads),
        "NUM_STREAMS": max_concurrent_runs(threads),
    }
    if precision == "float32":
        options["INFERENCE_PRECISION_HINT"] = "f32"
        # The precision hint is not enough: by default, OpenVINO also rounds the inputs of layers
        # with 8-bit weights, which shifts boxes by pixels.
        options["EXECUTION_MODE_HINT"] = "ACCURACY"
    return options


def _read_info(path: str, model: Any, stored: Dtypes) -> ModelInfo:
    metadata = parse_file_metadata(read_onnx_properties(path) if path.endswith(".onnx") else {})
    return ModelInfo(
        "OpenVINO",
        inputs=tuple(_tensor_spec(each, stored) for each in model.inputs),
        outputs=tuple(_tensor_spec(each, stored) for each in model.outputs),
        description=metadata.description,
        labels=metadata.labels,
        properties=metadata.properties,
    )


def _tensor_spec(port: Any, stored: Dtypes) -> TensorSpec:
    partial = port.get_partial_shape()
    shape = None
    if not partial.rank.is_dynamic:
        shape = tuple(e.get_length() if e.is_static else DYNAMIC for e in partial)
    return TensorSpec(_port_name(port), to_wire_dtype(stored[_port_name(port)]), shape)


def _parse_dtype(path: str, port: Any) -> np.dtype[Any]:
    kind = port.get_element_type().get_type_name()
    if kind not in _DTYPES:
        raise unsupported_type_error(path, _port_name(port), kind)
    return np.dtype(_DTYPES[kind])


def _port_name(port: Any) -> str:
    """Return the name of a port of the uncompiled model; a compiled model adds names of fused
    layers."""
    name: str = port.get_any_name() if port.get_names() else port.get_node().get_friendly_name()
    return name


def _format_error(error: Exception) -> str:
    """Return the last line; the first ones refer to OpenVINO's source files."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:300]

"""ONNX, TensorFlow Lite and OpenVINO's own models, by OpenVINO: quicker on many x86 processors."""

from __future__ import annotations

import queue
from collections.abc import Hashable
from typing import Any

import numpy as np
import openvino
from numpy.typing import NDArray

from cogwork.drivers.mlmodel.attributes import ModelAttributes, OpenvinoAttributes
from cogwork.drivers.mlmodel.engine import BadModel, RunFailed, runs_at_once
from cogwork.drivers.mlmodel.engine_model import EngineModel
from cogwork.drivers.mlmodel.facts import ANY, ModelFacts, TensorFacts
from cogwork.drivers.mlmodel.notes import read_notes, texts_of_onnx
from cogwork.drivers.mlmodel.wire_types import (
    Dtypes,
    after_a_run,
    before_a_run,
    cast,
    not_carried,
    on_the_wire,
)
from cogwork.resource.tensors import Tensors

_KINDS = (".onnx", ".tflite", ".xml")
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
        if not path.endswith(_KINDS):
            raise BadModel(
                f"{path} is not a model that OpenVINO runs here: it takes {', '.join(_KINDS)}"
            )
        try:
            core = openvino.Core()
            # A mapped file that somebody overwrites would end the whole process.
            core.set_property({"ENABLE_MMAP": False})
            model = core.read_model(path)
            compiled = core.compile_model(model, "CPU", _options(threads, precision))
            ports = (*model.inputs, *model.outputs)
            stored = {_name(each): _dtype(path, each) for each in ports}
            self.facts = _facts(path, model, stored)
        except (RuntimeError, UnicodeDecodeError) as error:  # the latter of its own words
            raise BadModel(
                f"{path} is not a model that OpenVINO can run: {_words(error)}; check that the "
                "file is whole, or export it anew"
            ) from error
        self._cast_in = before_a_run(stored)
        self._cast_out = after_a_run(stored)
        self._inputs = [each.name for each in self.facts.inputs]
        self._outputs = [each.name for each in self.facts.outputs]
        # A request holds the memory of one run.
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for _ in range(runs_at_once(threads)):
            self._requests.put(compiled.create_infer_request())

    def run(self, tensors: Tensors) -> dict[str, NDArray[Any]]:
        requests = self._requests
        request = requests.get()
        given = cast(tensors, self._cast_in)
        try:
            results = request.infer(
                {number: given[name] for number, name in enumerate(self._inputs)},
                share_inputs=True,
                share_outputs=False,
            )
        except RuntimeError as error:
            raise RunFailed(f"the model cannot be run on these tensors: {_words(error)}") from error
        finally:
            requests.put(request)
        outputs = {name: np.asarray(results[number]) for number, name in enumerate(self._outputs)}
        return cast(outputs, self._cast_out)

    def close(self) -> None:
        """Runs that have begun keep what they need."""
        del self._requests


def _options(threads: int, precision: str) -> dict[str, Any]:
    options: dict[str, Any] = {
        "INFERENCE_NUM_THREADS": threads * runs_at_once(threads),
        "NUM_STREAMS": runs_at_once(threads),
    }
    if precision == "float32":
        options["INFERENCE_PRECISION_HINT"] = "f32"
        # Or else it still rounds what meets weights of eight bits: boxes are pixels off.
        options["EXECUTION_MODE_HINT"] = "ACCURACY"
    return options


def _facts(path: str, model: Any, stored: Dtypes) -> ModelFacts:
    notes = read_notes(texts_of_onnx(path) if path.endswith(".onnx") else {})
    return ModelFacts(
        "OpenVINO",
        inputs=tuple(_tensor(each, stored) for each in model.inputs),
        outputs=tuple(_tensor(each, stored) for each in model.outputs),
        description=notes.description,
        labels=notes.labels,
        notes=notes.others,
    )


def _tensor(port: Any, stored: Dtypes) -> TensorFacts:
    partial = port.get_partial_shape()
    shape = None
    if not partial.rank.is_dynamic:
        shape = tuple(e.get_length() if e.is_static else ANY for e in partial)
    return TensorFacts(_name(port), on_the_wire(stored[_name(port)]), shape)


def _dtype(path: str, port: Any) -> np.dtype[Any]:
    kind = port.get_element_type().get_type_name()
    if kind not in _DTYPES:
        raise not_carried(path, _name(port), kind)
    return np.dtype(_DTYPES[kind])


def _name(port: Any) -> str:
    """Of a port of the model as it was read: compiled, it has the names of dropped layers, too."""
    name: str = port.get_any_name() if port.get_names() else port.get_node().get_friendly_name()
    return name


def _words(error: Exception) -> str:
    """The last line that says something: the first ones name files of OpenVINO's own source."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:300]

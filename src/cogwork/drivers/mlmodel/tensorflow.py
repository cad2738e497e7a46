"""TensorFlow models, run by TensorFlow: SavedModel folders and `.keras` files.

Tensor names come from the signature: `serving_default`, or the only one. A `.keras` file has no
signature: inputs are named after its input layers, and outputs are `output_0` and so on, or the
keys of the dictionary that the model returns, as in a SavedModel exported by Keras.

TensorFlow fixes the number of threads for the whole process when it is first used, so the first
model that is loaded decides for all.

A SavedModel is a program. It runs as a graph, not as Python, but the graph can read and write
files: use only models from trusted sources. A `.keras` file is loaded in the safe mode of Keras,
which does not run Python code from the file.
"""

from __future__ import annotations

import contextlib
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from cogwork.drivers.mlmodel.attributes import TensorflowAttributes
from cogwork.drivers.mlmodel.engine import BadModel, RunFailed, max_concurrent_runs
from cogwork.drivers.mlmodel.engine_model import EngineModel
from cogwork.drivers.mlmodel.model_info import DYNAMIC, ModelInfo, TensorSpec
from cogwork.drivers.mlmodel.wire_types import (
    cast_tensors,
    input_casts,
    output_casts,
    to_wire_dtype,
    unsupported_type_error,
)
from cogwork.resource.messages.tensors import Tensors

_DEFAULT_SIGNATURE = "serving_default"
_WIRE_DTYPES = frozenset(
    ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64")
)
_RUN_ERRORS = (tf.errors.OpError, ValueError, TypeError)
_Specs = Mapping[str, Any]
"""Tensor specs by name."""


class TensorflowModel(EngineModel):
    @staticmethod
    def load(attributes: TensorflowAttributes, threads: int) -> TensorflowEngine:
        return TensorflowEngine(attributes.model_path, threads)


class TensorflowEngine:
    def __init__(self, path: str, threads: int) -> None:
        with contextlib.suppress(RuntimeError):  # already initialized: the first setting stays
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            tf.config.threading.set_inter_op_parallelism_threads(max_concurrent_runs(threads))
        kind, load = (
            ("SavedModel", _load_saved_model) if Path(path).is_dir() else ("Keras", _load_keras)
        )
        try:
            # Keep a reference to the model, which owns the weights.
            self._function, self._model = load(path)
        except BadModel:
            raise
        # The loader is Python code and may raise any exception.
        except Exception as error:
            raise BadModel(
                f"{path} is not a model that TensorFlow {tf.__version__} can run: "
                f"{_format_error(error)}; check that it is complete, or export it again"
            ) from error
        inputs = _sort_by_name(self._function.structured_input_signature[1])
        outputs = _sort_by_name(self._function.structured_outputs)
        input_dtypes = {name: _parse_dtype(path, name, spec) for name, spec in inputs.items()}
        output_dtypes = {name: _parse_dtype(path, name, spec) for name, spec in outputs.items()}
        self._cast_in = input_casts(input_dtypes)
        self._cast_out = output_casts(output_dtypes)
        self.info = ModelInfo(
            kind,
            inputs=tuple(
                _tensor_spec(name, input_dtypes[name], spec) for name, spec in inputs.items()
            ),
            outputs=tuple(
                _tensor_spec(name, output_dtypes[name], spec) for name, spec in outputs.items()
            ),
        )

    def run(self, tensors: Tensors) -> dict[str, NDArray[Any]]:
        inputs = cast_tensors(tensors, self._cast_in)
        try:
            outputs = self._function(**{name: tf.constant(each) for name, each in inputs.items()})
        except _RUN_ERRORS as error:
            raise RunFailed(f"the model failed on these tensors: {_format_error(error)}") from error
        # Read-only views of the memory of TensorFlow.
        views = {each.name: np.asarray(outputs[each.name]) for each in self.info.outputs}
        return cast_tensors(views, self._cast_out)

    def close(self) -> None:
        del self._function, self._model


def _load_saved_model(path: str) -> tuple[Any, object]:
    if not (Path(path) / "saved_model.pb").is_file():
        raise BadModel(
            f"{path} is not a SavedModel: it does not contain saved_model.pb; set model_path to "
            "the folder that does, or to a .keras file"
        )
    model = tf.saved_model.load(path)
    signatures = dict(model.signatures)
    if _DEFAULT_SIGNATURE not in signatures and len(signatures) != 1:
        raise BadModel(
            f"{path} cannot be served: it has the signatures {', '.join(signatures)}; export it "
            f"with one named {_DEFAULT_SIGNATURE}"
            if signatures
            else f"{path} cannot be served: it has no signature; export it with signatures=..."
        )
    return signatures.get(_DEFAULT_SIGNATURE) or next(iter(signatures.values())), model


def _load_keras(path: str) -> tuple[Any, object]:
    # Older formats run Python code from the file, even in safe mode.
    if not (path.endswith(".keras") and zipfile.is_zipfile(path)):
        raise BadModel(
            f"{path} is neither a SavedModel folder nor a .keras file: check that it is complete, "
            'or save the model with model.save("model.keras")'
        )
    model = keras.saving.load_model(path, compile=False, safe_mode=True)
    if not model.inputs:
        raise BadModel(
            f"{path} cannot be served: it does not declare its inputs; save the model with its "
            "input layers"
        )
    nested = model.inputs[0] if isinstance(model, keras.Sequential) else model.input
    specs = {each.name: tf.TensorSpec(each.shape, each.dtype, each.name) for each in model.inputs}

    def call(**tensors: Any) -> dict[str, Any]:
        inputs = [tensors[name] for name in specs]
        return _name_outputs(model(keras.tree.pack_sequence_as(nested, inputs), training=False))

    return _trace(call, specs), model


def _trace(call: Callable[..., dict[str, Any]], specs: _Specs) -> Any:
    return tf.function(call, autograph=False).get_concrete_function(**specs)


def _name_outputs(result: Any) -> dict[str, Any]:
    if isinstance(result, Mapping):
        return {str(name): each for name, each in result.items()}
    return {f"output_{number}": each for number, each in enumerate(keras.tree.flatten(result))}


def _sort_by_name(specs: _Specs) -> _Specs:
    """Sort in natural order, because signatures are unordered."""
    return dict(sorted(specs.items(), key=lambda item: _natural_sort_key(item[0])))


def _natural_sort_key(name: str) -> list[tuple[int, str]]:
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"([0-9]+)", name)]


def _parse_dtype(path: str, name: str, spec: Any) -> np.dtype[Any]:
    if not isinstance(spec, tf.TensorSpec | tf.Tensor):
        raise unsupported_type_error(path, name, type(spec).__name__)
    dtype: np.dtype[Any] = np.dtype(spec.dtype.as_numpy_dtype)
    if to_wire_dtype(dtype).name not in _WIRE_DTYPES:
        raise unsupported_type_error(path, name, spec.dtype.name)
    return dtype


def _tensor_spec(name: str, dtype: np.dtype[Any], spec: Any) -> TensorSpec:
    if spec.shape.rank is None:
        return TensorSpec(name, to_wire_dtype(dtype), None)
    extents = tuple(DYNAMIC if extent is None else int(extent) for extent in spec.shape)
    return TensorSpec(name, to_wire_dtype(dtype), extents)


def _format_error(error: Exception) -> str:
    """Return the first informative line, without hints for programmers."""
    lines = [line.strip() for line in str(error).splitlines()]
    informative = [line for line in lines if line and not line.startswith(_NOISE_PREFIXES)]
    message = informative[0] if informative else type(error).__name__
    return re.split(r" \[Op:|\. If you trust", message)[0].rstrip(".")[:300]


_NOISE_PREFIXES = ("Graph execution error", "Detected at node", "<stack traces", "File ")

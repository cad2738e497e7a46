"""TensorFlow models, by TensorFlow: SavedModel folders and `.keras` files.

Tensors are called what the signature calls them: `serving_default`, or the only one there is. A
`.keras` file has none. Its inputs are called what its input layers are; its outputs `output_0` and
so on, or what they are called in the dictionary it gives: as in the SavedModel that Keras would
export.

How many cores there are for a run holds for the whole process in TensorFlow, from its first work
on: the first model that is loaded decides for all.

A SavedModel is a program. It runs in a graph, not in Python, but its graph can read and write
files: use only those whose source you trust. A `.keras` file is read in the safe mode of Keras,
which runs no Python that a file brings.
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
from cogwork.drivers.mlmodel.engine import BadModel, RunFailed, runs_at_once
from cogwork.drivers.mlmodel.engine_model import EngineModel
from cogwork.drivers.mlmodel.facts import ANY, ModelFacts, TensorFacts
from cogwork.drivers.mlmodel.wire_types import (
    after_a_run,
    before_a_run,
    cast,
    not_carried,
    on_the_wire,
)
from cogwork.resource.tensors import Tensors

_USUAL = "serving_default"
_CARRIED = frozenset(
    ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64")
)
_RUN_FAULTS = (tf.errors.OpError, ValueError, TypeError)
_Specs = Mapping[str, Any]
"""By the name of the tensor."""


class TensorflowModel(EngineModel):
    @staticmethod
    def load(attributes: TensorflowAttributes, threads: int) -> TensorflowEngine:
        return TensorflowEngine(attributes.model_path, threads)


class TensorflowEngine:
    def __init__(self, path: str, threads: int) -> None:
        with contextlib.suppress(RuntimeError):  # it works already: what holds then, stays
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            tf.config.threading.set_inter_op_parallelism_threads(runs_at_once(threads))
        kind, load = ("SavedModel", _saved) if Path(path).is_dir() else ("Keras", _keras)
        try:
            # What it belongs to is kept: its weights go with it.
            self._function, self._of = load(path)
        except BadModel:
            raise
        # It is Python all the way, and raises whatever it stumbles over.
        except Exception as error:
            raise BadModel(
                f"{path} is not a model that TensorFlow {tf.__version__} can run: {_words(error)}; "
                "check that it is whole, or export it anew"
            ) from error
        inputs = _in_order(self._function.structured_input_signature[1])
        outputs = _in_order(self._function.structured_outputs)
        takes = {name: _dtype(path, name, spec) for name, spec in inputs.items()}
        gives = {name: _dtype(path, name, spec) for name, spec in outputs.items()}
        self._cast_in = before_a_run(takes)
        self._cast_out = after_a_run(gives)
        self.facts = ModelFacts(
            kind,
            inputs=tuple(_fact(name, takes[name], spec) for name, spec in inputs.items()),
            outputs=tuple(_fact(name, gives[name], spec) for name, spec in outputs.items()),
        )

    def run(self, tensors: Tensors) -> dict[str, NDArray[Any]]:
        given = cast(tensors, self._cast_in)
        try:
            outputs = self._function(**{name: tf.constant(each) for name, each in given.items()})
        except _RUN_FAULTS as error:
            raise RunFailed(f"the model cannot be run on these tensors: {_words(error)}") from error
        # Views of what TensorFlow gave, which cannot be written to.
        views = {each.name: np.asarray(outputs[each.name]) for each in self.facts.outputs}
        return cast(views, self._cast_out)

    def close(self) -> None:
        del self._function, self._of


def _saved(path: str) -> tuple[Any, object]:
    if not (Path(path) / "saved_model.pb").is_file():
        raise BadModel(
            f"{path} is not a SavedModel: there is no saved_model.pb in it; give the folder that "
            "holds it, or a .keras file"
        )
    model = tf.saved_model.load(path)
    signatures = dict(model.signatures)
    if _USUAL not in signatures and len(signatures) != 1:
        raise BadModel(
            f"{path} cannot be served: its signatures are called {', '.join(signatures)}; export "
            f"it with one called {_USUAL}"
            if signatures
            else f"{path} cannot be served: it has no signature; export it with signatures=..."
        )
    return signatures.get(_USUAL) or next(iter(signatures.values())), model


def _keras(path: str) -> tuple[Any, object]:
    # Files of the format before this one run Python that they bring, whatever one asks for.
    if not (path.endswith(".keras") and zipfile.is_zipfile(path)):
        raise BadModel(
            f"{path} is neither a SavedModel folder nor a .keras file: check that it is whole, or "
            'save the model with model.save("model.keras")'
        )
    model = keras.saving.load_model(path, compile=False, safe_mode=True)
    if not model.inputs:
        raise BadModel(
            f"{path} cannot be served: it does not say what it takes; save the model with its "
            "input layers"
        )
    nested = model.inputs[0] if isinstance(model, keras.Sequential) else model.input
    specs = {each.name: tf.TensorSpec(each.shape, each.dtype, each.name) for each in model.inputs}

    def call(**tensors: Any) -> dict[str, Any]:
        given = [tensors[name] for name in specs]
        return _named(model(keras.tree.pack_sequence_as(nested, given), training=False))

    return _traced(call, specs), model


def _traced(call: Callable[..., dict[str, Any]], specs: _Specs) -> Any:
    return tf.function(call, autograph=False).get_concrete_function(**specs)


def _named(result: Any) -> dict[str, Any]:
    if isinstance(result, Mapping):
        return {str(name): each for name, each in result.items()}
    return {f"output_{number}": each for number, each in enumerate(keras.tree.flatten(result))}


def _in_order(specs: _Specs) -> _Specs:
    """By their names, as people count: signatures have no order."""
    return dict(sorted(specs.items(), key=lambda item: _counted(item[0])))


def _counted(name: str) -> list[tuple[int, str]]:
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"([0-9]+)", name)]


def _dtype(path: str, name: str, spec: Any) -> np.dtype[Any]:
    if not isinstance(spec, tf.TensorSpec | tf.Tensor):
        raise not_carried(path, name, type(spec).__name__)
    dtype: np.dtype[Any] = np.dtype(spec.dtype.as_numpy_dtype)
    if on_the_wire(dtype).name not in _CARRIED:
        raise not_carried(path, name, spec.dtype.name)
    return dtype


def _fact(name: str, dtype: np.dtype[Any], spec: Any) -> TensorFacts:
    if spec.shape.rank is None:
        return TensorFacts(name, on_the_wire(dtype), None)
    extents = tuple(ANY if extent is None else int(extent) for extent in spec.shape)
    return TensorFacts(name, on_the_wire(dtype), extents)


def _words(error: Exception) -> str:
    """The first line that says something, without what only a programmer could do about it."""
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if line and not line.startswith(_ASIDE)]
    said = told[0] if told else type(error).__name__
    return re.split(r" \[Op:|\. If you trust", said)[0].rstrip(".")[:300]


_ASIDE = ("Graph execution error", "Detected at node", "<stack traces", "File ")

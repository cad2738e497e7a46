"""TensorFlow Lite models, by LiteRT."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from typing import Any

import ai_edge_litert
import numpy as np
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

from cogwork.drivers.mlmodel import tflite_trial
from cogwork.drivers.mlmodel.attributes import TfliteAttributes
from cogwork.drivers.mlmodel.engine import BadModel, RunFailed, runs_at_once
from cogwork.drivers.mlmodel.engine_model import EngineModel
from cogwork.drivers.mlmodel.facts import ANY, ModelFacts, Quantisation, TensorFacts
from cogwork.drivers.mlmodel.tflite_file import IDENTIFIER, TfliteFile
from cogwork.drivers.mlmodel.tflite_metadata import (
    TensorMetadata,
    TfliteMetadata,
    read_metadata,
)
from cogwork.drivers.mlmodel.wire_types import (
    after_a_run,
    before_a_run,
    cast,
    not_carried,
    on_the_wire,
)
from cogwork.resource.tensors import Tensors

_LARGE = 100_000_000
"""Bytes of a file."""
_LONGEST_TRIAL = 120
"""Seconds."""
_FAULTS = (ValueError, RuntimeError, TypeError, MemoryError)
"""What LiteRT raises, and what Python does with names and types that it hands out."""

_Details = Mapping[str, Any]
"""Of a tensor, as LiteRT tells them."""
_Run = Callable[[Tensors], dict[str, NDArray[Any]]]


class TfliteModel(EngineModel):
    @staticmethod
    def load(attributes: TfliteAttributes, threads: int) -> TfliteEngine:
        return TfliteEngine(attributes.model_path, threads)


class TfliteEngine:
    def __init__(self, path: str, threads: int) -> None:
        data = _read(path)
        metadata = read_metadata(data)
        try:
            file = TfliteFile(data)
            file.check_operators()
            file.check_unpacked_weights()
            interpreter = _allocated(data, threads)
            layout = _layout(interpreter, file.signatures, metadata)
            inputs = {name: _dtype(path, name, each) for name, each in layout.inputs.items()}
            outputs = {name: _dtype(path, name, each) for name, each in layout.outputs.items()}
            # An interpreter runs one call at a time. Each packs the weights for itself, which a
            # large file has no room for, and what a model remembers from run to run it has once.
            only_one = len(data) > _LARGE or file.keeps_state()
        except _FAULTS as error:
            raise _refusal(path, error) from error
        self._cast_in = before_a_run(inputs)
        self._cast_out = after_a_run(outputs)
        self._runs = _Runs(
            layout.run_of(interpreter),
            lambda: layout.run_of(_allocated(data, threads)),
            most=1 if only_one else runs_at_once(threads),
        )
        self.facts = ModelFacts(
            "TensorFlow Lite",
            inputs=tuple(_facts(layout.inputs, inputs, layout.descriptions)),
            outputs=tuple(_facts(layout.outputs, outputs, layout.descriptions)),
            name=metadata.name,
            description=metadata.description,
            labels=metadata.labels,
            notes=metadata.notes,
        )

    def run(self, tensors: Tensors) -> dict[str, NDArray[Any]]:
        try:
            with self._runs.one() as run:
                outputs = run(cast(tensors, self._cast_in))
        except _FAULTS as error:
            raise RunFailed(f"the model cannot be run on these tensors: {_words(error)}") from error
        return cast(outputs, self._cast_out)

    def close(self) -> None:
        self._runs.close()


class _Runs:
    """As many interpreters as calls run at a time, made when they are first needed."""

    def __init__(self, first: _Run, make: Callable[[], _Run], most: int) -> None:
        self._idle = [first]
        self._make = make
        self._places = threading.BoundedSemaphore(most)
        self._closed = False

    @contextmanager
    def one(self) -> Iterator[_Run]:
        with self._places:
            try:
                run = self._idle.pop()
            except IndexError:
                run = self._make()
            yield run
            # Not after a fault: it keeps the words of each, and half of what it had allocated.
            if not self._closed:
                self._idle.append(run)

    def close(self) -> None:
        self._closed = True
        self._idle.clear()


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the model's tensors are called, and how it is run by these names."""

    signature: str | None
    """What has to be run, unless it is the model's main graph."""
    inputs: Mapping[str, _Details]
    outputs: Mapping[str, _Details]
    descriptions: Mapping[int, str]
    """By the index of the tensor."""

    def run_of(self, interpreter: Interpreter) -> _Run:
        if self.signature is None:
            return _MainGraph(interpreter, self.inputs, self.outputs)
        runner = interpreter.get_signature_runner(self.signature)
        return lambda tensors: runner(**tensors)


class _MainGraph:
    def __init__(
        self,
        interpreter: Interpreter,
        inputs: Mapping[str, _Details],
        outputs: Mapping[str, _Details],
    ) -> None:
        self._interpreter = interpreter
        self._inputs = {name: each["index"] for name, each in inputs.items()}
        self._outputs = {name: each["index"] for name, each in outputs.items()}
        self._shapes = {name: tuple(each["shape"].tolist()) for name, each in inputs.items()}

    def __call__(self, tensors: Tensors) -> dict[str, NDArray[Any]]:
        self._resize({name: tensor.shape for name, tensor in tensors.items()})
        for name, tensor in tensors.items():
            self._interpreter.set_tensor(self._inputs[name], tensor)
        self._interpreter.invoke()
        return {name: self._output(index) for name, index in self._outputs.items()}

    def _resize(self, shapes: dict[str, tuple[int, ...]]) -> None:
        if shapes == self._shapes:
            return
        for name, shape in shapes.items():
            self._interpreter.resize_tensor_input(self._inputs[name], shape)
        self._interpreter.allocate_tensors()
        self._shapes = shapes

    def _output(self, index: int) -> NDArray[Any]:
        try:
            values: NDArray[Any] = self._interpreter.get_tensor(index)
        except ValueError:
            # LiteRT has no array for a tensor without values, such as the boxes around nothing.
            for each in self._interpreter.get_output_details():
                if each["index"] == index and 0 in each["shape"]:
                    return np.empty(each["shape"], each["dtype"])
            raise
        return values


def _read(path: str) -> bytes:
    """The bytes, not a view of the file: somebody may write another model over it."""
    try:
        with FileIO(path) as file:
            _check_kind(path, file.read(8))
            edition = _edition(file)
            _try(path, file)
            file.seek(0)
            data = file.read()
            if _edition(file) != edition:
                raise BadModel(f"{path} was written to while it was loaded; load it again")
    except OSError as error:
        raise BadModel(f"{path} cannot be read: {error.strerror}") from error
    return data


def _edition(file: FileIO) -> tuple[int, int]:
    stat = os.fstat(file.fileno())
    return stat.st_mtime_ns, stat.st_size


_OTHER_KINDS = {
    b"PK\3\4": "a zip archive, as .keras, .pt and .task files are",
    b"\x89HDF": "an HDF5 file, as Keras wrote them",
    b"vers": "the pointer that Git LFS has in place of a file; fetch it with `git lfs pull`",
}


def _check_kind(path: str, head: bytes) -> None:
    if not head:
        raise BadModel(f"{path} is empty; copy the model again")
    if head[4:8] != IDENTIFIER:
        found = _OTHER_KINDS.get(head[:4])
        raise BadModel(
            f"{path} is not a TensorFlow Lite file"
            + (f" but {found}" if found else "")
            + "; give the .tflite file of the model, or use the engine of its own kind"
        )


def _try(path: str, file: FileIO) -> None:
    """A damaged file that would bring the server down brings down a child instead."""
    if getattr(sys, "frozen", False):
        return  # There is no Python to run the trial.
    command = [sys.executable, "-P", tflite_trial.__file__]
    try:
        tried = subprocess.run(  # noqa: S603
            command,
            stdin=file,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_LONGEST_TRIAL,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BadModel(
            f"{path} was tried for {_LONGEST_TRIAL} s and did not come to an end; "
            "check that the file is whole, or export it anew"
        ) from error
    if tried.returncode:
        raise BadModel(
            f"{path} brings LiteRT {ai_edge_litert.__version__} down ({_death(tried.returncode)}), "
            "which a damaged file does; copy the model again, or export it anew"
        )


def _death(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _allocated(data: bytes, threads: int) -> Interpreter:
    # Without options of its own it has the quick kernels of XNNPACK wherever they fit.
    interpreter = Interpreter(model_content=data, num_threads=threads)
    interpreter.allocate_tensors()
    return interpreter


_MAIN_GRAPH = 0
_DEFAULT_SIGNATURE = "serving_default"


def _layout(
    interpreter: Interpreter, signatures: Mapping[str, int], metadata: TfliteMetadata
) -> _Layout:
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    descriptions = dict(_descriptions(inputs, metadata.inputs))
    descriptions.update(_descriptions(outputs, metadata.outputs))
    if not signatures:
        inputs, outputs = _named(inputs, metadata.inputs), _named(outputs, metadata.outputs)
        return _Layout(None, inputs, outputs, descriptions)
    key = _DEFAULT_SIGNATURE if _DEFAULT_SIGNATURE in signatures else next(iter(signatures))
    runner = interpreter.get_signature_runner(key)
    inputs, outputs = runner.get_input_details(), runner.get_output_details()
    if signatures[key] == _MAIN_GRAPH:
        return _Layout(None, inputs, outputs, descriptions)
    return _Layout(key, inputs, outputs, {})


def _named(tensors: list[_Details], told: tuple[TensorMetadata, ...]) -> dict[str, _Details]:
    """As the metadata calls them, if it tells them apart."""
    names = [each.name for each in told if each.name]
    if len(set(names)) == len(told) == len(tensors):
        return dict(zip(names, tensors, strict=True))
    named = dict[str, _Details]()
    for tensor in tensors:
        taken = named.get(tensor["name"], tensor)["index"] != tensor["index"]
        named[f"{tensor['name']}:{tensor['index']}" if taken else tensor["name"]] = tensor
    return named


def _descriptions(
    tensors: list[_Details], told: tuple[TensorMetadata, ...]
) -> Iterator[tuple[int, str]]:
    if len(told) == len(tensors):
        for tensor, metadata in zip(tensors, told, strict=True):
            yield tensor["index"], metadata.description


def _dtype(path: str, name: str, tensor: _Details) -> np.dtype[Any]:
    dtype = np.dtype(tensor["dtype"])
    if on_the_wire(dtype).kind not in "fiu":
        raise not_carried(path, name, "text" if dtype.kind in "SO" else dtype.name)
    return dtype


def _facts(
    tensors: Mapping[str, _Details],
    stored: Mapping[str, np.dtype[Any]],
    descriptions: Mapping[int, str],
) -> Iterable[TensorFacts]:
    for name, tensor in tensors.items():
        scale, zero_point = tensor["quantization"]
        yield TensorFacts(
            name,
            on_the_wire(stored[name]),
            tuple(extent if extent > 0 else ANY for extent in tensor["shape_signature"].tolist()),
            descriptions.get(tensor["index"], ""),
            Quantisation(scale, zero_point) if scale else None,
        )


_CUSTOM_OP = re.compile(r"unresolved custom op: (.+?)\.? See instructions")
_SELECT_OP = re.compile(r"Node number \d+ \(Flex(\w+)\) failed to prepare")


def _refusal(path: str, error: Exception) -> BadModel:
    words = _words(error)
    if select := _SELECT_OP.search(words):
        return BadModel(
            f"{path} cannot be run: its operation {select[1]} is one of TensorFlow's own, which "
            "LiteRT does not have; convert the model with TFLITE_BUILTINS only, "
            "or give it as a SavedModel"
        )
    if custom := _CUSTOM_OP.search(words):
        return BadModel(
            f'{path} cannot be run: its operation "{custom[1]}" is not one of LiteRT\'s; '
            "convert the model without it, and not for an accelerator"
        )
    return BadModel(
        f"{path} is not a model that LiteRT {ai_edge_litert.__version__} can run: {words}; "
        "check that the file is whole, or export it anew"
    )


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:600].rstrip(".")

"""TensorFlow Lite models, run by LiteRT."""

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

from cogwork.core.os_error_text import os_reason
from cogwork.drivers.mlmodel import tflite_crash_probe
from cogwork.drivers.mlmodel.attributes import TfliteAttributes
from cogwork.drivers.mlmodel.engine import BadModel, RunFailed, max_concurrent_runs
from cogwork.drivers.mlmodel.engine_model import EngineModel
from cogwork.drivers.mlmodel.model_info import DYNAMIC, ModelInfo, Quantization, TensorSpec
from cogwork.drivers.mlmodel.tflite_file import IDENTIFIER, TfliteFile
from cogwork.drivers.mlmodel.tflite_metadata import (
    TensorMetadata,
    TfliteMetadata,
    read_metadata,
)
from cogwork.drivers.mlmodel.wire_types import (
    cast_tensors,
    input_casts,
    output_casts,
    to_wire_dtype,
    unsupported_type_error,
)
from cogwork.resource.messages.tensors import Tensors

_LARGE_FILE = 100_000_000
"""File size in bytes above which a model gets a single interpreter."""
_PROBE_TIMEOUT = 120
"""Timeout in seconds of the probe, which loads the model and runs it once."""
_LITERT_ERRORS = (ValueError, RuntimeError, TypeError, MemoryError)
"""Errors of LiteRT, and of Python when it converts names and types from LiteRT."""

_Details = Mapping[str, Any]
"""Details of a tensor, as returned by LiteRT."""
_RunFunction = Callable[[Tensors], dict[str, NDArray[Any]]]


class TfliteModel(EngineModel):
    @staticmethod
    def load(attributes: TfliteAttributes, threads: int) -> TfliteEngine:
        return TfliteEngine(attributes.model_path, threads)


class TfliteEngine:
    def __init__(self, path: str, threads: int) -> None:
        data = _read_model(path)
        metadata = read_metadata(data)
        try:
            file = TfliteFile(data)
            file.check_operator_inputs()
            file.check_unpacked_weights()
            interpreter = _create_interpreter(data, threads)
            layout = _bind_tensors(interpreter, file.signatures, metadata)
            inputs = {name: _parse_dtype(path, name, each) for name, each in layout.inputs.items()}
            outputs = {
                name: _parse_dtype(path, name, each) for name, each in layout.outputs.items()
            }
            # Use several interpreters for concurrent calls, except for large files and stateful
            # models: each interpreter packs its own copy of the weights, and keeps its own state.
            is_single = len(data) > _LARGE_FILE or file.is_stateful()
        except _LITERT_ERRORS as error:
            raise _load_error(path, error) from error
        self._cast_in = input_casts(inputs)
        self._cast_out = output_casts(outputs)
        self._interpreters = _InterpreterPool(
            layout.bind(interpreter),
            lambda: layout.bind(_create_interpreter(data, threads)),
            most=1 if is_single else max_concurrent_runs(threads),
        )
        self.info = ModelInfo(
            "TensorFlow Lite",
            inputs=tuple(_tensor_specs(layout.inputs, inputs, layout.descriptions)),
            outputs=tuple(_tensor_specs(layout.outputs, outputs, layout.descriptions)),
            name=metadata.name,
            description=metadata.description,
            labels=metadata.labels,
            properties=metadata.properties,
        )

    def run(self, tensors: Tensors) -> dict[str, NDArray[Any]]:
        try:
            with self._interpreters.borrow() as run:
                outputs = run(cast_tensors(tensors, self._cast_in))
        except _LITERT_ERRORS as error:
            raise RunFailed(f"the model failed on these tensors: {_format_error(error)}") from error
        return cast_tensors(outputs, self._cast_out)

    def close(self) -> None:
        self._interpreters.close()


class _InterpreterPool:
    """A pool of interpreters, one per concurrent call, created on demand."""

    def __init__(self, first: _RunFunction, make: Callable[[], _RunFunction], most: int) -> None:
        self._idle = [first]
        self._make = make
        self._slots = threading.BoundedSemaphore(most)
        self._closed = False

    @contextmanager
    def borrow(self) -> Iterator[_RunFunction]:
        with self._slots:
            try:
                run = self._idle.pop()
            except IndexError:
                run = self._make()
            yield run
            # Discard the interpreter after an error: it accumulates messages and stays partly
            # allocated.
            if not self._closed:
                self._idle.append(run)

    def close(self) -> None:
        self._closed = True
        self._idle.clear()


@dataclass(frozen=True, slots=True)
class _TensorBindings:
    """The names of the model's tensors, and the signature or graph that has them."""

    signature: str | None
    """Signature to run; None for the main graph."""
    inputs: Mapping[str, _Details]
    outputs: Mapping[str, _Details]
    descriptions: Mapping[int, str]
    """Descriptions by tensor index."""

    def bind(self, interpreter: Interpreter) -> _RunFunction:
        if self.signature is None:
            return _MainGraphRunner(interpreter, self.inputs, self.outputs)
        runner = interpreter.get_signature_runner(self.signature)
        return lambda tensors: runner(**tensors)


class _MainGraphRunner:
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
        return {name: self._read_output(index) for name, index in self._outputs.items()}

    def _resize(self, shapes: dict[str, tuple[int, ...]]) -> None:
        if shapes == self._shapes:
            return
        for name, shape in shapes.items():
            self._interpreter.resize_tensor_input(self._inputs[name], shape)
        self._interpreter.allocate_tensors()
        self._shapes = shapes

    def _read_output(self, index: int) -> NDArray[Any]:
        try:
            values: NDArray[Any] = self._interpreter.get_tensor(index)
        except ValueError:
            # LiteRT cannot return empty tensors, such as the boxes of an image without objects:
            # create them.
            for each in self._interpreter.get_output_details():
                if each["index"] == index and 0 in each["shape"]:
                    return np.empty(each["shape"], each["dtype"])
            raise
        return values


def _read_model(path: str) -> bytes:
    """Return a copy of the file, not a memory map: the file may be overwritten."""
    try:
        with FileIO(path) as file:
            _check_format(path, file.read(8))
            version = _file_version(file)
            _probe_for_crash(path, file)
            file.seek(0)
            data = file.read()
            if _file_version(file) != version:
                raise BadModel(f"{path} was modified while it was loaded; load it again")
    except OSError as error:
        raise BadModel(f"{path} cannot be read: {os_reason(error)}") from error
    return data


def _file_version(file: FileIO) -> tuple[int, int]:
    stat = os.fstat(file.fileno())
    return stat.st_mtime_ns, stat.st_size


_OTHER_FORMATS = {
    b"PK\3\4": "a zip archive, like .keras, .pt and .task files",
    b"\x89HDF": "an HDF5 file, as written by older versions of Keras",
    b"vers": "a Git LFS pointer; fetch the file with `git lfs pull`",
}


def _check_format(path: str, head: bytes) -> None:
    if not head:
        raise BadModel(f"{path} is empty; copy the model again")
    if head[4:8] != IDENTIFIER:
        found = _OTHER_FORMATS.get(head[:4])
        raise BadModel(
            f"{path} is not a TensorFlow Lite file"
            + (f" but {found}" if found else "")
            + "; set model_path to the .tflite file, or use the engine for its format"
        )


def _probe_for_crash(path: str, file: FileIO) -> None:
    """Load the file in a child process first, because a damaged file can crash LiteRT."""
    try:
        probe = subprocess.run(  # noqa: S603
            _probe_command(),
            stdin=file,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PROBE_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BadModel(
            f"{path} did not finish its load test within {_PROBE_TIMEOUT} s; "
            "check that the file is complete, or export it again"
        ) from error
    if probe.returncode:
        raise BadModel(
            f"{path} crashes LiteRT {ai_edge_litert.__version__} "
            f"({_format_exit(probe.returncode)}), probably because the file is damaged; "
            "copy the model again, or export it again"
        )


def _probe_command() -> list[str]:
    if getattr(sys, "frozen", False):
        # A frozen executable is not a Python interpreter, but it runs its own modules with `-m`,
        # too.
        return [sys.executable, "-m", tflite_crash_probe.__name__]
    return [sys.executable, "-P", tflite_crash_probe.__file__]


def _format_exit(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _create_interpreter(data: bytes, threads: int) -> Interpreter:
    # The default settings are the fastest: LiteRT uses its XNNPACK kernels where possible.
    interpreter = Interpreter(model_content=data, num_threads=threads)
    interpreter.allocate_tensors()
    return interpreter


_MAIN_GRAPH = 0
_DEFAULT_SIGNATURE = "serving_default"


def _bind_tensors(
    interpreter: Interpreter, signatures: Mapping[str, int], metadata: TfliteMetadata
) -> _TensorBindings:
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    descriptions = dict(_descriptions(inputs, metadata.inputs))
    descriptions.update(_descriptions(outputs, metadata.outputs))
    if not signatures:
        inputs, outputs = (
            _name_tensors(inputs, metadata.inputs),
            _name_tensors(outputs, metadata.outputs),
        )
        return _TensorBindings(None, inputs, outputs, descriptions)
    key = _DEFAULT_SIGNATURE if _DEFAULT_SIGNATURE in signatures else next(iter(signatures))
    runner = interpreter.get_signature_runner(key)
    inputs, outputs = runner.get_input_details(), runner.get_output_details()
    if signatures[key] == _MAIN_GRAPH:
        return _TensorBindings(None, inputs, outputs, descriptions)
    return _TensorBindings(key, inputs, outputs, {})


def _name_tensors(
    tensors: list[_Details], metadata: tuple[TensorMetadata, ...]
) -> dict[str, _Details]:
    """Return the tensors by name. Use the names in the metadata if all of them are unique."""
    names = [each.name for each in metadata if each.name]
    if len(set(names)) == len(metadata) == len(tensors):
        return dict(zip(names, tensors, strict=True))
    named = dict[str, _Details]()
    for tensor in tensors:
        is_duplicate = named.get(tensor["name"], tensor)["index"] != tensor["index"]
        named[f"{tensor['name']}:{tensor['index']}" if is_duplicate else tensor["name"]] = tensor
    return named


def _descriptions(
    tensors: list[_Details], metadata: tuple[TensorMetadata, ...]
) -> Iterator[tuple[int, str]]:
    if len(metadata) == len(tensors):
        for tensor, declared in zip(tensors, metadata, strict=True):
            yield tensor["index"], declared.description


def _parse_dtype(path: str, name: str, tensor: _Details) -> np.dtype[Any]:
    dtype = np.dtype(tensor["dtype"])
    if to_wire_dtype(dtype).kind not in "fiu":
        raise unsupported_type_error(path, name, "text" if dtype.kind in "SO" else dtype.name)
    return dtype


def _tensor_specs(
    tensors: Mapping[str, _Details],
    stored: Mapping[str, np.dtype[Any]],
    descriptions: Mapping[int, str],
) -> Iterable[TensorSpec]:
    for name, tensor in tensors.items():
        scale, zero_point = tensor["quantization"]
        yield TensorSpec(
            name,
            to_wire_dtype(stored[name]),
            tuple(
                extent if extent > 0 else DYNAMIC for extent in tensor["shape_signature"].tolist()
            ),
            descriptions.get(tensor["index"], ""),
            Quantization(scale, zero_point) if scale else None,
        )


_CUSTOM_OP = re.compile(r"unresolved custom op: (.+?)\.? See instructions")
_SELECT_OP = re.compile(r"Node number \d+ \(Flex(\w+)\) failed to prepare")


def _load_error(path: str, error: Exception) -> BadModel:
    message = _format_error(error)
    if select := _SELECT_OP.search(message):
        return BadModel(
            f"{path} cannot be run: its operation {select[1]} is a TensorFlow operation that "
            "LiteRT does not support; convert the model with TFLITE_BUILTINS only, or use a "
            "SavedModel"
        )
    if custom := _CUSTOM_OP.search(message):
        return BadModel(
            f'{path} cannot be run: LiteRT does not support its operation "{custom[1]}"; '
            "convert the model without it, and not for an accelerator"
        )
    return BadModel(
        f"{path} is not a model that LiteRT {ai_edge_litert.__version__} can run: {message}; "
        "check that the file is complete, or export it again"
    )


def _format_error(error: Exception) -> str:
    return " ".join(str(error).split())[:600].rstrip(".")

"""PyTorch models, run by torch: TorchScript, and programs of torch.export.

TorchScript declares only the names of its inputs. Without a manifest in the file (see
`torch_archive`), any tensor is accepted, and a test run on an image determines the outputs, if the
model takes an image. Programs of torch.export declare everything.

A single output tensor is named `output`. Tensors in a list are named `output_0` and so on, and
tensors in a dictionary or a named tuple are named after their keys.

The number of threads is a process-wide setting in torch, so every run sets it. If models with
different settings run concurrently, the run that started last decides.

Nothing in a file is unpickled, and none of its Python code is run. However, there is no sandbox: a
model can use all memory and time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cogwork.drivers.mlmodel.attributes import TorchAttributes
from cogwork.drivers.mlmodel.engine import BadModel, RunFailed
from cogwork.drivers.mlmodel.engine_model import EngineModel
from cogwork.drivers.mlmodel.file_metadata import parse_file_metadata
from cogwork.drivers.mlmodel.model_info import DYNAMIC, ModelInfo, TensorSpec
from cogwork.drivers.mlmodel.torch_archive import TorchArchive, format_error
from cogwork.drivers.mlmodel.torch_image_probe import (
    ImageProbe,
    merge_specs,
    probe_with_images,
)
from cogwork.drivers.mlmodel.torch_network import TensorSlot, load_network, tensor_shape
from cogwork.drivers.mlmodel.wire_types import unsupported_type_error
from cogwork.resource.labels import Labels
from cogwork.resource.messages.tensors import Tensors

_WIRE_DTYPES = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.bool: torch.uint8,
}
"""Types that the API does not support, and the nearest type that holds every value."""
_NUMPY_DTYPES: dict[torch.dtype, np.dtype[Any]] = {
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
    torch.int8: np.dtype(np.int8),
    torch.uint8: np.dtype(np.uint8),
    torch.int16: np.dtype(np.int16),
    torch.uint16: np.dtype(np.uint16),
    torch.int32: np.dtype(np.int32),
    torch.uint32: np.dtype(np.uint32),
    torch.int64: np.dtype(np.int64),
    torch.uint64: np.dtype(np.uint64),
}
_RUN_ERRORS = (RuntimeError, ValueError, TypeError, IndexError, AssertionError, MemoryError)
_PROBE_EXTENTS = ((1, 64), (2, 128))
"""Sizes for dynamic dimensions in each test run: one for the first dimension, one for all
others."""


class TorchModel(EngineModel):
    @staticmethod
    def load(attributes: TorchAttributes, threads: int) -> TorchEngine:
        return TorchEngine(attributes.model_path, threads)


class TorchEngine:
    def __init__(self, path: str, threads: int) -> None:
        self._path = path
        self._threads = threads
        archive = TorchArchive(path)
        manifest = archive.read_manifest()
        exported = parse_file_metadata(
            {key: _to_text(each) for key, each in archive.read_ultralytics_metadata().items()}
        )
        self._output_names = manifest.outputs
        self._network = load_network(archive, manifest)
        inputs = tuple(self._tensor_spec(each) for each in self._network.inputs)
        properties = dict(exported.properties)
        if [each.shape for each in inputs] == [None]:
            probe = self._probe_with_images()
            outputs = probe.outputs
            if probe.side is not None:
                properties.setdefault("imgsz", [probe.side, probe.side])
        else:
            outputs = self._determine_outputs(inputs)
        self.info = ModelInfo(
            archive.kind.value,
            inputs=inputs,
            outputs=outputs,
            name=self._network.name,
            description=manifest.description or exported.description,
            labels=Labels(dict(enumerate(manifest.labels))) if manifest.labels else exported.labels,
            properties=properties,
        )

    def run(self, tensors: Tensors) -> dict[str, NDArray[Any]]:
        inputs = [_to_torch(each, tensors[each.name]) for each in self._network.inputs]
        input_pointers = {each.untyped_storage().data_ptr() for each in inputs}
        return {
            name: _to_numpy(output, input_pointers) for name, output in self._run_network(inputs)
        }

    def close(self) -> None:
        del self._network

    def _run_network(self, inputs: Sequence[torch.Tensor]) -> Iterable[tuple[str, torch.Tensor]]:
        torch.set_num_threads(self._threads)
        try:
            with torch.inference_mode():
                result = self._network.run(inputs)
        except _RUN_ERRORS as error:
            raise RunFailed(f"the model failed on these tensors: {format_error(error)}") from error
        return self._name_outputs(result)

    def _name_outputs(self, result: Any) -> Iterable[tuple[str, torch.Tensor]]:
        found = list(_flatten(result, ""))
        if not self._output_names:
            return found
        if len(found) != len(self._output_names):
            raise RunFailed(
                f"the model returns {len(found)} tensors, but the cogwork.json in its file names "
                f"{len(self._output_names)}; name every tensor"
            )
        return zip(self._output_names, (tensor for _, tensor in found), strict=True)

    def _determine_outputs(self, inputs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
        """Return the outputs, or an empty tuple if they are unknown until the first run.

        They are unknown if an input has no declared shape, or if the test run of a dynamic model
        fails.
        """
        if any(each.shape is None for each in inputs):
            return ()
        is_dynamic = any(DYNAMIC in (each.shape or ()) for each in inputs)
        try:
            if self._network.output_template is not None:
                return self._tensor_specs(self._name_outputs(self._network.output_template))
            probes = [
                self._probe_outputs(inputs, extents) for extents in _PROBE_EXTENTS[: 1 + is_dynamic]
            ]
        except RunFailed as error:
            if is_dynamic:
                return ()
            raise BadModel(f"{self._path} cannot be served: {error}") from error
        return tuple(map(merge_specs, probes[0], probes[-1]))

    def _probe_outputs(
        self, inputs: Sequence[TensorSpec], extents: tuple[int, int]
    ) -> tuple[TensorSpec, ...]:
        zeros = [np.zeros(_fill_dynamic(each.shape or (), extents), each.dtype) for each in inputs]
        slots = self._network.inputs
        tensors = [_to_torch(slot, zero) for slot, zero in zip(slots, zeros, strict=True)]
        return self._tensor_specs(self._run_network(tensors))

    def _probe_with_images(self) -> ImageProbe:
        (slot,) = self._network.inputs
        return probe_with_images(
            lambda image: self._tensor_specs(self._run_network([_to_torch(slot, image)]))
        )

    def _tensor_specs(self, named: Iterable[tuple[str, torch.Tensor]]) -> tuple[TensorSpec, ...]:
        return tuple(
            self._tensor_spec(TensorSlot(name, each.dtype, tensor_shape(each)))
            for name, each in named
        )

    def _tensor_spec(self, slot: TensorSlot) -> TensorSpec:
        dtype = slot.dtype or torch.float32
        wire_dtype = _NUMPY_DTYPES.get(_WIRE_DTYPES.get(dtype, dtype))
        if wire_dtype is None:
            raise unsupported_type_error(self._path, slot.name, str(dtype))
        return TensorSpec(slot.name, wire_dtype, slot.shape)


class _BorrowedArray:
    """Wraps an array for torch without a copy and without a warning about read-only memory."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array  # torch refers to this object, so the array stays in memory
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def _to_torch(slot: TensorSlot, tensor: NDArray[Any]) -> torch.Tensor:
    """Convert a tensor without a copy, unless the model writes to the tensor."""
    plain = np.require(tensor, requirements="C")
    memory = plain.copy() if slot.is_mutated else np.asarray(_BorrowedArray(plain))
    return torch.from_numpy(memory).to(slot.dtype)


def _to_numpy(output: torch.Tensor, input_pointers: set[int]) -> NDArray[Any]:
    """Convert an output without a copy, unless the output shares memory with an input.

    The result is read-only, because it may share memory with the model.
    """
    if output.untyped_storage().data_ptr() in input_pointers:
        output = output.clone()
    array: NDArray[Any] = output.to(_WIRE_DTYPES.get(output.dtype, output.dtype)).numpy(force=True)
    array.flags.writeable = False
    return array


def _flatten(result: Any, name: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield all tensors of a nested result with their names."""
    match result:
        case torch.Tensor():
            yield name or "output", result
        case Mapping():
            for key, each in result.items():
                yield from _flatten(each, f"{name}_{key}" if name else str(key))
        case tuple() if hasattr(result, "_fields"):
            yield from _flatten(dict(zip(result._fields, result, strict=True)), name)
        case tuple() | list():
            for number, each in enumerate(result):
                yield from _flatten(each, f"{name or 'output'}_{number}")
        case None:
            pass
        case _:
            raise RunFailed(
                f'the model returns a {type(result).__name__} as "{name or "output"}": export a '
                "module that returns tensors"
            )


def _fill_dynamic(shape: Sequence[int], extents: tuple[int, int]) -> tuple[int, ...]:
    return tuple(
        extents[index > 0] if extent == DYNAMIC else extent for index, extent in enumerate(shape)
    )


def _to_text(value: Any) -> str:
    """Format a value as a Python literal, because metadata is parsed as Python literals."""
    return value if isinstance(value, str) else repr(value)

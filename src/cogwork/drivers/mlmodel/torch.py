"""PyTorch models, by torch: TorchScript, and the programs of torch.export.

TorchScript says what its inputs are called and nothing else of them. Without a note in its file
(see `torch_archive`) any tensor is taken, and the outputs are not known ahead of a run. Programs
of torch.export say it all.

A tensor that a model gives out is called `output`, those of a list `output_0` and so on, those of
a dictionary or a named tuple what they are called there.

How many cores a run may use holds for the whole process in torch, so every run says it anew;
where models differ in it and run at the same time, whichever began last decides.

Nothing of a file is unpickled, and none of its Python is run. Yet there is no sandbox: a model can
take all the memory and time there is.
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
from cogwork.drivers.mlmodel.facts import ANY, ModelFacts, TensorFacts
from cogwork.drivers.mlmodel.notes import read_notes
from cogwork.drivers.mlmodel.torch_archive import TorchArchive, words
from cogwork.drivers.mlmodel.torch_network import Slot, load_network, shape_of
from cogwork.drivers.mlmodel.wire_types import not_carried
from cogwork.resource.labels import Labels
from cogwork.resource.tensors import Tensors

_INSTEAD = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.bool: torch.uint8,
}
"""The API has none of them; the nearest that holds every value."""
_CARRIED: dict[torch.dtype, np.dtype[Any]] = {
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
_RUN_FAULTS = (RuntimeError, ValueError, TypeError, IndexError, AssertionError, MemoryError)
_TRIED = ((1, 64), (2, 128))
"""What the first extent of a tensor, and any other, is tried with where it is open."""


class TorchModel(EngineModel):
    @staticmethod
    def load(attributes: TorchAttributes, threads: int) -> TorchEngine:
        return TorchEngine(attributes.model_path, threads)


class TorchEngine:
    def __init__(self, path: str, threads: int) -> None:
        self._path = path
        self._threads = threads
        archive = TorchArchive(path)
        note = archive.note()
        others = read_notes({key: _written(each) for key, each in archive.ultralytics().items()})
        self._names = note.outputs
        self._network = load_network(archive, note)
        inputs = tuple(self._fact(each) for each in self._network.inputs)
        self.facts = ModelFacts(
            archive.kind.value,
            inputs=inputs,
            outputs=self._outputs(inputs),
            name=self._network.name,
            description=note.description or others.description,
            labels=Labels(dict(enumerate(note.labels))) if note.labels else others.labels,
            notes=others.others,
        )

    def run(self, tensors: Tensors) -> dict[str, NDArray[Any]]:
        given = [_given(each, tensors[each.name]) for each in self._network.inputs]
        taken = {each.untyped_storage().data_ptr() for each in given}
        return {name: _array(output, taken) for name, output in self._result(given)}

    def close(self) -> None:
        del self._network

    def _result(self, given: Sequence[torch.Tensor]) -> Iterable[tuple[str, torch.Tensor]]:
        torch.set_num_threads(self._threads)
        try:
            with torch.inference_mode():
                result = self._network.run(given)
        except _RUN_FAULTS as error:
            raise RunFailed(f"the model cannot be run on these tensors: {words(error)}") from error
        return self._named(result)

    def _named(self, result: Any) -> Iterable[tuple[str, torch.Tensor]]:
        found = list(_flat(result, ""))
        if not self._names:
            return found
        if len(found) != len(self._names):
            raise RunFailed(
                f"the model gives {len(found)} tensors, and the cogwork.json in its file names "
                f"{len(self._names)}; name each"
            )
        return zip(self._names, (tensor for _, tensor in found), strict=True)

    def _outputs(self, inputs: Sequence[TensorFacts]) -> tuple[TensorFacts, ...]:
        """None where only a run can tell, and none succeeds with whatever shape comes to mind."""
        if any(each.shape is None for each in inputs):
            return ()
        is_open = any(ANY in (each.shape or ()) for each in inputs)
        try:
            if self._network.gives is not None:
                return self._described(self._named(self._network.gives))
            tried = [self._tried(inputs, extents) for extents in _TRIED[: 1 + is_open]]
        except RunFailed as error:
            if is_open:
                return ()
            raise BadModel(f"{self._path} cannot be served: {error}") from error
        return tuple(map(_common, tried[0], tried[-1]))

    def _tried(
        self, inputs: Sequence[TensorFacts], extents: tuple[int, int]
    ) -> tuple[TensorFacts, ...]:
        zeros = [np.zeros(_closed(each.shape or (), extents), each.dtype) for each in inputs]
        slots = self._network.inputs
        given = [_given(slot, zero) for slot, zero in zip(slots, zeros, strict=True)]
        return self._described(self._result(given))

    def _described(self, named: Iterable[tuple[str, torch.Tensor]]) -> tuple[TensorFacts, ...]:
        return tuple(self._fact(Slot(name, each.dtype, shape_of(each))) for name, each in named)

    def _fact(self, slot: Slot) -> TensorFacts:
        dtype = slot.dtype or torch.float32
        carried = _CARRIED.get(_INSTEAD.get(dtype, dtype))
        if carried is None:
            raise not_carried(self._path, slot.name, str(dtype))
        return TensorFacts(slot.name, carried, slot.shape)


class _Lent:
    """An array that torch takes without a copy, or a warning that it could be written to."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array  # torch keeps this, and this keeps the memory
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def _given(slot: Slot, tensor: NDArray[Any]) -> torch.Tensor:
    """Without a copy, unless the model writes to what it is given."""
    plain = np.require(tensor, requirements="C")
    own = plain.copy() if slot.written else np.asarray(_Lent(plain))
    return torch.from_numpy(own).to(slot.dtype)


def _array(output: torch.Tensor, taken: set[int]) -> NDArray[Any]:
    """Without a copy, unless the model gives back what it was given. It may also be the model's
    own, so nobody can write to it."""
    if output.untyped_storage().data_ptr() in taken:
        output = output.clone()
    array: NDArray[Any] = output.to(_INSTEAD.get(output.dtype, output.dtype)).numpy(force=True)
    array.flags.writeable = False
    return array


def _flat(result: Any, name: str) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors by their names, however they are nested."""
    match result:
        case torch.Tensor():
            yield name or "output", result
        case Mapping():
            for key, each in result.items():
                yield from _flat(each, f"{name}_{key}" if name else str(key))
        case tuple() if hasattr(result, "_fields"):
            yield from _flat(dict(zip(result._fields, result, strict=True)), name)
        case tuple() | list():
            for number, each in enumerate(result):
                yield from _flat(each, f"{name or 'output'}_{number}")
        case None:
            pass
        case _:
            raise RunFailed(
                f'the model gives a {type(result).__name__} as "{name or "output"}": export a '
                "module that gives tensors"
            )


def _closed(shape: Sequence[int], extents: tuple[int, int]) -> tuple[int, ...]:
    return tuple(
        extents[place > 0] if extent == ANY else extent for place, extent in enumerate(shape)
    )


def _common(one: TensorFacts, other: TensorFacts) -> TensorFacts:
    """What holds for both of two runs."""
    if one.shape is None or other.shape is None or len(one.shape) != len(other.shape):
        return TensorFacts(one.name, one.dtype, None)
    extents = zip(one.shape, other.shape, strict=True)
    return TensorFacts(one.name, one.dtype, tuple(a if a == b else ANY for a, b in extents))


def _written(value: Any) -> str:
    """As Python spells it, which is how notes are read."""
    return value if isinstance(value, str) else repr(value)

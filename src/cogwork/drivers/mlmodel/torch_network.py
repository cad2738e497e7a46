"""A model as torch runs it, whichever kind of file it came in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    InputSpec,
    OutputKind,
    TensorArgument,
)

from cogwork.drivers.mlmodel.engine import BadModel
from cogwork.drivers.mlmodel.facts import ANY
from cogwork.drivers.mlmodel.torch_archive import Kind, Note, TorchArchive, not_whole
from cogwork.drivers.mlmodel.torch_program import load_program

DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
        torch.bool,
        torch.int8,
        torch.uint8,
        torch.int16,
        torch.uint16,
        torch.int32,
        torch.uint32,
        torch.int64,
        torch.uint64,
    )
}
"""By the names that notes use."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A tensor that a model takes."""

    name: str
    dtype: torch.dtype | None = None
    """None, as the shape, where the file does not say."""
    shape: tuple[int, ...] | None = None
    written: bool = False
    """Whether the model writes to it."""


@dataclass(frozen=True, slots=True)
class Network:
    inputs: tuple[Slot, ...]
    run: Callable[[Sequence[torch.Tensor]], Any]
    """Takes a tensor for each input, and gives whatever the model does."""
    gives: Any = None
    """The same without values, where it is known ahead of a run."""
    name: str = ""


def load_network(archive: TorchArchive, note: Note) -> Network:
    """Raises BadModel."""
    return _program(archive) if archive.kind is Kind.PROGRAM else _script(archive, note)


def shape_of(tensor: torch.Tensor) -> tuple[int, ...]:
    extents: Sequence[Any] = tensor.shape  # formulas, where they are open
    return tuple(extent if isinstance(extent, int) else ANY for extent in extents)


def _script(archive: TorchArchive, note: Note) -> Network:
    archive.refuse_reach()
    try:
        loaded: Any = torch.jit.load(archive.path, "cpu")  # type: ignore[no-untyped-call]
        module = loaded.eval()
        arguments = module.forward.schema.arguments
        graph = module.inlined_graph
    except (RuntimeError, ValueError, AttributeError) as error:
        raise not_whole(archive.path, error) from error
    aliases = graph.alias_db()
    wanted = [
        (argument, aliases.has_writers(value))
        for argument, value in zip(arguments, graph.inputs(), strict=True)
        if not argument.has_default_value()
    ][1:]  # the first is the module itself
    for argument, _ in wanted:
        if str(argument.type) != "Tensor":
            raise BadModel(
                f'{archive.path} cannot be served: its input "{argument.name}" is a '
                f"{argument.type}; export a module whose forward takes tensors and calls it"
            )
    names = [argument.name for argument, _ in wanted]
    slots = [Slot(argument.name, written=written) for argument, written in wanted]
    return Network(
        _noted(archive, note, slots),
        lambda given: module(**dict(zip(names, given, strict=True))),
        name=str(module.original_name),
    )


def _noted(archive: TorchArchive, note: Note, slots: Sequence[Slot]) -> tuple[Slot, ...]:
    """With what the file says of the inputs beside their names."""
    if not note.inputs:
        shape = _ultralytics_shape(archive.ultralytics())
        if shape is None or len(slots) != 1:
            return tuple(slots)
        return (Slot(slots[0].name, torch.float32, shape, slots[0].written),)
    if len(note.inputs) != len(slots) or any(each.dtype not in DTYPES for each in note.inputs):
        takes = ", ".join(f'"{slot.name}"' for slot in slots) or "nothing"
        raise BadModel(
            f"the cogwork.json in {archive.path} does not fit its model, which takes {takes}: name "
            f"each input in that order, with one of the types {', '.join(DTYPES)}"
        )
    return tuple(
        Slot(said.name, DTYPES[said.dtype], said.shape, slot.written)
        for said, slot in zip(note.inputs, slots, strict=True)
    )


def _ultralytics_shape(notes: Mapping[str, Any]) -> tuple[int, ...] | None:
    match notes:
        case {"imgsz": [int(height), int(width)], "batch": int(batch)}:
            return (batch, 3, height, width)
        case {"shape": [int(), int(), int(), int()] as shape}:
            return tuple(shape)
    return None


def _program(archive: TorchArchive) -> Network:
    program, module = load_program(archive)
    try:
        values = {node.name: node.meta.get("val") for node in program.graph.nodes}
        leaves = [
            _leaf(archive, program, spec, values)
            for spec in program.graph_signature.input_specs
            if spec.kind is InputKind.USER_INPUT
        ]
        nested = program.call_spec
        gives = nested.out_spec.unflatten(
            [
                spec.arg.value if isinstance(spec.arg, ConstantArgument) else values[spec.arg.name]
                for spec in program.graph_signature.output_specs
                if spec.kind is OutputKind.USER_OUTPUT
            ]
        )
    except (LookupError, AttributeError, ValueError) as error:
        raise not_whole(archive.path, error) from error

    def run(given: Sequence[torch.Tensor]) -> Any:
        tensors = iter(given)
        flat = [next(tensors) if isinstance(leaf, Slot) else leaf for leaf in leaves]
        positional, named = nested.in_spec.unflatten(flat)
        return module(*positional, **named)

    return Network(tuple(leaf for leaf in leaves if isinstance(leaf, Slot)), run, gives)


def _leaf(
    archive: TorchArchive, program: ExportedProgram, spec: InputSpec, values: Mapping[str, Any]
) -> Any:
    """Programs also keep a place for what was no tensor when they were exported."""
    if isinstance(spec.arg, ConstantArgument):
        return spec.arg.value
    if not isinstance(spec.arg, TensorArgument):
        raise BadModel(
            f'{archive.path} cannot be served: its input "{spec.arg.name}" is no tensor; export '
            "the model without it"
        )
    name, value = spec.arg.name, values[spec.arg.name]
    written = name in program.graph_signature.user_inputs_to_mutate.values()
    return Slot(name, value.dtype, shape_of(value), written)

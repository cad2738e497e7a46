"""A loaded torch model, independent of its file format."""

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
from cogwork.drivers.mlmodel.model_info import DYNAMIC
from cogwork.drivers.mlmodel.torch_archive import (
    ModelManifest,
    TorchArchive,
    TorchFileKind,
    invalid_model_error,
)
from cogwork.drivers.mlmodel.torch_program import load_program

DTYPES_BY_NAME = {
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
"""Types by the names used in the manifest."""


@dataclass(frozen=True, slots=True)
class TensorSlot:
    """An input tensor of a model."""

    name: str
    dtype: torch.dtype | None = None
    """The type of the tensor. None, like the shape, if the file does not declare it."""
    shape: tuple[int, ...] | None = None
    is_mutated: bool = False
    """Whether the model writes to the tensor."""


@dataclass(frozen=True, slots=True)
class Network:
    inputs: tuple[TensorSlot, ...]
    run: Callable[[Sequence[torch.Tensor]], Any]
    """Run the model on one tensor per input, and return its result unchanged."""
    output_template: Any = None
    """A result with types and shapes but without values, if these are known before a run."""
    name: str = ""


def load_network(archive: TorchArchive, manifest: ModelManifest) -> Network:
    """Load the model from either file format, or raise BadModel."""
    return (
        _load_exported(archive)
        if archive.kind is TorchFileKind.PROGRAM
        else _load_script(archive, manifest)
    )


def tensor_shape(tensor: torch.Tensor) -> tuple[int, ...]:
    extents: Sequence[Any] = tensor.shape  # dynamic sizes are symbolic expressions
    return tuple(extent if isinstance(extent, int) else DYNAMIC for extent in extents)


def _load_script(archive: TorchArchive, manifest: ModelManifest) -> Network:
    archive.reject_file_access()
    try:
        loaded: Any = torch.jit.load(archive.path, "cpu")  # type: ignore[no-untyped-call]
        module = loaded.eval()
        arguments = module.forward.schema.arguments
        graph = module.inlined_graph
    except (RuntimeError, ValueError, AttributeError) as error:
        raise invalid_model_error(archive.path, error) from error
    aliases = graph.alias_db()
    required = [
        (argument, aliases.has_writers(value))
        for argument, value in zip(arguments, graph.inputs(), strict=True)
        if not argument.has_default_value()
    ][1:]  # the first argument is the module itself
    for argument, _ in required:
        if str(argument.type) != "Tensor":
            raise BadModel(
                f'{archive.path} cannot be served: its input "{argument.name}" is a '
                f"{argument.type}; export a module whose forward takes only tensors and calls this "
                "module"
            )
    names = [argument.name for argument, _ in required]
    slots = [TensorSlot(argument.name, is_mutated=is_mutated) for argument, is_mutated in required]
    return Network(
        _apply_manifest(archive, manifest, slots),
        lambda inputs: module(**dict(zip(names, inputs, strict=True))),
        name=str(module.original_name),
    )


def _apply_manifest(
    archive: TorchArchive, manifest: ModelManifest, slots: Sequence[TensorSlot]
) -> tuple[TensorSlot, ...]:
    """Add the types and shapes that the file declares for the inputs."""
    if not manifest.inputs:
        shape = _ultralytics_shape(archive.read_ultralytics_metadata())
        if shape is None or len(slots) != 1:
            return tuple(slots)
        return (TensorSlot(slots[0].name, torch.float32, shape, slots[0].is_mutated),)
    if len(manifest.inputs) != len(slots) or any(
        each.dtype not in DTYPES_BY_NAME for each in manifest.inputs
    ):
        takes = ", ".join(f'"{slot.name}"' for slot in slots) or "nothing"
        raise BadModel(
            f"the cogwork.json in {archive.path} does not match its model, which takes {takes}: "
            f"name each input in that order, with one of the types {', '.join(DTYPES_BY_NAME)}"
        )
    return tuple(
        TensorSlot(declared.name, DTYPES_BY_NAME[declared.dtype], declared.shape, slot.is_mutated)
        for declared, slot in zip(manifest.inputs, slots, strict=True)
    )


def _ultralytics_shape(metadata: Mapping[str, Any]) -> tuple[int, ...] | None:
    match metadata:
        case {"imgsz": [int(height), int(width)], "batch": int(batch)}:
            return (batch, 3, height, width)
        case {"shape": [int(), int(), int(), int()] as shape}:
            return tuple(shape)
    return None


def _load_exported(archive: TorchArchive) -> Network:
    program, module = load_program(archive)
    try:
        values = {node.name: node.meta.get("val") for node in program.graph.nodes}
        leaves = [
            _parse_input(archive, program, spec, values)
            for spec in program.graph_signature.input_specs
            if spec.kind is InputKind.USER_INPUT
        ]
        call_spec = program.call_spec
        template = call_spec.out_spec.unflatten(
            [
                spec.arg.value if isinstance(spec.arg, ConstantArgument) else values[spec.arg.name]
                for spec in program.graph_signature.output_specs
                if spec.kind is OutputKind.USER_OUTPUT
            ]
        )
    except (LookupError, AttributeError, ValueError) as error:
        raise invalid_model_error(archive.path, error) from error

    def run(inputs: Sequence[torch.Tensor]) -> Any:
        tensors = iter(inputs)
        flat = [next(tensors) if isinstance(leaf, TensorSlot) else leaf for leaf in leaves]
        positional, named = call_spec.in_spec.unflatten(flat)
        return module(*positional, **named)

    return Network(tuple(leaf for leaf in leaves if isinstance(leaf, TensorSlot)), run, template)


def _parse_input(
    archive: TorchArchive, program: ExportedProgram, spec: InputSpec, values: Mapping[str, Any]
) -> Any:
    """Return the slot of an input, or the constant for an argument that is not a tensor."""
    if isinstance(spec.arg, ConstantArgument):
        return spec.arg.value
    if not isinstance(spec.arg, TensorArgument):
        raise BadModel(
            f'{archive.path} cannot be served: its input "{spec.arg.name}" is not a tensor; export '
            "the model without it"
        )
    name, value = spec.arg.name, values[spec.arg.name]
    is_mutated = name in program.graph_signature.user_inputs_to_mutate.values()
    return TensorSlot(name, value.dtype, tensor_shape(value), is_mutated)

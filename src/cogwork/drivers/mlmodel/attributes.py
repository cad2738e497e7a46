"""Attributes of the ML model services."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cogwork.config.schema.fields import (
    Attributes,
    FileField,
    FileOrFolderField,
    UnsetIfZero,
)

Threads = Annotated[int, Field(ge=0, le=256), UnsetIfZero()]


class ModelAttributes(Attributes):
    model_path: FileField
    """Path of the model file."""
    label_path: Annotated[FileField, UnsetIfZero()] | None = None
    """Path of a text file with one label per line, in the order of the class index. Defaults to the
    labels inside the model file."""
    num_threads: Threads | None = None
    """Number of CPU cores that one run of the model may use. Defaults to all cores, at most 4.
    Concurrent runs share the cores."""


class OnnxAttributes(ModelAttributes):
    """An ONNX model, run by ONNX Runtime."""


class TfliteAttributes(ModelAttributes):
    """A TensorFlow Lite model, run by LiteRT."""


class TorchAttributes(ModelAttributes):
    """A PyTorch model: TorchScript, or a program of torch.export."""


class TensorflowAttributes(ModelAttributes):
    """A TensorFlow model: a SavedModel folder or a `.keras` file."""

    model_path: FileOrFolderField
    """Path of a SavedModel folder or a `.keras` file."""


class OpenvinoAttributes(ModelAttributes):
    """An ONNX, TensorFlow Lite or OpenVINO model, run by OpenVINO: faster on many x86 CPUs."""

    precision: Literal["float32", "reduced"] = "float32"
    """`reduced` allows the CPU to calculate with lower precision, which is faster where supported
    and changes the results slightly."""

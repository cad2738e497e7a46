"""What the ML models read from their configuration."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cogwork.config.fields import Attributes, FileField

Threads = Annotated[int, Field(ge=1, le=256)]


class ModelAttributes(Attributes):
    model_path: FileField
    """The model's file."""
    label_path: FileField | None = None
    """What the numbers that the model gives out are called: a text with one name a line. Labels
    inside the model's file are used when left out."""
    num_threads: Threads | None = None
    """How many cores one run of the model may use. All of the computer, at most 4, when left
    out. Runs of several callers share the cores."""


class OnnxAttributes(ModelAttributes):
    pass


class TfliteAttributes(ModelAttributes):
    pass


class TorchAttributes(ModelAttributes):
    pass


class TensorflowAttributes(ModelAttributes):
    model_path: str
    """A SavedModel folder, or a `.keras` file."""


class OpenvinoAttributes(ModelAttributes):
    precision: Literal["float32", "reduced"] = "float32"
    """`reduced` lets the processor round, which is quicker on those that can and changes the
    results a little."""

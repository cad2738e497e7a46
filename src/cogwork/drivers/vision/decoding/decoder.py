"""Decoders that read a model's tensors as boxes or as labels, and the reasons if none matches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from cogwork.core.errors import CogworkError
from cogwork.drivers.mlmodel.model_info import TensorSpec
from cogwork.drivers.vision.candidates import Candidates, Floats, ImageFit
from cogwork.resource.labels import Labels

Tensors = Mapping[str, NDArray[Any]]

Normalization = Literal["default", "0..1", "0..255", "imagenet"]
"""Range of pixel values for models with float input. `default` is the normalization of the API,
`imagenet` uses the mean and standard deviation of ImageNet."""


class BadOutput(CogworkError):
    """A model returned tensors that do not match the expected format."""

    status = "FAILED_PRECONDITION"


@dataclass(frozen=True, slots=True)
class ModelView:
    """The description of a local or remote model, as a vision service uses it."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    """Outputs, renamed as configured in `remap_output_names`."""
    labels: Labels | None = None
    properties: Mapping[str, Any] | None = None
    """Metadata of the file that is not about its tensors, such as `task` and `stride`."""
    has_background_class: bool = False
    """Whether the model's own labels, which `label_path` replaced, begin with a background
    class."""


@dataclass(frozen=True, slots=True)
class DetectorDecoder:
    family: str
    """The name of the family, such as `named`, `ssd` or `yolo_v8`."""
    assumptions: tuple[str, ...]
    """Facts that were inferred rather than configured, in sentences."""
    decode: Callable[[Tensors, ImageFit], Candidates]
    """A pure function that decodes the tensors of a run, or raises BadOutput."""
    letterbox: bool = False
    """Whether models of the family expect letterboxed images."""
    align_top_left: bool = False
    """Whether a letterboxed image is at the top left instead of centered."""
    normalization: Normalization = "default"
    """Range of pixel values that models of the family expect."""
    bgr: bool = False
    """Whether models of the family expect BGR channel order."""


@dataclass(frozen=True, slots=True)
class ClassifierDecoder:
    family: str
    assumptions: tuple[str, ...]
    decode: Callable[[Tensors], Floats]
    """A pure function that returns a score from 0 to 1 per class, or raises BadOutput."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The reasons why a model does not fit a role, in sentences that say what to do."""

    reasons: tuple[str, ...]

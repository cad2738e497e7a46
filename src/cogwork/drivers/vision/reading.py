"""How the tensors of a model are read: as boxes or as labels, or why not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from cogwork.core.errors import CogworkError
from cogwork.drivers.mlmodel.facts import TensorFacts
from cogwork.drivers.vision.candidates import Candidates, Fit, Floats
from cogwork.resource.labels import Labels

Tensors = Mapping[str, NDArray[Any]]

Pixels = Literal["default", "0..1", "0..255", "imagenet"]
"""What the values of a picture become for a model that takes floats. `default` is the normalisation
of the API, `imagenet` the mean and deviation of that collection of photos."""


class BadOutput(CogworkError):
    """A model answered with tensors that cannot be what they were taken for."""

    status = "FAILED_PRECONDITION"


@dataclass(frozen=True, slots=True)
class ModelView:
    """What a vision service knows of its model, whichever process that is in."""

    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]
    """Their names are the required ones where the configuration maps them."""
    labels: Labels | None = None
    notes: Mapping[str, Any] | None = None
    """What the file says beside its tensors: `task`, `stride` and such."""


@dataclass(frozen=True, slots=True)
class DetectorReading:
    family: str
    """`named`, `ssd`, `yolo_v8` and so on."""
    assumed: tuple[str, ...]
    """What nobody said and was found out, in sentences."""
    read: Callable[[Tensors, Fit], Candidates]
    """Pure. Raises BadOutput."""
    letterbox: bool = False
    """Whether models of the family are used to pictures that keep their shape."""
    corner: bool = False
    """Whether such a picture lies in the upper left corner instead of the middle."""
    pixels: Pixels = "default"
    """What values they are used to."""
    bgr: bool = False
    """Whether they are used to blue, green, red."""


@dataclass(frozen=True, slots=True)
class ClassifierReading:
    family: str
    assumed: tuple[str, ...]
    read: Callable[[Tensors], Floats]
    """A score from 0 to 1 for each class. Pure. Raises BadOutput."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a model cannot take a role, in sentences that say what to do."""

    reasons: tuple[str, ...]

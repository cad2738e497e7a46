"""A check for settings without effect on the model of a vision service, such as mistyped labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cogwork.config.check.diagnostics import did_you_mean
from cogwork.core.sentences import join_names
from cogwork.drivers.mlmodel.model_info import TensorSpec
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.decoding.classifier import PROBABILITY
from cogwork.drivers.vision.decoding.decoder import ModelView
from cogwork.drivers.vision.decoding.named_outputs import (
    CATEGORY,
    LOCATION,
    SCORE,
    format_tensors,
    is_known_output,
)
from cogwork.drivers.vision.postprocessing.label_filter import find_unknown_labels
from cogwork.drivers.vision.preprocessing.input_plan import IMAGE
from cogwork.resource.labels import Labels

_REQUIRED_OUTPUTS = (LOCATION, CATEGORY, SCORE, PROBABILITY)
_MAX_LISTED = 5
"""Maximum number of labels to name in a sentence; further labels are only counted."""


def find_wrong_remaps(view: ModelView, settings: MlmodelVisionAttributes) -> list[str]:
    """Return a sentence for each name that is mapped, but that the model does not have.

    `view` has the tensor names of the model, before they are remapped.
    """
    return [
        *_check_remap("remap_input_names", settings.remap_input_names, view.inputs),
        *_check_targets("remap_input_names", settings.remap_input_names, view.inputs, (IMAGE,)),
        *_check_remap("remap_output_names", settings.remap_output_names, view.outputs),
        *_check_targets(
            "remap_output_names", settings.remap_output_names, view.outputs, _REQUIRED_OUTPUTS
        ),
    ]


def _check_remap(
    setting: str, remap: Mapping[str, str], tensors: Sequence[TensorSpec]
) -> Iterator[str]:
    names = [each.name for each in tensors]
    for own, required in remap.items():
        if not names or own in names:
            continue
        if required in names:
            yield (
                f'{setting} maps "{own}" to "{required}", but "{required}" is a name in the model: '
                f'to map it, write "{required}": "{own}"'
            )
        else:
            guess = did_you_mean(own, names)
            yield (
                f'{setting} maps "{own}", which the model does not have; it has '
                f"{format_tensors(tensors)}{f': {guess}' if guess else ''}"
            )


def _check_targets(
    setting: str, remap: Mapping[str, str], tensors: Sequence[TensorSpec], required: Sequence[str]
) -> Iterator[str]:
    """Yield a sentence for each name that a tensor is mapped to, but that no decoder looks for."""
    own_names = {each.name for each in tensors}  # `_check_remap` reports reversed entries
    for own, target in remap.items():
        if target in required or target in own_names or is_known_output(target):
            continue
        hint = did_you_mean(target, required) or f"use {', '.join(required)}"
        yield f'{setting} maps "{own}" to "{target}", which has no effect: {hint}'


def find_ignored_labels(settings: MlmodelVisionAttributes, labels: Labels | None) -> Iterator[str]:
    """Yield a sentence about the labels of `label_confidences` that the model does not have."""
    unknown = find_unknown_labels(settings, labels)
    if not unknown:
        return
    listed = join_names([f'"{name}"' for name in unknown], _MAX_LISTED)
    if labels is None:
        yield (
            f"label_confidences names {listed}, but the model has no labels: set `label_path`, or "
            "use the numbers of the classes"
        )
        return
    guess = did_you_mean(unknown[0], labels.names.values())
    yield (
        f"label_confidences names {listed}, which the labels of the model do not contain"
        f"{f': {guess}' if guess else ''}"
    )

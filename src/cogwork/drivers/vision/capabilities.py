"""The vision capabilities of a model, and the reasons why other capabilities are missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.mlmodel.model_info import TensorSpec
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.candidates import ImageFit
from cogwork.drivers.vision.decoding.classifier import PROBABILITY, match_classifier
from cogwork.drivers.vision.decoding.decoder import (
    BadOutput,
    ClassifierDecoder,
    DetectorDecoder,
    Mismatch,
    ModelView,
    Tensors,
)
from cogwork.drivers.vision.decoding.families import match_family
from cogwork.drivers.vision.decoding.named_outputs import check_output_remap, match_named_detector
from cogwork.drivers.vision.preprocessing.input_plan import InputPlan, plan_input
from cogwork.resource.labels import Labels

_NAMED_FAMILIES = ("named", "ssd")
_FORMATS = {"named": "its outputs have the names that the vision service expects"}
"""How the outputs are recognized, in the words of the log."""


@dataclass(frozen=True, slots=True)
class ModelCapabilities:
    plan: InputPlan | None
    """The input format of the model; None if it does not take images."""
    detector: DetectorDecoder | None
    classifier: ClassifierDecoder | None
    mismatches: Mapping[str, tuple[str, ...]]
    """The reasons why a role is not supported. The key is the role: `detector` or `classifier`."""
    labels: Labels | None
    output_names: Mapping[str, str]
    """Maps the model's output names to the names that the decoders expect."""
    unfiltered_detector: DetectorDecoder | None = None
    """The detector without the configured minimum confidences, to find out which results they
    remove."""

    @property
    def has_any(self) -> bool:
        return self.detector is not None or self.classifier is not None

    def __str__(self) -> str:
        """Complete a sentence about the model."""
        found = [
            f"{verb} ({_FORMATS.get(decoder.family, f'output format {decoder.family}')})"
            for verb, decoder in (
                ("detects objects", self.detector),
                ("classifies images", self.classifier),
            )
            if decoder is not None
        ]
        return " and ".join(found) or "neither detects objects nor classifies images"

    def explain_unsupported(self, role: str) -> str:
        return "; ".join(self.mismatches.get(role, ())) or "its outputs do not support this"

    def rename_outputs(self, tensors: Tensors) -> dict[str, NDArray[Any]]:
        return {self.output_names.get(name, name): tensor for name, tensor in tensors.items()}

    def verify(self, tensors: Tensors, fit: ImageFit) -> ModelCapabilities:
        """Return the capabilities without the roles whose decoders reject these tensors."""
        capabilities = self
        if capabilities.detector is not None:
            try:
                capabilities.detector.decode(tensors, fit)
            except BadOutput as error:
                capabilities = replace(
                    capabilities,
                    detector=None,
                    mismatches=_add_mismatch(capabilities.mismatches, "detector", error),
                )
        if capabilities.classifier is not None:
            try:
                capabilities.classifier.decode(tensors)
            except BadOutput as error:
                capabilities = replace(
                    capabilities,
                    classifier=None,
                    mismatches=_add_mismatch(capabilities.mismatches, "classifier", error),
                )
        return capabilities

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON and the command line."""
        return {
            "roles": {
                role: {"family": decoder.family, "assumed": list(decoder.assumptions)}
                for role, decoder in (("detector", self.detector), ("classifier", self.classifier))
                if decoder is not None
            },
            "refused": {role: list(reasons) for role, reasons in self.mismatches.items()},
            "input": _plan_to_dict(self.plan) if self.plan is not None else {},
            "labels": len(self.labels) if self.labels is not None else 0,
        }


def determine_capabilities(view: ModelView, settings: MlmodelVisionAttributes) -> ModelCapabilities:
    """Match the model's outputs to roles: configured names first, then known formats."""
    names = settings.remap_output_names
    if not view.outputs:
        # If the file does not describe its outputs, trust the configuration; a test run verifies it
        # later.
        outputs = tuple(TensorSpec(each, np.dtype(np.float32), None) for each in names)
        view = replace(view, outputs=outputs)
    remap_error = check_output_remap(view, settings, tuple(names.values()))
    view = replace(
        view,
        outputs=tuple(replace(each, name=names.get(each.name, each.name)) for each in view.outputs),
    )
    detector = remap_error or _match_detector(view, settings)
    decoder = detector if isinstance(detector, DetectorDecoder) else None
    classifier: ClassifierDecoder | Mismatch
    if remap_error is not None:
        classifier = remap_error
    elif decoder is not None and not _has_separate_probabilities(view, decoder):
        classifier = Mismatch(("its outputs are decoded as boxes",))
    else:
        classifier = match_classifier(view, settings)
    plan = plan_input(view, settings, decoder)
    if isinstance(plan, Mismatch):
        mismatches = {"detector": plan.reasons, "classifier": plan.reasons}
        return ModelCapabilities(None, None, None, mismatches, view.labels, names)
    mismatches = {
        role: each.reasons
        for role, each in (("detector", detector), ("classifier", classifier))
        if isinstance(each, Mismatch)
    }
    return ModelCapabilities(
        plan,
        decoder,
        classifier if isinstance(classifier, ClassifierDecoder) else None,
        mismatches,
        view.labels,
        names,
        _match_unfiltered_detector(view, settings) if decoder is not None else None,
    )


def _match_detector(
    view: ModelView, settings: MlmodelVisionAttributes
) -> DetectorDecoder | Mismatch:
    named = match_named_detector(view, settings)
    if isinstance(named, DetectorDecoder) or settings.family in _NAMED_FAMILIES:
        return named
    family = match_family(view, settings)
    if isinstance(family, DetectorDecoder):
        return family
    return Mismatch((*named.reasons, *family.reasons))


def _match_unfiltered_detector(
    view: ModelView, settings: MlmodelVisionAttributes
) -> DetectorDecoder | None:
    unfiltered: dict[str, Any] = {"default_minimum_confidence": None, "label_confidences": {}}
    found = _match_detector(view, settings.model_copy(update=unfiltered))
    return found if isinstance(found, DetectorDecoder) else None


def _has_separate_probabilities(view: ModelView, detector: DetectorDecoder) -> bool:
    """Return whether the model has the outputs of both a detector and a classifier."""
    return detector.family == "named" and any(each.name == PROBABILITY for each in view.outputs)


def _plan_to_dict(plan: InputPlan) -> dict[str, Any]:
    return {
        "name": plan.name,
        "summary": str(plan),
        "data_type": plan.dtype.name,
        "layout": plan.layout,
        "width": plan.width,
        "height": plan.height,
        "bgr": plan.bgr,
        "mean": list(plan.mean),
        "std": list(plan.std),
        "letterbox": plan.letterbox,
        "assumed": list(plan.assumptions),
    }


def _add_mismatch(
    mismatches: Mapping[str, tuple[str, ...]], role: str, error: BadOutput
) -> dict[str, tuple[str, ...]]:
    return {**mismatches, role: (str(error),)}

"""What a model can be used for, decided from what is known of it, and why not for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.candidates import Fit
from cogwork.drivers.vision.classify import classifier_reading
from cogwork.drivers.vision.families import family_reading
from cogwork.drivers.vision.input_plan import InputPlan, input_plan
from cogwork.drivers.vision.named import misspelt, named_detector
from cogwork.drivers.vision.reading import (
    BadOutput,
    ClassifierReading,
    DetectorReading,
    ModelView,
    Refusal,
    Tensors,
)
from cogwork.resource.labels import Labels

_NAMED = ("named", "ssd")


@dataclass(frozen=True, slots=True)
class Roles:
    plan: InputPlan | None
    """How pictures are given to it; None where it takes none."""
    detector: DetectorReading | None
    classifier: ClassifierReading | None
    refusals: Mapping[str, tuple[str, ...]]
    """By role."""
    labels: Labels | None
    names: Mapping[str, str]
    """From the model's names of its outputs to the required ones."""

    @property
    def any(self) -> bool:
        return self.detector is not None or self.classifier is not None

    def __str__(self) -> str:
        found = [
            f"a {role} ({reading.family})"
            for role, reading in (("detector", self.detector), ("classifier", self.classifier))
            if reading is not None
        ]
        return " and ".join(found) or "neither a detector nor a classifier"

    def why_not(self, role: str) -> str:
        return "; ".join(self.refusals.get(role, ())) or "its outputs are not read that way"

    def renamed(self, tensors: Tensors) -> dict[str, NDArray[Any]]:
        return {self.names.get(name, name): tensor for name, tensor in tensors.items()}

    def tried(self, tensors: Tensors, fit: Fit) -> Roles:
        """Without the roles that cannot read these tensors."""
        roles = self
        if roles.detector is not None:
            try:
                roles.detector.read(tensors, fit)
            except BadOutput as error:
                roles = replace(
                    roles, detector=None, refusals=_with(roles.refusals, "detector", error)
                )
        if roles.classifier is not None:
            try:
                roles.classifier.read(tensors)
            except BadOutput as error:
                roles = replace(
                    roles, classifier=None, refusals=_with(roles.refusals, "classifier", error)
                )
        return roles

    def described(self) -> dict[str, Any]:
        """For people and programs; plain values."""
        return {
            "roles": {
                role: {"family": reading.family, "assumed": list(reading.assumed)}
                for role, reading in (("detector", self.detector), ("classifier", self.classifier))
                if reading is not None
            },
            "refused": {role: list(reasons) for role, reasons in self.refusals.items()},
            "input": _plan_described(self.plan) if self.plan is not None else {},
            "labels": len(self.labels) if self.labels is not None else 0,
        }


def roles_of(view: ModelView, settings: MlmodelVisionAttributes) -> Roles:
    """Pure. Names that the configuration gives count most, then what the outputs look like."""
    names = settings.remap_output_names
    wrong = misspelt(view, settings, tuple(names.values()))
    view = replace(
        view,
        outputs=tuple(replace(each, name=names.get(each.name, each.name)) for each in view.outputs),
    )
    detector = wrong or _detector(view, settings)
    reading = detector if isinstance(detector, DetectorReading) else None
    classifier: ClassifierReading | Refusal
    if wrong is not None:
        classifier = wrong
    elif reading is not None:
        classifier = Refusal(("its outputs are read as boxes",))
    else:
        classifier = classifier_reading(view, settings)
    plan = input_plan(view, settings, reading)
    if isinstance(plan, Refusal):
        refused = {"detector": plan.reasons, "classifier": plan.reasons}
        return Roles(None, None, None, refused, view.labels, names)
    refusals = {
        role: each.reasons
        for role, each in (("detector", detector), ("classifier", classifier))
        if isinstance(each, Refusal)
    }
    return Roles(
        plan,
        reading,
        classifier if isinstance(classifier, ClassifierReading) else None,
        refusals,
        view.labels,
        names,
    )


def _detector(view: ModelView, settings: MlmodelVisionAttributes) -> DetectorReading | Refusal:
    named = named_detector(view, settings)
    if isinstance(named, DetectorReading) or settings.family in _NAMED:
        return named
    family = family_reading(view, settings)
    if isinstance(family, DetectorReading):
        return family
    return Refusal((*named.reasons, *family.reasons))


def _plan_described(plan: InputPlan) -> dict[str, Any]:
    return {
        "name": plan.name,
        "data_type": plan.dtype.name,
        "layout": plan.layout,
        "width": plan.width,
        "height": plan.height,
        "bgr": plan.bgr,
        "mean": list(plan.mean),
        "std": list(plan.std),
        "letterbox": plan.letterbox,
        "assumed": list(plan.assumed),
    }


def _with(
    refusals: Mapping[str, tuple[str, ...]], role: str, error: BadOutput
) -> dict[str, tuple[str, ...]]:
    return {**refusals, role: (str(error),)}

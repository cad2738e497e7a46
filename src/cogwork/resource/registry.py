"""All models that run in this process, as a catalogue and as a provider."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import logging
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from cogwork.config.catalogue import Shape
from cogwork.graph.name import Api, ModelName
from cogwork.graph.provider import Dependencies, Offer, Unavailable
from cogwork.graph.spec import Spec
from cogwork.resource.easy import EasyModel, easy_model
from cogwork.resource.model import Model

ENTRY_POINTS = "cogwork.models"

_log = logging.getLogger("rdk.resource_manager")


@runtime_checkable
class Closable(Protocol):
    async def close(self) -> None: ...


@runtime_checkable
class Reconfigurable(Protocol):
    async def reconfigure(self, attributes: object, dependencies: Dependencies) -> None: ...


class Registry:
    """Where a model is listed twice, the first one counts."""

    def __init__(self, models: Iterable[Model]) -> None:
        self._models: dict[tuple[Api, ModelName], Model] = {}
        for model in models:
            self._models.setdefault((model.api, model.name), model)
        self._offers = {
            key: Offer(_Builder(model), in_place=model.reconfigures)
            for key, model in self._models.items()
        }

    def find(self, api: Api, model: ModelName) -> Shape | None:
        found = self._models.get((api, model))
        return found.shape if found is not None else None

    def has(self, api: Api, model: ModelName) -> bool:
        return (api, model) in self._models

    def shapes(self) -> Iterable[Shape]:
        return [model.shape for model in self._models.values()]

    def offer(self, spec: Spec) -> Offer | Unavailable | None:
        key = spec.name.api, spec.model
        model = self._models.get(key)
        if isinstance(model, EasyModel):
            return model.builder.offer(spec)
        return self._offers.get(key)


def plugged_in() -> list[Model]:
    """The models of installed packages. One that cannot be loaded is reported and left out."""
    models: list[Model] = []
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        try:
            models += _models_of(entry)
        except (Exception, SystemExit) as error:
            package = entry.dist.name if entry.dist is not None else "a package"
            _log.error(
                "plug-in %s of %s cannot be used: %s; update or uninstall it",
                entry.name,
                package,
                f"{type(error).__name__}: {error}",
            )
    return models


def _models_of(entry: importlib.metadata.EntryPoint) -> list[Model]:
    """An entry point is a model, or a class written for a module; or several of them, or a
    function that returns several."""
    importlib.import_module("cogwork.resource.sdk")  # ahead of whatever imports the SDK
    offered = entry.load()
    if isinstance(offered, Model | type):
        return [_model(offered)]
    return [_model(each) for each in (offered() if callable(offered) else offered)]


def _model(offered: object) -> Model:
    if isinstance(offered, type):
        return easy_model(offered)
    if not isinstance(offered, Model):
        raise TypeError(f"{offered!r} is not a cogwork.resource.model.Model")
    return offered


class _Builder:
    def __init__(self, model: Model) -> None:
        self._model = model

    async def build(self, spec: Spec, dependencies: Dependencies) -> object:
        building = self._model.construct(spec.name, spec.settings, dependencies)
        if not inspect.isawaitable(building):
            raise TypeError(f"what builds {self._model.name} must be `async def`")
        return await building

    async def reconfigure(self, resource: object, spec: Spec, dependencies: Dependencies) -> None:
        if not isinstance(resource, Reconfigurable):
            raise TypeError(f"{type(resource).__name__} has no reconfigure method")
        await resource.reconfigure(spec.settings, dependencies)

    async def close(self, resource: object) -> None:
        if isinstance(resource, Closable):
            await resource.close()

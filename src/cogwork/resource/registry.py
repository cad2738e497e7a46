"""The registry of all models that run in this process: a catalog and a provider."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import logging
from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable

from cogwork.config.schema.model_catalog import ModelSchema
from cogwork.graph.name import Api, ModelName
from cogwork.graph.provider import Dependencies, Offer, Unavailable
from cogwork.graph.spec import Spec
from cogwork.resource.model import Model
from cogwork.resource.sdk.adapter import SdkClassModel, model_from_sdk_class

ENTRY_POINT_GROUP = "cogwork.models"

_log = logging.getLogger("rdk.resource_manager")


@runtime_checkable
class Closable(Protocol):
    async def close(self) -> None: ...


@runtime_checkable
class Reconfigurable(Protocol):
    async def reconfigure(self, attributes: object, dependencies: Dependencies) -> None: ...


class Registry:
    """Models by API and name. If a model is listed twice, the first one is used."""

    def __init__(self, models: Iterable[Model]) -> None:
        self._models: dict[tuple[Api, ModelName], Model] = {}
        for model in models:
            self._models.setdefault((model.api, model.name), model)
        self._offers = {
            key: Offer(_Builder(model), in_place=model.reconfigures)
            for key, model in self._models.items()
        }

    def find(self, api: Api, model: ModelName) -> ModelSchema | None:
        found = self._models.get((api, model))
        return found.schema if found is not None else None

    def has(self, api: Api, model: ModelName) -> bool:
        return (api, model) in self._models

    def find_missing_library(self, api: Api, model: ModelName) -> str | None:
        """Return which library of a model is not installed, and how to install it; None if none is
        missing."""
        found = self._models.get((api, model))
        return found.needs.find_missing() if found is not None and found.needs else None

    def schemas(self) -> Iterable[ModelSchema]:
        return [model.schema for model in self._models.values()]

    def offer(self, spec: Spec) -> Offer | Unavailable | None:
        key = spec.name.api, spec.model
        model = self._models.get(key)
        if isinstance(model, SdkClassModel):
            return model.builder.offer(spec)
        return self._offers.get(key)


def entry_point_models() -> list[Model]:
    """Return the models of installed packages. Log and skip models that cannot be loaded."""
    return [model for _, model in iter_entry_point_models()]


def installed_packages() -> dict[tuple[Api, ModelName], str]:
    """Return, for each model of an entry point, the name of the package that provides the model."""
    return {(model.api, model.name): package for package, model in iter_entry_point_models()}


def iter_entry_point_models() -> Iterator[tuple[str, Model]]:
    """Yield each model with the name of its package."""
    for entry in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
        package = entry.dist.name if entry.dist is not None else "a package"
        try:
            models = _load_entry_point(entry)
        except (Exception, SystemExit) as error:
            _log.error(
                "cannot load plug-in %s of %s: %s; update or uninstall its package",
                entry.name,
                package,
                f"{type(error).__name__}: {error}",
            )
            continue
        yield from ((package, model) for model in models)


def _load_entry_point(entry: importlib.metadata.EntryPoint) -> list[Model]:
    """Load an entry point: a model or a class written for a module, an iterable of them, or a
    function that returns an iterable."""
    # Must precede the import of the SDK.
    importlib.import_module("cogwork.resource.sdk.clean_import")
    offered = entry.load()
    if isinstance(offered, Model | type):
        return [_to_model(offered)]
    return [_to_model(each) for each in (offered() if callable(offered) else offered)]


def _to_model(offered: object) -> Model:
    if isinstance(offered, type):
        return model_from_sdk_class(offered)
    if not isinstance(offered, Model):
        raise TypeError(f"{offered!r} is not a cogwork.resource.model.Model")
    return offered


class _Builder:
    def __init__(self, model: Model) -> None:
        self._model = model

    async def build(self, spec: Spec, dependencies: Dependencies) -> object:
        pending = self._model.construct(spec.name, spec.settings, dependencies)
        if not inspect.isawaitable(pending):
            raise TypeError(f"the constructor of {self._model.name} must be `async def`")
        return await pending

    async def reconfigure(self, resource: object, spec: Spec, dependencies: Dependencies) -> None:
        if not isinstance(resource, Reconfigurable):
            raise TypeError(f"{type(resource).__name__} has no reconfigure method")
        await resource.reconfigure(spec.settings, dependencies)

    async def close(self, resource: object) -> None:
        if isinstance(resource, Closable):
            await resource.close()

"""One model of one API: what it reads, and how a resource of it is made."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from cogwork.config.catalogue import Shape
from cogwork.config.fields import Attributes
from cogwork.graph.name import Api, ModelName, Reference, ResourceName
from cogwork.graph.provider import Dependencies

Construct = Callable[[ResourceName, Any, Dependencies], Awaitable[object]]
"""Gets the name, the validated attributes and the dependencies."""


def imported_when_built(path: str) -> Construct:
    """The `new` of a class given as `package.module:Class`.

    A table of models is read by whoever checks a configuration; a driver, and the libraries it
    stands on, are only for whoever runs it.
    """
    module, _, kind = path.partition(":")

    async def construct(name: ResourceName, attributes: Any, dependencies: Dependencies) -> object:
        importlib.import_module("cogwork.resource.sdk")  # ahead of whatever imports the SDK
        driver = getattr(importlib.import_module(module), kind)
        built: object = await driver.new(name, attributes, dependencies)
        return built

    return construct


def logger_of(name: ResourceName) -> logging.Logger:
    """Where a resource logs, so that the machine's log rules find it."""
    return logging.getLogger(f"rdk.resource_manager.{name}")


def named(dependencies: Dependencies, text: str) -> Any:
    """The dependency that an attribute names. `depends_on` may have brought others."""
    reference = Reference.parse(text)
    for name, resource in dependencies.items():
        if name.short == reference.short and reference.api in (None, name.api):
            return resource
    raise LookupError(f'"{text}" is not among the dependencies')


@dataclass(frozen=True, slots=True)
class Model:
    api: Api
    name: ModelName
    attributes: type[Attributes]
    construct: Construct
    reconfigures: bool = False
    """Whether its resources have `async reconfigure(attributes, dependencies)`."""

    @property
    def shape(self) -> Shape:
        return Shape(self.api, self.name, self.attributes, self.reconfigures)

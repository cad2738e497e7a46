"""One model of one API: what it reads, and how a resource of it is made."""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cogwork.config.catalogue import Shape
from cogwork.config.fields import Attributes
from cogwork.core.errors import CogworkError
from cogwork.graph.name import Api, ModelName, Reference, ResourceName
from cogwork.graph.provider import Dependencies

Construct = Callable[[ResourceName, Any, Dependencies], Awaitable[object]]
"""Gets the name, the validated attributes and the dependencies."""


class MissingExtra(CogworkError):
    """A model whose libraries are not installed."""

    status = "FAILED_PRECONDITION"


@dataclass(frozen=True, slots=True)
class Extra:
    """Libraries that are only installed where they are wanted."""

    name: str
    libraries: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that they read when they are imported, and not again; whoever starts the server
    may set others."""

    async def load(self) -> None:
        """They are large: whoever else is served does not wait for them."""
        for variable, value in self.environment.items():
            os.environ.setdefault(variable, value)
        for library in self.libraries:
            try:
                await asyncio.to_thread(_imported, library)
            except ImportError as error:
                raise MissingExtra(
                    f"{library} cannot be imported ({error}); install it with "
                    f"`pip install 'cogwork[{self.name}]'`"
                ) from error


_IMPORTING = threading.Lock()
"""NumPy, which they all stand on, breaks for good when two threads begin to import it."""


def _imported(library: str) -> None:
    with _IMPORTING:
        known = library in sys.modules
        importlib.import_module(library)
        if not known:
            # What it is made of is there for good: without PyTorch's 140,000 objects, a full
            # collection of garbage holds up everybody for 20 ms instead of 95. What else there is
            # at this moment is passed over, too: little, and once for each engine.
            gc.freeze()


def imported_when_built(
    path: str, needs: Extra | None = None, shared: tuple[object, ...] = ()
) -> Construct:
    """The `new` of a class given as `package.module:Class`. What is `shared` by all resources of
    the model is handed to it, too.

    A table of models is read by whoever checks a configuration; a driver, and the libraries it
    stands on, are only for whoever runs it.
    """
    module, _, kind = path.partition(":")

    async def construct(name: ResourceName, attributes: Any, dependencies: Dependencies) -> object:
        if needs is not None:
            await needs.load()
        importlib.import_module("cogwork.resource.sdk")  # ahead of whatever imports the SDK
        driver = getattr(importlib.import_module(module), kind)
        built: object = await driver.new(name, attributes, dependencies, *shared)
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

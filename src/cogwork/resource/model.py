"""Models: the attributes that a model of an API reads, and the constructor of its resources."""

from __future__ import annotations

import asyncio
import gc
import importlib
import importlib.util
import logging
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cogwork.config.schema.fields import Attributes
from cogwork.config.schema.model_catalog import ModelSchema
from cogwork.core.errors import CogworkError
from cogwork.graph.name import Api, ModelName, Reference, ResourceName
from cogwork.graph.provider import Dependencies

Construct = Callable[[ResourceName, Any, Dependencies], Awaitable[object]]
"""Builds a resource from its name, validated attributes and dependencies."""


class MissingExtra(CogworkError):
    """The libraries of a model are not installed."""

    status = "FAILED_PRECONDITION"

    def __init__(self, library: str, extra: str, error: ImportError) -> None:
        super().__init__(f"{library} cannot be imported ({error}); {install_advice(extra)}")


def install_advice(extra: str) -> str:
    """Return how to install the libraries of an extra. The standalone executable cannot load
    installed libraries, so its users need to install the server instead."""
    if getattr(sys, "frozen", False):
        return (
            "this executable does not contain it; install the server in an environment with "
            f"`python3 -m venv cogwork-env && cogwork-env/bin/pip install 'cogwork[{extra}]'`, "
            "and run `cogwork-env/bin/cogwork-server` instead, with the same options"
        )
    return f"install it with `pip install 'cogwork[{extra}]'`"


@dataclass(frozen=True, slots=True)
class Extra:
    """An optional dependency group of the package, and its libraries."""

    name: str
    libraries: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    """Default environment variables, which the libraries read only when they are imported.
    Variables that are already set take precedence."""

    async def load(self) -> None:
        """Import the libraries in a thread, because large ones would block the loop."""
        for variable, value in self.environment.items():
            os.environ.setdefault(variable, value)
        for library in self.libraries:
            try:
                await asyncio.to_thread(_import_library, library)
            except ImportError as error:
                raise MissingExtra(library, self.name, error) from error

    def find_missing(self) -> str | None:
        """Return why the libraries cannot be imported, without importing them; None if they are
        installed."""
        for library in self.libraries:
            if importlib.util.find_spec(library.partition(".")[0]) is None:
                return f"{library} is not installed; {install_advice(self.name)}"
        return None


NUMPY = Extra("onnx", ("numpy",))

_IMPORT_LOCK = threading.Lock()
"""Serializes imports: NumPy, which all libraries use, fails permanently if two threads import it at
the same time."""


def _import_library(library: str) -> None:
    with _IMPORT_LOCK:
        imported_before = library in sys.modules
        importlib.import_module(library)
        if not imported_before:
            # Exclude the new objects, which are never freed, from garbage collection: with the
            # 140,000 objects of PyTorch, a full collection blocks the process for 95 ms instead of
            # 20. The few other objects that exist now are excluded, too, but only once for each
            # library.
            gc.freeze()


def lazy_constructor(
    path: str, needs: Extra | None = None, shared: tuple[object, ...] = ()
) -> Construct:
    """Return a constructor that imports `package.module:Class` on first use and calls its `new`.

    The objects in `shared` are passed to `new` for all resources of the model. Because of the late
    import, checking a configuration does not load drivers and their libraries.
    """

    async def construct(name: ResourceName, attributes: Any, dependencies: Dependencies) -> object:
        if needs is not None:
            await needs.load()
        # Must precede the import of the SDK.
        importlib.import_module("cogwork.resource.sdk.clean_import")
        resource: object = await _import_object(path).new(name, attributes, dependencies, *shared)
        return resource

    # The module whose docstring describes the model.
    construct.__module__ = path.partition(":")[0]
    return construct


def _import_object(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def logger_of(name: ResourceName) -> logging.Logger:
    """Return the logger of a resource, to which the machine's log rules apply."""
    return logging.getLogger(f"rdk.resource_manager.{name}")


def find_dependency(dependencies: Dependencies, text: str) -> Any:
    """Return the dependency that an attribute names. `dependencies` also contains the resources in
    `depends_on`.

    The text may omit the name of the remote, as the configuration may if there is only one remote.
    """
    reference = Reference.parse(text)
    fitting = [name for name in dependencies if reference.api in (None, name.api)]
    for name in fitting:
        if name.short == reference.short:
            return dependencies[name]
    on_remotes = [name for name in fitting if name.remote and name.name == reference.short]
    if len(on_remotes) == 1:
        return dependencies[on_remotes[0]]
    raise LookupError(f'"{text}" is not among the dependencies')


@dataclass(frozen=True, slots=True)
class Model:
    api: Api
    name: ModelName
    attributes: type[Attributes] | str
    """The class, or its import path `package.module:Class`, which is imported on first use."""
    construct: Construct
    reconfigures: bool = False
    """Whether the class has `async reconfigure(attributes, dependencies)`."""
    needs: Extra | None = None
    """The extra that the model needs; the constructor imports its libraries."""

    @property
    def module(self) -> str:
        """The name of the module that implements the model; empty if it is unknown."""
        return str(getattr(self.construct, "__module__", ""))

    @property
    def schema(self) -> ModelSchema:
        return ModelSchema(self.api, self.name, self.load_attributes(), self.reconfigures)

    def load_attributes(self) -> type[Attributes]:
        if not isinstance(self.attributes, str):
            return self.attributes
        loaded: type[Attributes] = _import_object(self.attributes)
        return loaded

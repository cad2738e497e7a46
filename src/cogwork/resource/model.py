"""One model of one API: what it reads, and how a resource of it is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from cogwork.config.catalogue import Shape
from cogwork.config.fields import Attributes
from cogwork.graph.name import Api, ModelName, Reference, ResourceName
from cogwork.graph.provider import Dependencies

Construct = Callable[[ResourceName, Any, Dependencies], Awaitable[object]]
"""Gets the name, the validated attributes and the dependencies."""


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

"""One model of one API: what it reads, and how a resource of it is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from cogwork.config.catalogue import Shape
from cogwork.config.fields import Attributes
from cogwork.graph.name import Api, ModelName, ResourceName
from cogwork.graph.provider import Dependencies

Construct = Callable[[ResourceName, Any, Dependencies], Awaitable[object]]
"""Gets the name, the validated attributes and the dependencies."""


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

"""What the configuration needs to know of the models there are: their attributes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from cogwork.config.fields import Attributes
from cogwork.graph.name import Api, ModelName


@dataclass(frozen=True, slots=True)
class Shape:
    """One model as seen from a configuration file."""

    api: Api
    model: ModelName
    attributes: type[Attributes]
    reconfigures: bool = False
    """Whether changed attributes are taken over by the running resource."""


class Catalogue(Protocol):
    def find(self, api: Api, model: ModelName) -> Shape | None: ...

    def shapes(self) -> Iterable[Shape]: ...

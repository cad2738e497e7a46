"""The catalog of known models and their attributes, as the configuration needs it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from cogwork.config.schema.fields import Attributes
from cogwork.graph.name import Api, ModelName


@dataclass(frozen=True, slots=True)
class ModelSchema:
    """The API, name and attributes of one model."""

    api: Api
    model: ModelName
    attributes: type[Attributes]
    reconfigures: bool = False
    """Whether a running resource applies changed attributes in place."""


class ModelCatalog(Protocol):
    def find(self, api: Api, model: ModelName) -> ModelSchema | None: ...

    def schemas(self) -> Iterable[ModelSchema]: ...

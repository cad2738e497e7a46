"""A model behind the SDK's contract, whichever engine runs it."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Self, TypeVar

from numpy.typing import NDArray
from viam.proto.service.mlmodel import Metadata
from viam.services.mlmodel import MLModel

from cogwork.drivers.mlmodel.attributes import ModelAttributes
from cogwork.drivers.mlmodel.engine import BadModel, Engine, Run, threads_of_a_run
from cogwork.drivers.mlmodel.facts import ModelFacts, fitting
from cogwork.drivers.mlmodel.loaded import Edition, LoadedModel, LoadedModels
from cogwork.drivers.mlmodel.metadata import metadata_of
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.labels import Labels, labels_in
from cogwork.resource.model import logger_of

T = TypeVar("T")


class EngineModel(MLModel):
    def __init__(
        self,
        name: ResourceName,
        model: LoadedModel,
        models: LoadedModels,
        labels: Labels | None,
        metadata: Metadata,
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._model = model
        self._models = models
        self._facts = model.engine.facts
        self.labels = labels
        """What its numbers are called, where anybody said so."""
        self._metadata = metadata
        self._runs = 0
        self._closed = False

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: Any,
        dependencies: Dependencies,
        models: LoadedModels,
    ) -> Self:
        del dependencies
        threads = threads_of_a_run(attributes.num_threads)
        path = attributes.label_path
        labels = await asyncio.to_thread(labels_in, path) if path is not None else None
        model = await models.take(
            attributes.model_path,
            (cls, cls.options(attributes)),
            threads,
            lambda: cls.load(attributes, threads),
        )
        try:
            facts = model.engine.facts
            labels = labels if labels is not None else facts.labels
            # There may be thousands of labels.
            metadata = await asyncio.to_thread(metadata_of, facts, path, labels)
        except BaseException:
            models.give_back(model)
            raise
        return cls(name, model, models, labels, metadata)

    @staticmethod
    @abstractmethod
    def load(attributes: Any, threads: int) -> Engine:
        """Blocks. Raises BadModel. `threads` is how many cores one run may use."""

    @staticmethod
    def options(attributes: ModelAttributes) -> Hashable:
        """What makes an engine differ from another of the same file, beside its threads."""
        del attributes
        return ()

    @property
    def facts(self) -> ModelFacts:
        return self._facts

    async def infer(
        self, input_tensors: Mapping[str, NDArray[Any]], **_: Any
    ) -> dict[str, NDArray[Any]]:
        tensors = fitting(self._facts.inputs, input_tensors)
        outputs = await self._model.run(tensors)
        self._runs += 1
        return outputs

    async def work(self, work: Callable[[Run], T]) -> T:
        """For whoever has things to do before and after a run: all of it in the engine's own
        threads, in one turn. The tensors are not looked at."""
        self._runs += 1
        return await self._model.work(work)

    async def metadata(self, **_: Any) -> Metadata:
        return self._metadata

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        loaded = self._model.edition
        return {
            "file": loaded.path,
            "bytes": loaded.size,
            "kind": self._facts.kind,
            "runs": self._runs,
            "services": self._model.users,
            "file_changed": await asyncio.to_thread(_has_changed, loaded),
        }

    async def close(self) -> None:
        """Once: others may use what it gives back."""
        if not self._closed:
            self._closed = True
            self._models.give_back(self._model)


def _has_changed(loaded: Edition) -> bool:
    """A model on disk that is replaced is used when its resource is configured anew."""
    try:
        return Edition.of(loaded.path) != loaded
    except BadModel:
        return True

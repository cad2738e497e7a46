"""An ML model service on top of any inference engine."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Self, TypeVar

from numpy.typing import NDArray
from viam.proto.service.mlmodel import Metadata
from viam.services.mlmodel import MLModel

from cogwork.drivers.mlmodel.attributes import ModelAttributes
from cogwork.drivers.mlmodel.engine import BadModel, Engine, RunFunction, threads_per_run
from cogwork.drivers.mlmodel.metadata_proto import build_metadata
from cogwork.drivers.mlmodel.model_cache import FileVersion, LoadedModel, ModelCache
from cogwork.drivers.mlmodel.model_info import ModelInfo, validate_inputs
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.labels import Labels, load_labels
from cogwork.resource.model import logger_of

T = TypeVar("T")


class EngineModel(MLModel):
    def __init__(
        self,
        name: ResourceName,
        model: LoadedModel,
        models: ModelCache,
        labels: Labels | None,
        metadata: Metadata,
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._model = model
        self._cache = models
        self._info = model.engine.info
        self.labels = labels
        """Labels from the configuration or the model file, if any."""
        self._metadata = metadata
        self._run_count = 0
        self._closed = False

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: Any,
        dependencies: Dependencies,
        models: ModelCache,
    ) -> Self:
        del dependencies
        threads = threads_per_run(attributes.num_threads)
        path = attributes.label_path
        labels = await asyncio.to_thread(load_labels, path) if path is not None else None
        model = await models.acquire(
            attributes.model_path,
            (cls, cls.options(attributes)),
            threads,
            lambda: cls.load(attributes, threads),
        )
        try:
            info = model.engine.info
            labels = labels if labels is not None else info.labels
            # There may be thousands of labels, so build the messages in a thread.
            metadata = await asyncio.to_thread(build_metadata, info, path, labels)
        except BaseException:
            models.release(model)
            raise
        return cls(name, model, models, labels, metadata)

    @staticmethod
    @abstractmethod
    def load(attributes: Any, threads: int) -> Engine:
        """Load the model, or raise BadModel. This call blocks.

        `threads` is the number of cores per run.
        """

    @staticmethod
    def options(attributes: ModelAttributes) -> Hashable:
        """Return the options other than the threads that distinguish engines for the same file."""
        del attributes
        return ()

    @property
    def info(self) -> ModelInfo:
        return self._info

    async def infer(
        self, input_tensors: Mapping[str, NDArray[Any]], **_: Any
    ) -> dict[str, NDArray[Any]]:
        tensors = validate_inputs(self._info.inputs, input_tensors)
        outputs = await self._model.run(tensors)
        self._run_count += 1
        return outputs

    async def run_with_engine(self, work: Callable[[RunFunction], T]) -> T:
        """Run `work` as one job in the engine's threads.

        `work` calls the engine, and may process tensors before and after. The tensors are not
        validated.
        """
        self._run_count += 1
        return await self._model.run_with_engine(work)

    async def metadata(self, **_: Any) -> Metadata:
        return self._metadata

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        version = self._model.version
        return {
            "file": version.path,
            "bytes": version.size,
            "kind": self._info.kind,
            "runs": self._run_count,
            "services": self._model.user_count,
            "file_changed": await asyncio.to_thread(_has_changed, version),
        }

    async def close(self) -> None:
        """Release the model if it is not released yet; other services may share it."""
        if not self._closed:
            self._closed = True
            self._cache.release(self._model)


def _has_changed(version: FileVersion) -> bool:
    """Return whether the file was replaced. The new file is used after a reconfiguration."""
    try:
        return FileVersion.from_path(version.path) != version
    except BadModel:
        return True

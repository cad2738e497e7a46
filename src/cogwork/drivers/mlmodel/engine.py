"""The interface of inference engines. All calls block and run in dedicated threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from cogwork.core.errors import CogworkError

if TYPE_CHECKING:  # listing the models must not import NumPy
    from numpy.typing import NDArray

    from cogwork.drivers.mlmodel.model_info import ModelInfo
    from cogwork.resource.messages.tensors import Tensors

_MAX_DEFAULT_THREADS = 4
"""Default maximum number of threads: small models do not benefit from more, and other work needs
cores."""


class BadModel(CogworkError):
    """This engine cannot run the file. The message says why and what to do."""

    status = "FAILED_PRECONDITION"


class RunFailed(CogworkError):
    """The engine failed to run the model on the given tensors."""

    status = "INVALID_ARGUMENT"


class Engine(Protocol):
    """A loaded model file."""

    @property
    def info(self) -> ModelInfo: ...

    def run(self, tensors: Tensors) -> dict[str, NDArray[Any]]:
        """Run the model on tensors that match `info`. Thread-safe."""

    def close(self) -> None:
        """Free the model. Called when no run is in progress."""


RunFunction = Callable[["Tensors"], "dict[str, NDArray[Any]]"]
"""The `run` method of an engine."""


def threads_per_run(num_threads: int | None) -> int:
    return num_threads or min(os.cpu_count() or 1, _MAX_DEFAULT_THREADS)


def max_concurrent_runs(num_threads: int) -> int:
    """Return how many runs the CPU cores allow at the same time."""
    return max(1, (os.cpu_count() or 1) // num_threads)

"""What runs a model. Everything here blocks, and is called in threads of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from cogwork.core.errors import CogworkError

if TYPE_CHECKING:  # the table of models is read without NumPy
    from numpy.typing import NDArray

    from cogwork.drivers.mlmodel.facts import ModelFacts
    from cogwork.resource.tensors import Tensors

_MOST_THREADS = 4
"""By default. Small models gain nothing from more, and other work has to run, too."""


class BadModel(CogworkError):
    """A file that this engine cannot run, and what to do."""

    status = "FAILED_PRECONDITION"


class RunFailed(CogworkError):
    """The engine could not make anything of the tensors."""

    status = "INVALID_ARGUMENT"


class Engine(Protocol):
    """One model file, loaded."""

    @property
    def facts(self) -> ModelFacts: ...

    def run(self, tensors: Tensors) -> dict[str, NDArray[Any]]:
        """The tensors fit the facts. Several threads may run it at a time."""

    def close(self) -> None:
        """When no run is under way any more."""


Run = Callable[["Tensors"], "dict[str, NDArray[Any]]"]
"""An engine's `run`."""


def threads_of_a_run(num_threads: int | None) -> int:
    return num_threads or min(os.cpu_count() or 1, _MOST_THREADS)


def runs_at_once(num_threads: int) -> int:
    """As many as the cores have room for."""
    return max(1, (os.cpu_count() or 1) // num_threads)

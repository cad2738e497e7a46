"""The machine's interface to its modules, independent of what runs them."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, Protocol

from google.protobuf.descriptor_pool import DescriptorPool

from cogwork.core.errors import NotFound
from cogwork.graph.name import Api, ModelName


class ModuleState(enum.IntEnum):
    """The state of a module, with the numbers of the public API."""

    PENDING = 1
    STARTING = 2
    READY = 3
    UNHEALTHY = 4
    CLOSING = 5


class ModuleStatus(NamedTuple):
    name: str
    state: ModuleState
    since: float
    error: str
    failures: int
    """Consecutive failures."""
    starts: int
    pid: int | None


class ModuleModel(NamedTuple):
    module: str
    api: Api
    model: ModelName
    is_local: bool


class ModuleHost(Protocol):
    def any_configured(self) -> bool:
        """Return whether any module is configured. Checked with every call."""

    def services(self) -> Mapping[Api, str]:
        """Return the gRPC service of each API that modules provide."""

    def descriptor_pools(self) -> Mapping[str, DescriptorPool]:
        """Return the descriptors of the services that only modules know, by service."""

    def pending_reason(self) -> str | None:
        """Return why some modules are not ready, which may provide more APIs; None if all are."""

    def restricted_modules(self) -> Collection[str]:
        """Return the modules that may call only their dependencies. Checked with every call."""

    def provides_model(self, module: str, api: Api, model: ModelName) -> bool:
        """Return whether the module runs the resources of this model."""

    def statuses(self) -> Iterable[ModuleStatus]: ...

    def models(self) -> Iterable[ModuleModel]: ...

    def restart(self, name: str, module_id: str) -> None:
        """Restart a module. Raise NotFound if there is no such module."""


class NoModules:
    """A host without modules."""

    def any_configured(self) -> bool:
        return False

    def services(self) -> Mapping[Api, str]:
        return {}

    def descriptor_pools(self) -> Mapping[str, DescriptorPool]:
        return {}

    def pending_reason(self) -> str | None:
        return None

    def restricted_modules(self) -> Collection[str]:
        return ()

    def provides_model(self, module: str, api: Api, model: ModelName) -> bool:
        del module, api, model
        return False

    def statuses(self) -> Iterable[ModuleStatus]:
        return ()

    def models(self) -> Iterable[ModuleModel]:
        return ()

    def restart(self, name: str, module_id: str) -> None:
        raise NotFound(f"module not found with id={module_id}, name={name}; no modules are running")

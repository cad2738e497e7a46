"""What modules bring to a machine, as the machine sees it; who runs them is not its concern."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from google.protobuf.descriptor_pool import DescriptorPool

from cogwork.core.errors import NotFound
from cogwork.graph.name import Api, ModelName


class GuestState(enum.IntEnum):
    """The numbers are those of the public API."""

    PENDING = 1
    STARTING = 2
    READY = 3
    UNHEALTHY = 4
    CLOSING = 5


class GuestStatus(NamedTuple):
    name: str
    state: GuestState
    since: float
    error: str
    failures: int
    """In a row."""
    starts: int
    pid: int | None


class GuestModel(NamedTuple):
    module: str
    api: Api
    model: ModelName
    is_local: bool


class Guests(Protocol):
    def are_in(self) -> bool:
        """Whether there is any at all: most machines ask this with every call."""

    def services(self) -> Mapping[Api, str]:
        """By which gRPC service each API that they bring is carried."""

    def descriptions(self) -> Mapping[str, DescriptorPool]:
        """Of the services that only they know."""

    def awaited(self) -> str | None:
        """Why some are not ready that may bring what nobody does yet; None: all are."""

    def statuses(self) -> Iterable[GuestStatus]: ...

    def models(self) -> Iterable[GuestModel]: ...

    def restart(self, name: str, module_id: str) -> None:
        """Raises NotFound."""


class NoGuests:
    def are_in(self) -> bool:
        return False

    def services(self) -> Mapping[Api, str]:
        return {}

    def descriptions(self) -> Mapping[str, DescriptorPool]:
        return {}

    def awaited(self) -> str | None:
        return None

    def statuses(self) -> Iterable[GuestStatus]:
        return ()

    def models(self) -> Iterable[GuestModel]:
        return ()

    def restart(self, name: str, module_id: str) -> None:
        raise NotFound(f"module not found with id={module_id}, name={name}; there is none")

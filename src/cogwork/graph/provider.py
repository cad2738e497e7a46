"""Providers of resources: built-in models, plug-ins, modules and remotes.

Providers may appear, fail and return while the machine runs. A node waits for its provider in the
same way as for a dependency.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from cogwork.core.errors import CogworkError
from cogwork.graph.name import Reference, ResourceName
from cogwork.graph.spec import Spec

Dependencies = Mapping[ResourceName, object]


class ConfigRejected(CogworkError):
    """A provider rejects the configuration of a resource. Its next offer says so, too."""

    status = "FAILED_PRECONDITION"


class Builder(Protocol):
    """Builds, reconfigures and closes the resources of one provider."""

    async def build(self, spec: Spec, dependencies: Dependencies) -> object: ...

    async def reconfigure(
        self, resource: object, spec: Spec, dependencies: Dependencies
    ) -> None: ...

    async def close(self, resource: object) -> None: ...


@dataclass(frozen=True, slots=True)
class Offer:
    """A provider's statement that it can build this resource now."""

    builder: Builder
    provider_session: int = 0
    """Number of the provider's session. The number changes when the provider restarts and thereby
    loses all its resources."""
    in_place: bool = False
    """Whether `reconfigure` can change a running resource of this model."""
    needs: tuple[Reference, ...] = ()
    wants: tuple[Reference, ...] = ()
    """Required and optional dependencies that only the provider knows."""
    invalidates_holders: bool = False
    """Whether reconfiguring a resource invalidates facts on which its dependents rely."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    reason: str
    is_temporary: bool = False
    """Whether the provider is expected to be available soon, so that this is not a fault."""


class Provider(Protocol):
    def offer(self, spec: Spec) -> Offer | Unavailable | None:
        """Return an offer for a resource; None if the resource belongs to another provider.

        A provider that is not ready may return Unavailable only for resources that no other
        provider can build. Otherwise, its failure would affect the resources of other providers.
        """


class Providers:
    """All providers of a machine, in order of precedence."""

    def __init__(self, providers: Mapping[str, Provider] | None = None) -> None:
        self._providers = dict(providers or {})
        self._listeners: list[Callable[[], None]] = []

    def add(self, name: str, provider: Provider) -> None:
        self._providers[name] = provider
        self.notify_changed()

    def remove(self, name: str) -> None:
        del self._providers[name]
        self.notify_changed()

    def notify_changed(self) -> None:
        """Notify the listeners. Providers call this when their offers change."""
        for listener in tuple(self._listeners):
            listener()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Add a listener, and return a function that removes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def offer(self, spec: Spec) -> Offer | Unavailable:
        for name, provider in self._providers.items():
            try:
                answer: object = provider.offer(spec)
            except Exception as error:
                return Unavailable(f"provider {name} failed: {error}")
            if isinstance(answer, Offer | Unavailable):
                return answer
            if answer is not None:
                return Unavailable(f"provider {name} returned {answer!r}, which is not an offer")
        return Unavailable(
            f'unknown model "{spec.model.short}" for {spec.name.api}: '
            "check the spelling, or add the module that provides it"
        )

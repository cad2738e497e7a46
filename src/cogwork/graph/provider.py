"""Who can make resources: built-in tables, plug-ins, and later modules and remotes.

A provider appears, fails and returns while the machine runs. A node waits for its provider as it
waits for a dependency.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from cogwork.graph.name import Reference, ResourceName
from cogwork.graph.spec import Spec

Dependencies = Mapping[ResourceName, object]


class Builder(Protocol):
    """Makes, changes and closes the resources of one provider."""

    async def build(self, spec: Spec, dependencies: Dependencies) -> object: ...

    async def reconfigure(
        self, resource: object, spec: Spec, dependencies: Dependencies
    ) -> None: ...

    async def close(self, resource: object) -> None: ...


@dataclass(frozen=True, slots=True)
class Offer:
    """A provider's word that it can make this very resource now."""

    builder: Builder
    incarnation: int = 0
    """Another number means the provider started anew and lost what it had built."""
    in_place: bool = False
    """Whether `reconfigure` can change a running resource of this model."""
    needs: tuple[Reference, ...] = ()
    wants: tuple[Reference, ...] = ()
    """Dependencies that only the provider knows of, beside those of the spec."""
    renews: bool = False
    """Whether what is changed in place is another one afterwards, to those who hold it."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    reason: str
    soon: bool = False
    """Whether there is nothing wrong: it only takes a moment."""


class Provider(Protocol):
    def offer(self, spec: Spec) -> Offer | Unavailable | None:
        """None: the model is not one of this provider's."""


class Providers:
    """All providers of a machine, in the order in which they are asked."""

    def __init__(self, providers: Mapping[str, Provider] | None = None) -> None:
        self._providers = dict(providers or {})
        self._listeners: list[Callable[[], None]] = []

    def add(self, name: str, provider: Provider) -> None:
        self._providers[name] = provider
        self.changed()

    def remove(self, name: str) -> None:
        del self._providers[name]
        self.changed()

    def changed(self) -> None:
        """A provider calls this when it would answer differently."""
        for listener in tuple(self._listeners):
            listener()

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Returns how to stop listening."""
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
                return Unavailable(f"provider {name} answered {answer!r}, which is no offer")
        return Unavailable(
            f"nobody provides model {spec.model} of {spec.name.api}: "
            "check the spelling, or add the module that brings it"
        )

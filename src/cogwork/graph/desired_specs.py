"""The desired resources: the configured ones, and the discovered ones that are planned with
them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from cogwork.graph.name import Reference, ResourceName
from cogwork.graph.node import Node
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.spec import Spec

_MAX_HINTS = 4
"""Maximum discovered resources of the same name that are planned only because a missing dependency
may refer to them."""


class Division(NamedTuple):
    """The discovered resources, divided by whether they are planned with the configured ones."""

    connected: dict[ResourceName, Spec]
    standalone: list[Spec]


class DesiredSpecs:
    def __init__(self) -> None:
        self.configured: dict[ResourceName, Spec] = {}
        self.discovered: dict[ResourceName, Spec] = {}
        self.offers: dict[ResourceName, Offer | Unavailable] = {}
        """The offers for the configured resources, as of the last division."""
        self._references: set[str] = set()
        """Names that resources referred to at the last division."""
        self._missing: set[str] = set()
        """Names in `_references` that are not configured."""

    def configure(self, specs: Iterable[Spec]) -> None:
        self.configured = {}
        for spec in specs:
            self.configured.setdefault(spec.name, spec)

    def discover(self, specs: Iterable[Spec]) -> list[ResourceName]:
        """Replace the discovered resources. Return the names of changed ones."""
        before, self.discovered = self.discovered, {spec.name: spec for spec in specs}
        return [
            name
            for name in {**before, **self.discovered}
            if before.get(name) != self.discovered.get(name)
        ]

    def divide(
        self,
        find_offer: Callable[[Spec], Offer | Unavailable],
        nodes: Mapping[ResourceName, Node],
    ) -> Division:
        """Decide which discovered resources are planned with the configured ones."""
        self.offers = {name: find_offer(spec) for name, spec in self.configured.items()}
        self._references = {each.short for each in self._find_references()}
        self._missing = self._references - {name.short for name in self.configured}
        holds = _find_holds(nodes)
        hints = Counter[str]()
        division = Division({}, [])
        for name, spec in self.discovered.items():
            if name in self.configured:
                continue
            if name in holds or self.is_connected(spec):
                division.connected[name] = spec
            elif self.is_hint(name) and hints[name.name] < _MAX_HINTS:
                hints[name.name] += 1
                division.connected[name] = spec
            else:
                division.standalone.append(spec)
        return division

    def is_connected(self, spec: Spec) -> bool:
        """Return whether a discovered resource refers to others, or is referred to by others."""
        return bool(spec.needs or spec.wants) or spec.name.short in self._references

    def is_hint(self, name: ResourceName) -> bool:
        """Return whether a missing dependency may refer to this resource without naming its
        remote.

        If so, the fault of the dependent shows the full name.
        """
        return name.name in self._missing

    def _find_references(self) -> Iterator[Reference]:
        for spec in (*self.configured.values(), *self.discovered.values()):
            yield from spec.needs
            yield from spec.wants
        for offer in self.offers.values():
            if isinstance(offer, Offer):
                yield from offer.needs
                yield from offer.wants


def _find_holds(nodes: Mapping[ResourceName, Node]) -> set[ResourceName]:
    """Return the resources that hold others or are held by others, even if no reference between
    them is left."""
    found: set[ResourceName] = set()
    for name, node in nodes.items():
        for holder in (node.held, node.call):
            if holder is not None and holder.holds:
                found.add(name)
                found.update(holder.holds)
    return found

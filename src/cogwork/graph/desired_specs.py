"""The desired resources: the configured ones, and the discovered and default ones that are planned
with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from cogwork.graph.edges import find_candidates, group_by_short_name
from cogwork.graph.name import Reference, ResourceName
from cogwork.graph.node import Node
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.spec import Spec

_MAX_HINTS = 4
"""Maximum discovered resources of the same name that are planned only because a missing dependency
may refer to them."""


DefaultSpecs = Mapping[ResourceName, Callable[[], Spec]]
"""The resources that a machine provides without configuration, and functions that make their specs
when they are needed."""


class Division(NamedTuple):
    """The resources that are not configured, divided by whether they are planned with the
    configured ones."""

    connected: dict[ResourceName, Spec]
    standalone: list[Spec]


class DesiredSpecs:
    def __init__(self, defaults: DefaultSpecs = MappingProxyType({})) -> None:
        self._defaults = defaults
        self._started: dict[ResourceName, Spec] = {}
        """Default resources that were called. They stay until the machine stops."""
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

    def start_default(self, name: ResourceName) -> Spec:
        """Plan a default resource from now on, and return its spec."""
        if name not in self._started:
            self._started[name] = self._defaults[name]()
        return self._started[name]

    def drop_all(self) -> None:
        """Drop all resources that are not configured."""
        self.discovered, self._defaults = {}, {}
        self._started.clear()

    def divide(
        self,
        find_offer: Callable[[Spec], Offer | Unavailable],
        nodes: Mapping[ResourceName, Node],
    ) -> Division:
        """Decide which other resources are planned with the configured ones."""
        self.offers = {name: find_offer(spec) for name, spec in self.configured.items()}
        references = list(self._find_references())
        self._references = {each.short for each in references}
        self._missing = self._references - {name.short for name in self.configured}
        holds = _find_holds(nodes)
        hints = Counter[str]()
        division = Division(self._find_needed_defaults(references), [])
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

    def _find_needed_defaults(self, references: Iterable[Reference]) -> dict[ResourceName, Spec]:
        """Return the default resources that were called, or that others refer to."""
        if not self._references.isdisjoint(name.short for name in self._defaults):
            for reference in references:
                for name in find_candidates(reference, group_by_short_name(self._defaults)):
                    is_meant = reference.api is not None or name.short in self._missing
                    if is_meant and name not in self.configured:
                        self.start_default(name)
        return {name: spec for name, spec in self._started.items() if name not in self.configured}

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

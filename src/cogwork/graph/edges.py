"""From references to edges: who depends on whom, what is missing, what runs in a circle."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from cogwork.graph.name import Reference, ResourceName

Adjacency = Mapping[ResourceName, Sequence[ResourceName]]


class Declared(NamedTuple):
    """The dependencies of one resource as they were written."""

    name: ResourceName
    needs: Sequence[Reference]
    wants: Sequence[Reference]


class Missing(NamedTuple):
    reference: Reference

    @property
    def sentence(self) -> str:
        return f'depends on "{self.reference}", which is not configured'


class Ambiguous(NamedTuple):
    reference: Reference
    candidates: tuple[ResourceName, ...]

    @property
    def sentence(self) -> str:
        choices = " or ".join(f'"{name}"' for name in self.candidates)
        return f'depends on "{self.reference}", which could be several resources: write {choices}'


class Cycle(NamedTuple):
    path: tuple[ResourceName, ...]
    """Each depends on the next, the last on the first."""

    @property
    def sentence(self) -> str:
        if len(self.path) == 1:
            return "depends on itself"
        around = " -> ".join(f'"{name.short}"' for name in (*self.path, self.path[0]))
        return f"circular dependency: {around}"


EdgeFault = Missing | Ambiguous | Cycle


@dataclass(frozen=True, slots=True)
class Edges:
    needs: Mapping[ResourceName, tuple[ResourceName, ...]]
    wants: Mapping[ResourceName, tuple[ResourceName, ...]]
    faults: Mapping[ResourceName, tuple[EdgeFault, ...]]
    order: tuple[ResourceName, ...]
    """Dependencies first, except among those in a circle."""
    circular_wants: tuple[tuple[ResourceName, ResourceName], ...]
    """Optional edges left out because they would close a circle."""


def resolve(declared: Sequence[Declared]) -> Edges:
    by_short = by_short_name(item.name for item in declared)
    needs: dict[ResourceName, tuple[ResourceName, ...]] = {}
    wants: dict[ResourceName, tuple[ResourceName, ...]] = {}
    faults: dict[ResourceName, list[EdgeFault]] = {}
    for item in declared:
        name = item.name
        needs[name] = _required(name, item.needs, by_short, faults) if item.needs else ()
        wants[name] = _optional(item.wants, by_short, needs[name]) if item.wants else ()
    order, rest = dependencies_first(_joined(needs, wants))
    dropped: list[tuple[ResourceName, ResourceName]] = []
    if rest:
        dropped = _circular_wants(needs, wants)
        for name, wanted in dropped:
            wants[name] = tuple(other for other in wants[name] if other != wanted)
        cycles = _cycles(needs)
        for name, cycle in cycles.items():
            faults.setdefault(name, []).append(cycle)
        order, _ = dependencies_first(_opened(_joined(needs, wants), cycles.keys()))
    return Edges(
        needs,
        wants,
        {name: tuple(found) for name, found in faults.items()},
        tuple(order),
        tuple(dropped),
    )


def by_short_name(names: Iterable[ResourceName]) -> dict[str, list[ResourceName]]:
    by_short: dict[str, list[ResourceName]] = {}
    for name in names:
        by_short.setdefault(name.short, []).append(name)
    return by_short


def candidates(
    reference: Reference, by_short: Mapping[str, list[ResourceName]]
) -> list[ResourceName]:
    found = by_short.get(reference.short, [])
    return [name for name in found if reference.api is None or name.api == reference.api]


def _required(
    owner: ResourceName,
    references: Sequence[Reference],
    by_short: Mapping[str, list[ResourceName]],
    faults: dict[ResourceName, list[EdgeFault]],
) -> tuple[ResourceName, ...]:
    resolved: dict[ResourceName, None] = {}
    for reference in references:
        found = candidates(reference, by_short)
        if len(found) == 1:
            resolved[found[0]] = None
        else:
            fault = Ambiguous(reference, tuple(found)) if found else Missing(reference)
            faults.setdefault(owner, []).append(fault)
    return tuple(resolved)


def _optional(
    references: Sequence[Reference],
    by_short: Mapping[str, list[ResourceName]],
    required: tuple[ResourceName, ...],
) -> tuple[ResourceName, ...]:
    resolved: dict[ResourceName, None] = {}
    for reference in references:
        found = candidates(reference, by_short)
        if len(found) == 1 and found[0] not in required:
            resolved[found[0]] = None
    return tuple(resolved)


def dependencies_first(graph: Adjacency) -> tuple[list[ResourceName], list[ResourceName]]:
    """In the order given as far as that goes; and what a circle keeps from being sorted."""
    waiting = {name: len(dependencies) for name, dependencies in graph.items()}
    dependents: dict[ResourceName, list[ResourceName]] = {}
    for name, dependencies in graph.items():
        for dependency in dependencies:
            dependents.setdefault(dependency, []).append(name)
    free = deque(name for name, count in waiting.items() if not count)
    order: list[ResourceName] = []
    while free:
        name = free.popleft()
        order.append(name)
        for dependent in dependents.get(name, ()):
            waiting[dependent] -= 1
            if not waiting[dependent]:
                free.append(dependent)
    return order, [name for name, count in waiting.items() if count]


def _joined(needs: Adjacency, wants: Adjacency) -> Adjacency:
    return {name: (*needs[name], *wants[name]) for name in needs}


def _opened(graph: Adjacency, circular: Set[ResourceName]) -> Adjacency:
    """Without the edges between those in a circle, so that what depends on them can be sorted."""
    return {
        name: [other for other in others if name not in circular or other not in circular]
        for name, others in graph.items()
    }


def _circular_wants(needs: Adjacency, wants: Adjacency) -> list[tuple[ResourceName, ResourceName]]:
    """Each optional edge inside a circle: honoured, it would rebuild the two in turns for ever."""
    knots = _knots(_joined(needs, wants))
    knot_of = _which_knot(knots)
    return [
        (name, wanted)
        for name in knots
        for wanted in wants[name]
        if knot_of.get(wanted) == knot_of[name]
    ]


def _which_knot(knots: Adjacency) -> dict[ResourceName, int]:
    """Two nodes are in the same knot if each can be reached from the other."""
    backward: dict[ResourceName, list[ResourceName]] = {name: [] for name in knots}
    for name, following in knots.items():
        for other in following:
            backward[other].append(name)
    knot_of: dict[ResourceName, int] = {}
    for number, name in enumerate(knots):
        if name not in knot_of:
            both_ways = _reached(name, knots) & _reached(name, backward)
            knot_of.update(dict.fromkeys(both_ways, number))
    return knot_of


def _reached(start: ResourceName, graph: Adjacency) -> set[ResourceName]:
    reached = {start}
    front = [start]
    while front:
        for following in graph[front.pop()]:
            if following not in reached:
                reached.add(following)
                front.append(following)
    return reached


def _cycles(needs: Adjacency) -> dict[ResourceName, Cycle]:
    """For each node that is part of a circle, one as seen from it."""
    knots = _knots(needs)
    cycles: dict[ResourceName, Cycle] = {}
    for name in knots:
        if name in cycles:
            continue
        path = _path(name, name, knots)
        for turn, member in enumerate(path):
            cycles.setdefault(member, Cycle((*path[turn:], *path[:turn])))
    return cycles


def _knots(graph: Adjacency) -> Adjacency:
    """The graph without what merely leads into a circle or hangs off one."""
    _, rest = dependencies_first(graph)
    inside = set(rest)
    reverse: dict[ResourceName, list[ResourceName]] = {name: [] for name in rest}
    for name in rest:
        for dependency in graph[name]:
            if dependency in inside:
                reverse[dependency].append(name)
    _, core = dependencies_first(reverse)
    inside = set(core)
    return {name: [other for other in graph[name] if other in inside] for name in core}


def _path(start: ResourceName, goal: ResourceName, graph: Adjacency) -> tuple[ResourceName, ...]:
    """A shortest way from start along at least one edge to goal, without goal; () if none."""
    came_from: dict[ResourceName, ResourceName] = {}
    front = deque([start])
    while front:
        name = front.popleft()
        for following in graph[name]:
            if following == goal:
                return _walked_back(name, start, came_from)
            if following not in came_from and following != start:
                came_from[following] = name
                front.append(following)
    return ()


def _walked_back(
    name: ResourceName, start: ResourceName, came_from: Mapping[ResourceName, ResourceName]
) -> tuple[ResourceName, ...]:
    path = [name]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return tuple(reversed(path))

"""Resolves references to edges. Finds missing dependencies, cycles and the topological order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple

from cogwork.graph.name import REMOTE_SEPARATOR, Reference, ResourceName

_MAX_CHOICES: Final = 3

Adjacency = Mapping[ResourceName, Sequence[ResourceName]]


class DeclaredDependencies(NamedTuple):
    """The dependencies of one resource as declared, before resolution."""

    name: ResourceName
    needs: Sequence[Reference]
    wants: Sequence[Reference]
    is_default: bool = False
    """Whether a configured resource with the same short name takes precedence."""


class MissingDependency(NamedTuple):
    reference: Reference
    on_remotes: tuple[ResourceName, ...] = ()
    """Resources of remotes that the reference may mean, if the name of the remote is added."""

    @property
    def message(self) -> str:
        if self.on_remotes:
            choices = " or ".join(f'"{name.short}"' for name in self.on_remotes[:_MAX_CHOICES])
            return f'depends on "{self.reference}", which is on a remote: write {choices}'
        if REMOTE_SEPARATOR in self.reference.short:
            return f'depends on "{self.reference}", which its remote does not have at present'
        return f'depends on "{self.reference}", which is not configured'


class AmbiguousDependency(NamedTuple):
    reference: Reference
    candidates: tuple[ResourceName, ...]

    @property
    def message(self) -> str:
        choices = " or ".join(f'"{name}"' for name in self.candidates[:_MAX_CHOICES])
        return f'depends on "{self.reference}", which matches several resources: write {choices}'


class Cycle(NamedTuple):
    path: tuple[ResourceName, ...]
    """The nodes of the cycle: each depends on the next, and the last depends on the first."""

    @property
    def message(self) -> str:
        if len(self.path) == 1:
            return "depends on itself"
        cycle = " -> ".join(f'"{name.short}"' for name in (*self.path, self.path[0]))
        return f"circular dependency: {cycle}"


EdgeFault = MissingDependency | AmbiguousDependency | Cycle


@dataclass(frozen=True, slots=True)
class Edges:
    needs: Mapping[ResourceName, tuple[ResourceName, ...]]
    wants: Mapping[ResourceName, tuple[ResourceName, ...]]
    faults: Mapping[ResourceName, tuple[EdgeFault, ...]]
    order: tuple[ResourceName, ...]
    """Topological order, dependencies first. Within a cycle, the order is arbitrary."""
    dropped_dependencies: tuple[tuple[ResourceName, ResourceName], ...]
    """Optional edges that are omitted because they are part of a cycle."""


def resolve(declared: Sequence[DeclaredDependencies]) -> Edges:
    candidates = _Candidates(declared)
    needs: dict[ResourceName, tuple[ResourceName, ...]] = {}
    wants: dict[ResourceName, tuple[ResourceName, ...]] = {}
    faults: dict[ResourceName, list[EdgeFault]] = {}
    for item in declared:
        name = item.name
        needs[name] = _resolve_required(name, item.needs, candidates, faults) if item.needs else ()
        wants[name] = _resolve_optional(item.wants, candidates, needs[name]) if item.wants else ()
    order, rest = topological_order(_merge_edges(needs, wants))
    dropped: list[tuple[ResourceName, ResourceName]] = []
    if rest:
        dropped = _find_dropped_dependencies(needs, wants)
        for name, wanted in dropped:
            wants[name] = tuple(other for other in wants[name] if other != wanted)
        cycles = _find_cycles(needs)
        for name, cycle in cycles.items():
            faults.setdefault(name, []).append(cycle)
        order, _ = topological_order(_drop_cycle_edges(_merge_edges(needs, wants), cycles.keys()))
    return Edges(
        needs,
        wants,
        {name: tuple(found) for name, found in faults.items()},
        tuple(order),
        tuple(dropped),
    )


def group_by_short_name(names: Iterable[ResourceName]) -> dict[str, list[ResourceName]]:
    by_short: dict[str, list[ResourceName]] = {}
    for name in names:
        by_short.setdefault(name.short, []).append(name)
    return by_short


class _Candidates:
    """Finds the resources that a reference may mean."""

    def __init__(self, declared: Sequence[DeclaredDependencies]) -> None:
        self._by_short = group_by_short_name(item.name for item in declared)
        self._defaults = frozenset(item.name for item in declared if item.is_default)
        self._on_remotes: dict[str, list[ResourceName]] = {}
        for item in declared:
            if item.name.remote:
                self._on_remotes.setdefault(item.name.name, []).append(item.name)

    def find(self, reference: Reference) -> list[ResourceName]:
        return find_candidates(reference, self._by_short, self._defaults)

    def find_on_remotes(self, reference: Reference) -> tuple[ResourceName, ...]:
        """Return the resources that the reference would mean with the name of a remote."""
        return tuple(find_candidates(reference, self._on_remotes))


def find_candidates(
    reference: Reference,
    by_short: Mapping[str, list[ResourceName]],
    defaults: Set[ResourceName] = frozenset(),
) -> list[ResourceName]:
    """Return the resources that a reference may mean. A default one counts only without others."""
    found = [
        name
        for name in by_short.get(reference.short, [])
        if reference.api is None or name.api == reference.api
    ]
    return [name for name in found if name not in defaults] or found


def _resolve_required(
    owner: ResourceName,
    references: Sequence[Reference],
    candidates: _Candidates,
    faults: dict[ResourceName, list[EdgeFault]],
) -> tuple[ResourceName, ...]:
    resolved: dict[ResourceName, None] = {}
    for reference in references:
        found = candidates.find(reference)
        if len(found) == 1:
            resolved[found[0]] = None
        else:
            fault = (
                AmbiguousDependency(reference, tuple(found))
                if found
                else MissingDependency(reference, candidates.find_on_remotes(reference))
            )
            faults.setdefault(owner, []).append(fault)
    return tuple(resolved)


def _resolve_optional(
    references: Sequence[Reference],
    candidates: _Candidates,
    required: tuple[ResourceName, ...],
) -> tuple[ResourceName, ...]:
    resolved: dict[ResourceName, None] = {}
    for reference in references:
        found = candidates.find(reference)
        if len(found) == 1 and found[0] not in required:
            resolved[found[0]] = None
    return tuple(resolved)


def topological_order(graph: Adjacency) -> tuple[list[ResourceName], list[ResourceName]]:
    """Return the topological order, and the nodes that cycles block.

    The given order is kept as far as dependencies allow.
    """
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


def _merge_edges(needs: Adjacency, wants: Adjacency) -> Adjacency:
    return {name: (*needs[name], *wants[name]) for name in needs}


def _drop_cycle_edges(graph: Adjacency, circular: Set[ResourceName]) -> Adjacency:
    """Return the graph without the edges between nodes in cycles, so that their dependents can be
    sorted."""
    return {
        name: [other for other in others if name not in circular or other not in circular]
        for name, others in graph.items()
    }


def _find_dropped_dependencies(
    needs: Adjacency, wants: Adjacency
) -> list[tuple[ResourceName, ResourceName]]:
    """Return the optional edges in cycles. With such an edge, the nodes of its cycle would rebuild
    each other forever."""
    core = _cyclic_core(_merge_edges(needs, wants))
    component_of = _component_ids(core)
    return [
        (name, wanted)
        for name in core
        for wanted in wants[name]
        if component_of.get(wanted) == component_of[name]
    ]


def _component_ids(graph: Adjacency) -> dict[ResourceName, int]:
    """Number the strongly connected components, and return the number of each node."""
    reverse: dict[ResourceName, list[ResourceName]] = {name: [] for name in graph}
    for name, following in graph.items():
        for other in following:
            reverse[other].append(name)
    component_of: dict[ResourceName, int] = {}
    for number, name in enumerate(graph):
        if name not in component_of:
            members = _find_reachable(name, graph) & _find_reachable(name, reverse)
            component_of.update(dict.fromkeys(members, number))
    return component_of


def _find_reachable(start: ResourceName, graph: Adjacency) -> set[ResourceName]:
    reached = {start}
    frontier = [start]
    while frontier:
        for following in graph[frontier.pop()]:
            if following not in reached:
                reached.add(following)
                frontier.append(following)
    return reached


def _find_cycles(needs: Adjacency) -> dict[ResourceName, Cycle]:
    """Return a cycle for each node that is part of one, starting at that node."""
    core = _cyclic_core(needs)
    cycles: dict[ResourceName, Cycle] = {}
    for name in core:
        if name in cycles:
            continue
        path = _shortest_path(name, name, core)
        for index, member in enumerate(path):
            cycles.setdefault(member, Cycle((*path[index:], *path[:index])))
    return cycles


def _cyclic_core(graph: Adjacency) -> Adjacency:
    """Return the nodes in cycles and on paths between cycles, with the edges among them."""
    _, rest = topological_order(graph)
    inside = set(rest)
    reverse: dict[ResourceName, list[ResourceName]] = {name: [] for name in rest}
    for name in rest:
        for dependency in graph[name]:
            if dependency in inside:
                reverse[dependency].append(name)
    _, core = topological_order(reverse)
    inside = set(core)
    return {name: [other for other in graph[name] if other in inside] for name in core}


def _shortest_path(
    start: ResourceName, goal: ResourceName, graph: Adjacency
) -> tuple[ResourceName, ...]:
    """Return a shortest path of at least one edge, without `goal` itself; () if there is none."""
    came_from: dict[ResourceName, ResourceName] = {}
    frontier = deque([start])
    while frontier:
        name = frontier.popleft()
        for following in graph[name]:
            if following == goal:
                return _reconstruct_path(name, start, came_from)
            if following not in came_from and following != start:
                came_from[following] = name
                frontier.append(following)
    return ()


def _reconstruct_path(
    name: ResourceName, start: ResourceName, came_from: Mapping[ResourceName, ResourceName]
) -> tuple[ResourceName, ...]:
    path = [name]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return tuple(reversed(path))

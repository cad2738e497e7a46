from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.graph.world import full_name

from cogwork.graph.edges import (
    AmbiguousDependency,
    Cycle,
    DeclaredDependencies,
    Edges,
    MissingDependency,
    resolve,
)
from cogwork.graph.name import Api, Reference, ResourceName

Graph = Mapping[str, Sequence[str]]


def resolve_edges(needs: Graph, wants: Graph | None = None) -> Edges:
    wanted = wants or {}
    return resolve(
        [
            DeclaredDependencies(
                full_name(name),
                [Reference(other) for other in others],
                [Reference(other) for other in wanted.get(name, ())],
            )
            for name, others in needs.items()
        ]
    )


def short_names(names: Sequence[ResourceName]) -> list[str]:
    return [name.short for name in names]


def fault_messages(edges: Edges, name: str) -> list[str]:
    return [fault.message for fault in edges.faults.get(full_name(name), ())]


def test_order_lists_dependencies_first() -> None:
    edges = resolve_edges({"c": "ba", "b": "a", "a": ""})
    assert short_names(edges.order) == ["a", "b", "c"]
    assert edges.faults == {}
    assert edges.needs[full_name("c")] == (full_name("b"), full_name("a"))


def test_duplicate_dependency_counts_once() -> None:
    assert resolve_edges({"a": "", "b": ["a", "a"]}).needs[full_name("b")] == (full_name("a"),)


def test_dependency_in_needs_and_wants_is_a_need() -> None:
    edges = resolve_edges({"a": "", "b": "a"}, {"b": "a"})
    assert edges.needs[full_name("b")] == (full_name("a"),)
    assert edges.wants[full_name("b")] == ()


def test_resource_of_a_remote_needs_the_name_of_the_remote() -> None:
    edges = resolve_edges({"line:a": "", "b": "a"})
    assert fault_messages(edges, "b") == ['depends on "a", which is on a remote: write "line:a"']


def test_resource_of_this_machine_takes_precedence_over_those_of_remotes() -> None:
    edges = resolve_edges({"line:a": "", "a": "", "b": ["a"], "c": ["line:a"]})
    assert short_names(edges.needs[full_name("b")]) == ["a"]
    assert short_names(edges.needs[full_name("c")]) == ["line:a"]


def test_missing_need_is_a_fault_and_missing_want_is_not() -> None:
    edges = resolve_edges({"a": ["belt", "arm"], "b": ""}, {"b": ["belt"]})
    assert fault_messages(edges, "a") == [
        'depends on "belt", which is not configured',
        'depends on "arm", which is not configured',
    ]
    assert full_name("b") not in edges.faults


def test_short_name_of_two_apis_is_ambiguous() -> None:
    arm, camera = Api("rdk", "component", "arm"), Api("rdk", "component", "camera")
    left, right = ResourceName(arm, "left"), ResourceName(camera, "left")
    user, exact = full_name("user"), full_name("exact")
    edges = resolve(
        [
            DeclaredDependencies(left, [], []),
            DeclaredDependencies(right, [], []),
            DeclaredDependencies(user, [Reference("left")], []),
            DeclaredDependencies(exact, [Reference("left", camera)], []),
        ]
    )
    assert edges.faults == {user: (AmbiguousDependency(Reference("left"), (left, right)),)}
    assert fault_messages(edges, "user") == [
        'depends on "left", which matches several resources: '
        'write "rdk:component:arm/left" or "rdk:component:camera/left"'
    ]
    assert edges.needs[exact] == (right,)


def test_each_member_of_a_cycle_has_a_fault_that_starts_with_it() -> None:
    edges = resolve_edges({"a": "b", "b": "c", "c": "a", "d": "a"})
    assert fault_messages(edges, "a") == ['circular dependency: "a" -> "b" -> "c" -> "a"']
    assert fault_messages(edges, "b") == ['circular dependency: "b" -> "c" -> "a" -> "b"']
    assert fault_messages(edges, "d") == []


def test_self_dependency_is_a_fault() -> None:
    assert fault_messages(resolve_edges({"a": "a"}), "a") == ["depends on itself"]


def test_order_lists_dependents_of_a_cycle_after_it() -> None:
    edges = resolve_edges({"top": ["middle"], "middle": ["knot"], "knot": ["knot"]})
    assert short_names(edges.order) == ["knot", "middle", "top"]


def test_want_that_would_close_a_cycle_is_dropped() -> None:
    edges = resolve_edges({"a": "", "b": "a"}, {"a": "b"})
    assert edges.dropped_dependencies == ((full_name("a"), full_name("b")),)
    assert edges.wants[full_name("a")] == ()
    assert edges.faults == {}


NODES = "abcdefgh"
GRAPHS = st.lists(
    st.tuples(st.sampled_from(NODES), st.sampled_from(NODES + "x")), max_size=16, unique=True
)


def adjacency(pairs: list[tuple[str, str]]) -> dict[str, list[str]]:
    return {name: [to for start, to in pairs if start == name] for name in NODES}


def reachable(start: str, graph: Graph) -> set[str]:
    """Return the nodes that are reachable over at least one edge."""
    found: set[str] = set()
    front = list(graph[start])
    while front:
        name = front.pop()
        if name not in found and name in graph:
            found.add(name)
            front.extend(graph[name])
    return found


@given(GRAPHS, GRAPHS, st.permutations(NODES))
def test_random_graphs_match_a_naive_graph_walk(
    need_pairs: list[tuple[str, str]], want_pairs: list[tuple[str, str]], order: list[str]
) -> None:
    needs, wants = adjacency(need_pairs), adjacency(want_pairs)
    edges = resolve_edges({name: needs[name] for name in order}, wants)
    both = {name: [*needs[name], *wants[name]] for name in NODES}

    for name in NODES:
        faults = edges.faults.get(full_name(name), ())
        cycles = [fault for fault in faults if isinstance(fault, Cycle)]
        assert bool(cycles) == (name in reachable(name, needs)), name
        for cycle in cycles:
            path = short_names(cycle.path)
            assert path[0] == name
            assert len(set(path)) == len(path)
            assert all(b in needs[a] for a, b in zip(path, [*path[1:], name], strict=True))
        missing = [fault for fault in faults if isinstance(fault, MissingDependency)]
        assert len(missing) == needs[name].count("x")

    dropped = {
        (name, wanted)
        for name in NODES
        for wanted in wants[name]
        if wanted in NODES
        and wanted not in needs[name]
        and (wanted == name or name in reachable(wanted, both))
    }
    assert {(a.short, b.short) for a, b in edges.dropped_dependencies} == dropped
    for name in NODES:
        kept = [
            wanted
            for wanted in wants[name]
            if wanted in NODES and wanted not in needs[name] and (name, wanted) not in dropped
        ]
        assert short_names(edges.wants[full_name(name)]) == kept

    assert sorted(short_names(edges.order)) == sorted(NODES)
    place = {name: number for number, name in enumerate(edges.order)}
    circular = {full_name(name) for name in NODES if name in reachable(name, needs)}
    for owner in map(full_name, NODES):
        for dependency in (*edges.needs[owner], *edges.wants[owner]):
            assert place[dependency] < place[owner] or {owner, dependency} <= circular


@pytest.mark.parametrize("count", [2_000])
def test_long_cycle_does_not_overflow_the_stack(count: int) -> None:
    needs = {str(n): [str(n + 1)] if n + 1 < count else ["0"] for n in range(count)}
    edges = resolve_edges(needs)
    assert len(edges.faults) == count

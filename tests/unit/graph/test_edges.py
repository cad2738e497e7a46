from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.graph.world import full

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


def edges_of(needs: Graph, wants: Graph | None = None) -> Edges:
    wanted = wants or {}
    return resolve(
        [
            DeclaredDependencies(
                full(name),
                [Reference(other) for other in others],
                [Reference(other) for other in wanted.get(name, ())],
            )
            for name, others in needs.items()
        ]
    )


def shorts(names: Sequence[ResourceName]) -> list[str]:
    return [name.short for name in names]


def sentences(edges: Edges, name: str) -> list[str]:
    return [fault.message for fault in edges.faults.get(full(name), ())]


def test_dependencies_come_first() -> None:
    edges = edges_of({"c": "ba", "b": "a", "a": ""})
    assert shorts(edges.order) == ["a", "b", "c"]
    assert edges.faults == {}
    assert edges.needs[full("c")] == (full("b"), full("a"))


def test_a_dependency_named_twice_is_one() -> None:
    assert edges_of({"a": "", "b": ["a", "a"]}).needs[full("b")] == (full("a"),)


def test_a_want_that_is_also_a_need_is_a_need() -> None:
    edges = edges_of({"a": "", "b": "a"}, {"b": "a"})
    assert edges.needs[full("b")] == (full("a"),)
    assert edges.wants[full("b")] == ()


def test_a_missing_need_is_a_fault_and_a_missing_want_is_not() -> None:
    edges = edges_of({"a": ["belt", "arm"], "b": ""}, {"b": ["belt"]})
    assert sentences(edges, "a") == [
        'depends on "belt", which is not configured',
        'depends on "arm", which is not configured',
    ]
    assert full("b") not in edges.faults


def test_a_short_name_of_two_apis_is_ambiguous() -> None:
    arm, camera = Api("rdk", "component", "arm"), Api("rdk", "component", "camera")
    left, right = ResourceName(arm, "left"), ResourceName(camera, "left")
    user, exact = full("user"), full("exact")
    edges = resolve(
        [
            DeclaredDependencies(left, [], []),
            DeclaredDependencies(right, [], []),
            DeclaredDependencies(user, [Reference("left")], []),
            DeclaredDependencies(exact, [Reference("left", camera)], []),
        ]
    )
    assert edges.faults == {user: (AmbiguousDependency(Reference("left"), (left, right)),)}
    assert sentences(edges, "user") == [
        'depends on "left", which matches several resources: '
        'write "rdk:component:arm/left" or "rdk:component:camera/left"'
    ]
    assert edges.needs[exact] == (right,)


def test_a_circle_is_told_from_each_of_its_members() -> None:
    edges = edges_of({"a": "b", "b": "c", "c": "a", "d": "a"})
    assert sentences(edges, "a") == ['circular dependency: "a" -> "b" -> "c" -> "a"']
    assert sentences(edges, "b") == ['circular dependency: "b" -> "c" -> "a" -> "b"']
    assert sentences(edges, "d") == []


def test_one_that_depends_on_itself() -> None:
    assert sentences(edges_of({"a": "a"}), "a") == ["depends on itself"]


def test_what_depends_on_a_circle_comes_after_it() -> None:
    edges = edges_of({"top": ["middle"], "middle": ["knot"], "knot": ["knot"]})
    assert shorts(edges.order) == ["knot", "middle", "top"]


def test_a_want_that_would_close_a_circle_is_dropped() -> None:
    edges = edges_of({"a": "", "b": "a"}, {"a": "b"})
    assert edges.circular_wants == ((full("a"), full("b")),)
    assert edges.wants[full("a")] == ()
    assert edges.faults == {}


NODES = "abcdefgh"
GRAPHS = st.lists(
    st.tuples(st.sampled_from(NODES), st.sampled_from(NODES + "x")), max_size=16, unique=True
)


def adjacency(pairs: list[tuple[str, str]]) -> dict[str, list[str]]:
    return {name: [to for start, to in pairs if start == name] for name in NODES}


def reachable(start: str, graph: Graph) -> set[str]:
    """By walking, at least one edge."""
    found: set[str] = set()
    front = list(graph[start])
    while front:
        name = front.pop()
        if name not in found and name in graph:
            found.add(name)
            front.extend(graph[name])
    return found


@given(GRAPHS, GRAPHS, st.permutations(NODES))
def test_against_walking_the_graph(
    need_pairs: list[tuple[str, str]], want_pairs: list[tuple[str, str]], order: list[str]
) -> None:
    needs, wants = adjacency(need_pairs), adjacency(want_pairs)
    edges = edges_of({name: needs[name] for name in order}, wants)
    both = {name: [*needs[name], *wants[name]] for name in NODES}

    for name in NODES:
        faults = edges.faults.get(full(name), ())
        cycles = [fault for fault in faults if isinstance(fault, Cycle)]
        assert bool(cycles) == (name in reachable(name, needs)), name
        for cycle in cycles:
            path = shorts(cycle.path)
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
    assert {(a.short, b.short) for a, b in edges.circular_wants} == dropped
    for name in NODES:
        kept = [
            wanted
            for wanted in wants[name]
            if wanted in NODES and wanted not in needs[name] and (name, wanted) not in dropped
        ]
        assert shorts(edges.wants[full(name)]) == kept

    assert sorted(shorts(edges.order)) == sorted(NODES)
    place = {name: number for number, name in enumerate(edges.order)}
    circular = {full(name) for name in NODES if name in reachable(name, needs)}
    for owner in map(full, NODES):
        for dependency in (*edges.needs[owner], *edges.wants[owner]):
            assert place[dependency] < place[owner] or {owner, dependency} <= circular


@pytest.mark.parametrize("count", [2_000])
def test_a_long_chain_needs_no_deep_stack(count: int) -> None:
    needs = {str(n): [str(n + 1)] if n + 1 < count else ["0"] for n in range(count)}
    edges = edges_of(needs)
    assert len(edges.faults) == count

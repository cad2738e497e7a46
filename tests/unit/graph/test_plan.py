"""The planner, tested as a pure function from states to plans."""

import asyncio
import copy
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from tests.unit.graph.world import UnusedBuilder, full_name, mutable, spec

from cogwork.graph.name import ResourceName
from cogwork.graph.node import (
    Activity,
    BuildFailure,
    BuildInputs,
    LifecycleCall,
    LiveResource,
    Node,
    NodeState,
    Reason,
)
from cogwork.graph.plan import MAX_ABANDONED, Action, Plan, Step, call_serves_plan, plan
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.spec import Spec

NOW = 100.0


BUILDER = UnusedBuilder()


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@dataclass
class Scene:
    """The current nodes and the desired specs."""

    desired: dict[ResourceName, Spec] = field(default_factory=dict)
    nodes: dict[ResourceName, Node] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)
    """Families that are unavailable, with the reason."""
    provider_session: int = 0
    generation: int = 0

    def want(self, *specs: Spec) -> None:
        self.desired = {item.name: item for item in specs}

    def add_live(self, item: Spec, *holds: str, wanted: bool = True) -> Node:
        """Add a ready node with the next generation number."""
        self.generation += 1
        node = Node(item, NodeState.READY)
        generations = {name: self._held(name).generation for name in map(full_name, holds)}
        node.held = LiveResource(object(), item, self._offer(item), self.generation, generations)
        self.nodes[item.name] = node
        if wanted:
            self.desired[item.name] = item
        return node

    def _held(self, name: ResourceName) -> LiveResource:
        held = self.nodes[name].held
        assert held is not None
        return held

    def _offer(self, item: Spec) -> Offer:
        return Offer(BUILDER, self.provider_session, item.model.name == "mutable")

    def offer(self, item: Spec) -> Offer | Unavailable:
        reason = self.unavailable.get(item.model.family)
        return Unavailable(reason) if reason else self._offer(item)

    def plan(self) -> Plan:
        return plan(self.desired, self.nodes, self.offer, NOW)

    def inputs(self, item: Spec, **needs: int) -> BuildInputs:
        generations = {full_name(name): number for name, number in needs.items()}
        return BuildInputs(item, generations, BUILDER, self.provider_session)


def steps(made: Plan) -> dict[str, tuple[Action, str]]:
    return {name.short: (step.action, step.why) for name, step in made.steps.items()}


def test_plan_is_empty_when_all_nodes_are_up_to_date() -> None:
    scene = Scene()
    scene.add_live(spec("a"))
    scene.add_live(spec("b", "a"), "a")
    made = scene.plan()
    assert made.steps == {}


def test_missing_nodes_are_built_in_dependency_order() -> None:
    scene = Scene()
    scene.want(spec("b", "a"), spec("a"))
    assert list(steps(scene.plan()).items()) == [
        ("a", (Action.BUILD, "it is not running yet")),
        ("b", (Action.BUILD, "it is not running yet")),
    ]


def test_failed_node_is_built_again_when_its_retry_is_due() -> None:
    scene = Scene()
    item = spec("a")
    scene.want(item)
    scene.nodes[item.name] = Node(
        item, failure=BuildFailure(scene.inputs(item), 3, NOW, "no device")
    )
    assert steps(scene.plan()) == {"a": (Action.BUILD, "attempt 4")}


def test_failed_node_and_its_dependents_wait_until_the_retry_is_due() -> None:
    scene = Scene()
    item = spec("a")
    scene.want(item, spec("b", "a"))
    scene.nodes[item.name] = Node(
        item, failure=BuildFailure(scene.inputs(item), 1, NOW + 1, "no device")
    )
    b = 'depends on "a", which is not ready: no device'
    made = scene.plan()
    assert steps(made) == {"a": (Action.WAIT, "no device"), "b": (Action.WAIT, b)}
    assert made.steps[full_name("b")].reason == Reason(b, (full_name("a"), "no device"))


def test_failed_node_is_built_at_once_when_its_inputs_changed() -> None:
    scene = Scene()
    scene.add_live(spec("a"))
    item = spec("b", "a")
    scene.desired[item.name] = item
    failure = BuildFailure(scene.inputs(item, a=77), 1, NOW + 1, "no device")
    scene.nodes[item.name] = Node(item, failure=failure)
    assert steps(scene.plan()) == {"b": (Action.BUILD, "attempt 2")}
    scene.nodes[item.name].failure = BuildFailure(scene.inputs(item, a=1), 1, NOW + 1, "no device")
    assert steps(scene.plan()) == {"b": (Action.WAIT, "no device")}
    scene.provider_session = 1
    assert steps(scene.plan())["b"] == (Action.BUILD, "attempt 2")


def test_unwanted_node_is_removed_and_its_dependents_halted() -> None:
    scene = Scene()
    scene.add_live(spec("a"), wanted=False)
    scene.add_live(spec("b", "a"), "a")
    made = scene.plan()
    sentence = 'depends on "a", which is not configured'
    assert steps(made) == {
        "b": (Action.HALT, sentence),
        "a": (Action.REMOVE, "it is no longer configured"),
    }
    assert made.steps[full_name("b")].reason == Reason(sentence)


def test_node_that_wants_a_removed_node_is_rebuilt() -> None:
    scene = Scene()
    scene.add_live(spec("a"), wanted=False)
    scene.add_live(mutable("b", wants="a"), "a")
    assert steps(scene.plan())["b"] == (Action.REBUILD, 'it holds "a", which is closed')


FAULTS = {
    "a fault": (spec("a", fault="bad pin"), "bad pin"),
    "a missing dependency": (spec("a", "x"), 'depends on "x", which is not configured'),
    "a circle": (spec("a", "a"), "depends on itself"),
    "two faults": (
        spec("a", "x a"),
        'depends on "x", which is not configured; depends on itself',
    ),
    "no provider": (spec("a", family="gone"), "it left"),
}


@pytest.mark.parametrize("case", FAULTS)
@pytest.mark.parametrize("live", [False, True])
def test_node_that_cannot_run_halts_or_waits(case: str, live: bool) -> None:
    item, sentence = FAULTS[case]
    scene = Scene(unavailable={"gone": "it left"})
    if live:
        scene.add_live(spec("a"))
    scene.want(item)
    made = scene.plan()
    action = Action.HALT if live else Action.WAIT
    assert made.steps == {full_name("a"): Step(full_name("a"), action, sentence, Reason(sentence))}


@pytest.mark.parametrize(
    ("before", "after", "action", "why"),
    [
        (spec("a"), spec("a", settings=1), Action.REBUILD, "its attributes changed"),
        (mutable("a"), mutable("a", settings=1), Action.RECONFIGURE, "its attributes changed"),
        (
            spec("a"),
            mutable("a", settings=1),
            Action.REBUILD,
            "its model changed from test:acme:plain to test:acme:mutable",
        ),
        (spec("a"), spec("a", "z"), Action.REBUILD, 'it now depends on "z"'),
        (mutable("a"), mutable("a", "z"), Action.RECONFIGURE, 'it now depends on "z"'),
        (mutable("a"), mutable("a", "y", "z"), Action.RECONFIGURE, 'it now depends on "y"'),
        (mutable("a"), mutable("a", wants="y z"), Action.RECONFIGURE, 'it now depends on "y", "z"'),
    ],
)
def test_changed_spec_is_rebuilt_or_reconfigured(
    before: Spec, after: Spec, action: Action, why: str
) -> None:
    scene = Scene()
    scene.add_live(spec("y"))
    scene.add_live(spec("z"))
    scene.add_live(before)
    scene.desired[after.name] = after
    assert steps(scene.plan()) == {"a": (action, why)}


def test_want_that_is_to_be_closed_changes_nothing() -> None:
    scene = Scene()
    scene.add_live(spec("d"))
    scene.add_live(spec("w", "d"), "d")
    scene.add_live(spec("a", wants="w"))
    scene.desired[full_name("d")] = spec("d", settings=1)
    assert steps(scene.plan()).keys() == {"d", "w"}


def test_unavailable_want_changes_nothing() -> None:
    scene = Scene(unavailable={"gone": "it left"})
    scene.add_live(spec("a"))
    scene.want(spec("a", wants="w x"), spec("w", family="gone"))
    assert steps(scene.plan()) == {"w": (Action.WAIT, "it left")}


@pytest.mark.parametrize(
    ("kind", "action"), [("plain", Action.REBUILD), ("mutable", Action.RECONFIGURE)]
)
def test_removed_dependency_rebuilds_or_reconfigures(kind: str, action: Action) -> None:
    scene = Scene()
    scene.add_live(spec("z"))
    scene.add_live(spec("a", "z", kind=kind), "z")
    scene.desired[full_name("a")] = spec("a", kind=kind)
    assert steps(scene.plan()) == {"a": (action, 'it no longer depends on "z"')}


def test_broken_node_and_its_holders_are_rebuilt() -> None:
    scene = Scene()
    broken = scene.add_live(spec("a"))
    scene.add_live(mutable("b", "a"), "a")
    scene.add_live(spec("c", "b"), "b")
    scene.add_live(spec("d"))
    assert broken.held
    broken.held.broken_reason = "the cable was pulled"
    made = scene.plan()
    assert steps(made) == {
        "a": (Action.REBUILD, "the cable was pulled"),
        "b": (Action.REBUILD, 'it holds "a", which is closed'),
        "c": (Action.REBUILD, 'it holds "b", which is closed'),
    }


def test_nodes_of_a_restarted_provider_are_rebuilt() -> None:
    scene = Scene()
    scene.add_live(spec("a"))
    scene.provider_session = 1
    assert steps(scene.plan()) == {"a": (Action.REBUILD, "its provider restarted")}


def test_node_that_holds_a_replaced_object_is_rebuilt() -> None:
    scene = Scene()
    scene.add_live(spec("a"))
    scene.add_live(spec("b", "a"), "a")
    scene.add_live(spec("a"))
    assert steps(scene.plan()) == {"b": (Action.REBUILD, '"a", which it holds, no longer exists')}


def test_dependent_of_a_reconfigured_node_is_unchanged() -> None:
    scene = Scene()
    scene.add_live(mutable("a"))
    scene.add_live(spec("b", "a"), "a")
    scene.desired[full_name("a")] = mutable("a", settings=1)
    assert steps(scene.plan()) == {"a": (Action.RECONFIGURE, "its attributes changed")}


def test_dependents_of_a_cycle_wait_in_any_order() -> None:
    scene = Scene()
    scene.want(spec("top", "middle"), spec("middle", "knot"), spec("knot", "knot"))
    assert {name: action for name, (action, _) in steps(scene.plan()).items()} == {
        "knot": Action.WAIT,
        "middle": Action.WAIT,
        "top": Action.WAIT,
    }


def test_node_waits_when_too_many_constructors_hang(loop: asyncio.AbstractEventLoop) -> None:
    scene = Scene()
    item = spec("a")
    scene.want(item)
    hanging = [loop.create_task(_do_nothing()) for _ in range(MAX_ABANDONED)]
    scene.nodes[item.name] = Node(item, abandoned=dict.fromkeys(hanging, 0.0))
    assert steps(scene.plan())["a"][0] is Action.WAIT
    scene.nodes[item.name].abandoned.pop(hanging[0])
    assert steps(scene.plan())["a"][0] is Action.BUILD
    loop.run_until_complete(asyncio.gather(*hanging))


async def _do_nothing() -> None:
    pass


@pytest.mark.parametrize(
    ("after", "wanted"),
    [
        (spec("b", "a"), True),
        (spec("b", "a", settings=1), False),
        (spec("b", fault="wrong"), False),
        (spec("b", "a z"), False),
    ],
)
def test_running_constructor_serves_the_plan_only_with_equal_inputs(
    loop: asyncio.AbstractEventLoop, after: Spec, wanted: bool
) -> None:
    scene = Scene()
    scene.add_live(spec("a"))
    scene.add_live(spec("z"))
    before = spec("b", "a")
    holds = {full_name("a"): 1}
    call = LifecycleCall(Activity.BUILDING, loop.create_future(), scene.inputs(before, a=1), holds)
    node = Node(after, call=call)
    scene.nodes[after.name] = node
    scene.desired[after.name] = after
    assert call_serves_plan(scene.plan(), node, scene.nodes) is wanted


def test_building_groups_follow_the_dependencies() -> None:
    scene = Scene()
    scene.want(spec("c", "b", "a"), spec("b", "a"), spec("a"), spec("d"), spec("e", "x"))
    groups = [[step.name.short for step in group] for group in scene.plan().building_groups()]
    assert groups == [["a", "d"], ["b"], ["c"]]


def test_closing_groups_close_dependents_first() -> None:
    scene = Scene()
    scene.add_live(spec("a"), wanted=False)
    scene.add_live(spec("b", "a"), "a", wanted=False)
    scene.add_live(spec("c", "b"), "b", "a", wanted=False)
    scene.add_live(spec("d", "a"), "a", wanted=False)
    scene.add_live(spec("e"))
    groups = scene.plan().closing_groups(scene.nodes)
    assert [[step.name.short for step in group] for group in groups] == [["c", "d"], ["b"], ["a"]]


def test_closing_groups_follow_holds_when_an_older_object_holds_a_younger() -> None:
    scene = Scene()
    old = scene.add_live(mutable("old", "young"), wanted=False)
    scene.add_live(spec("young"), wanted=False)
    assert old.held
    old.held.holds = {full_name("young"): 2}
    groups = scene.plan().closing_groups(scene.nodes)
    assert [[step.name.short for step in group] for group in groups] == [["old"], ["young"]]


def test_plan_is_deterministic_and_does_not_modify_its_input() -> None:
    scene = Scene(unavailable={"gone": "it left"})
    scene.add_live(spec("a"))
    scene.add_live(mutable("b", "a", "w"), "a")
    scene.add_live(spec("c", "b"), "b", wanted=False)
    scene.add_live(spec("w"))
    scene.desired |= {
        item.name: item for item in (spec("d", "x"), spec("e", family="gone"), mutable("b", "a"))
    }
    before = copy.deepcopy(scene.nodes), dict(scene.desired)
    first, second = scene.plan(), scene.plan()
    assert first == second
    assert list(first.steps) == list(second.steps)
    for name, node in scene.nodes.items():
        was = before[0][name]
        assert (node.spec, node.state, node.reason, node.failure) == (
            was.spec,
            was.state,
            was.reason,
            was.failure,
        )
        assert node.held
        assert was.held
        assert (node.held.holds, node.held.generation) == (was.held.holds, was.held.generation)
    assert scene.desired == before[1]

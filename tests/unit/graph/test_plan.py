"""The plan is a pure function: states are written down, plans are read off."""

import asyncio
import copy
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from tests.unit.graph.world import full, mutable, spec

from cogwork.graph.name import ResourceName
from cogwork.graph.node import (
    Activity,
    BuildFailure,
    BuildInputs,
    Call,
    LiveResource,
    Node,
    Reason,
    State,
)
from cogwork.graph.plan import MAX_ABANDONED, Action, Plan, Step, call_serves_plan, plan
from cogwork.graph.provider import Dependencies, Offer, Unavailable
from cogwork.graph.spec import Spec

NOW = 100.0


class Nobody:
    """A builder that a plan must never call."""

    async def build(self, spec: Spec, dependencies: Dependencies) -> object:
        raise NotImplementedError

    async def reconfigure(self, resource: object, spec: Spec, dependencies: Dependencies) -> None:
        raise NotImplementedError

    async def close(self, resource: object) -> None:
        raise NotImplementedError


BUILDER = Nobody()


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@dataclass
class Scene:
    """What is and what is wanted."""

    desired: dict[ResourceName, Spec] = field(default_factory=dict)
    nodes: dict[ResourceName, Node] = field(default_factory=dict)
    away: dict[str, str] = field(default_factory=dict)
    """Families that are unavailable, with the reason."""
    provider_session: int = 0
    generation: int = 0

    def want(self, *specs: Spec) -> None:
        self.desired = {item.name: item for item in specs}

    def live(self, item: Spec, *holds: str, wanted: bool = True) -> Node:
        """A ready node, in the order of their generations."""
        self.generation += 1
        node = Node(item, State.READY)
        generations = {name: self._held(name).generation for name in map(full, holds)}
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

    def answer(self, item: Spec) -> Offer | Unavailable:
        reason = self.away.get(item.model.family)
        return Unavailable(reason) if reason else self._offer(item)

    def plan(self) -> Plan:
        return plan(self.desired, self.nodes, self.answer, NOW)

    def inputs(self, item: Spec, **needs: int) -> BuildInputs:
        generations = {full(name): number for name, number in needs.items()}
        return BuildInputs(item, generations, BUILDER, self.provider_session)


def steps(made: Plan) -> dict[str, tuple[Action, str]]:
    return {name.short: (step.action, step.why) for name, step in made.steps.items()}


def test_what_is_right_is_left_alone() -> None:
    scene = Scene()
    scene.live(spec("a"))
    scene.live(spec("b", "a"), "a")
    made = scene.plan()
    assert made.steps == {}


def test_build_what_is_not_there() -> None:
    scene = Scene()
    scene.want(spec("b", "a"), spec("a"))
    assert list(steps(scene.plan()).items()) == [
        ("a", (Action.BUILD, "it is not running yet")),
        ("b", (Action.BUILD, "it is not running yet")),
    ]


def test_build_again_what_failed_when_its_time_has_come() -> None:
    scene = Scene()
    item = spec("a")
    scene.want(item)
    scene.nodes[item.name] = Node(
        item, failure=BuildFailure(scene.inputs(item), 3, NOW, "no device")
    )
    assert steps(scene.plan()) == {"a": (Action.BUILD, "attempt 4")}


def test_wait_until_a_failure_is_due() -> None:
    scene = Scene()
    item = spec("a")
    scene.want(item, spec("b", "a"))
    scene.nodes[item.name] = Node(
        item, failure=BuildFailure(scene.inputs(item), 1, NOW + 1, "no device")
    )
    b = 'depends on "a", which is not ready: no device'
    made = scene.plan()
    assert steps(made) == {"a": (Action.WAIT, "no device"), "b": (Action.WAIT, b)}
    assert made.steps[full("b")].reason == Reason(b, (full("a"), "no device"))


def test_do_not_wait_when_the_inputs_of_a_failure_changed() -> None:
    scene = Scene()
    scene.live(spec("a"))
    item = spec("b", "a")
    scene.desired[item.name] = item
    failure = BuildFailure(scene.inputs(item, a=77), 1, NOW + 1, "no device")
    scene.nodes[item.name] = Node(item, failure=failure)
    assert steps(scene.plan()) == {"b": (Action.BUILD, "attempt 2")}
    scene.nodes[item.name].failure = BuildFailure(scene.inputs(item, a=1), 1, NOW + 1, "no device")
    assert steps(scene.plan()) == {"b": (Action.WAIT, "no device")}
    scene.provider_session = 1
    assert steps(scene.plan())["b"] == (Action.BUILD, "attempt 2")


def test_remove_what_is_no_longer_wanted_and_halt_what_needs_it() -> None:
    scene = Scene()
    scene.live(spec("a"), wanted=False)
    scene.live(spec("b", "a"), "a")
    made = scene.plan()
    sentence = 'depends on "a", which is not configured'
    assert steps(made) == {
        "b": (Action.HALT, sentence),
        "a": (Action.REMOVE, "it is no longer configured"),
    }
    assert made.steps[full("b")].reason == Reason(sentence)


def test_rebuild_what_only_wanted_the_removed_one() -> None:
    scene = Scene()
    scene.live(spec("a"), wanted=False)
    scene.live(mutable("b", wants="a"), "a")
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
def test_halt_or_wait_for_what_cannot_run(case: str, live: bool) -> None:
    item, sentence = FAULTS[case]
    scene = Scene(away={"gone": "it left"})
    if live:
        scene.live(spec("a"))
    scene.want(item)
    made = scene.plan()
    action = Action.HALT if live else Action.WAIT
    assert made.steps == {full("a"): Step(full("a"), action, sentence, Reason(sentence))}


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
def test_changes(before: Spec, after: Spec, action: Action, why: str) -> None:
    scene = Scene()
    scene.live(spec("y"))
    scene.live(spec("z"))
    scene.live(before)
    scene.desired[after.name] = after
    assert steps(scene.plan()) == {"a": (action, why)}


def test_a_want_that_is_about_to_be_closed_changes_nothing() -> None:
    scene = Scene()
    scene.live(spec("d"))
    scene.live(spec("w", "d"), "d")
    scene.live(spec("a", wants="w"))
    scene.desired[full("d")] = spec("d", settings=1)
    assert steps(scene.plan()).keys() == {"d", "w"}


def test_a_want_that_is_not_there_changes_nothing() -> None:
    scene = Scene(away={"gone": "it left"})
    scene.live(spec("a"))
    scene.want(spec("a", wants="w x"), spec("w", family="gone"))
    assert steps(scene.plan()) == {"w": (Action.WAIT, "it left")}


@pytest.mark.parametrize(
    ("kind", "action"), [("plain", Action.REBUILD), ("mutable", Action.RECONFIGURE)]
)
def test_a_dependency_less(kind: str, action: Action) -> None:
    scene = Scene()
    scene.live(spec("z"))
    scene.live(spec("a", "z", kind=kind), "z")
    scene.desired[full("a")] = spec("a", kind=kind)
    assert steps(scene.plan()) == {"a": (action, 'it no longer depends on "z"')}


def test_rebuild_what_is_broken_and_what_holds_it() -> None:
    scene = Scene()
    broken = scene.live(spec("a"))
    scene.live(mutable("b", "a"), "a")
    scene.live(spec("c", "b"), "b")
    scene.live(spec("d"))
    assert broken.held
    broken.held.broken_reason = "the cable was pulled"
    made = scene.plan()
    assert steps(made) == {
        "a": (Action.REBUILD, "the cable was pulled"),
        "b": (Action.REBUILD, 'it holds "a", which is closed'),
        "c": (Action.REBUILD, 'it holds "b", which is closed'),
    }


def test_rebuild_what_a_restarted_provider_lost() -> None:
    scene = Scene()
    scene.live(spec("a"))
    scene.provider_session = 1
    assert steps(scene.plan()) == {"a": (Action.REBUILD, "its provider restarted")}


def test_rebuild_what_holds_an_object_that_is_gone() -> None:
    scene = Scene()
    scene.live(spec("a"))
    scene.live(spec("b", "a"), "a")
    scene.live(spec("a"))
    assert steps(scene.plan()) == {"b": (Action.REBUILD, '"a", which it holds, no longer exists')}


def test_a_dependent_of_one_changed_in_place_is_left_alone() -> None:
    scene = Scene()
    scene.live(mutable("a"))
    scene.live(spec("b", "a"), "a")
    scene.desired[full("a")] = mutable("a", settings=1)
    assert steps(scene.plan()) == {"a": (Action.RECONFIGURE, "its attributes changed")}


def test_what_depends_on_a_circle_waits_wherever_it_is_written() -> None:
    scene = Scene()
    scene.want(spec("top", "middle"), spec("middle", "knot"), spec("knot", "knot"))
    assert {name: action for name, (action, _) in steps(scene.plan()).items()} == {
        "knot": Action.WAIT,
        "middle": Action.WAIT,
        "top": Action.WAIT,
    }


def test_no_other_constructor_beside_four_that_hang(loop: asyncio.AbstractEventLoop) -> None:
    scene = Scene()
    item = spec("a")
    scene.want(item)
    hanging = [loop.create_task(_nothing()) for _ in range(MAX_ABANDONED)]
    scene.nodes[item.name] = Node(item, abandoned=dict.fromkeys(hanging, 0.0))
    assert steps(scene.plan())["a"][0] is Action.WAIT
    scene.nodes[item.name].abandoned.pop(hanging[0])
    assert steps(scene.plan())["a"][0] is Action.BUILD
    loop.run_until_complete(asyncio.gather(*hanging))


async def _nothing() -> None:
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
def test_which_constructors_go_on(
    loop: asyncio.AbstractEventLoop, after: Spec, wanted: bool
) -> None:
    scene = Scene()
    scene.live(spec("a"))
    scene.live(spec("z"))
    before = spec("b", "a")
    holds = {full("a"): 1}
    call = Call(Activity.BUILDING, loop.create_future(), scene.inputs(before, a=1), holds)
    node = Node(after, call=call)
    scene.nodes[after.name] = node
    scene.desired[after.name] = after
    assert call_serves_plan(scene.plan(), node, scene.nodes) is wanted


def test_building_groups() -> None:
    scene = Scene()
    scene.want(spec("c", "b", "a"), spec("b", "a"), spec("a"), spec("d"), spec("e", "x"))
    groups = [[step.name.short for step in group] for group in scene.plan().building_groups()]
    assert groups == [["a", "d"], ["b"], ["c"]]


def test_closing_groups() -> None:
    scene = Scene()
    scene.live(spec("a"), wanted=False)
    scene.live(spec("b", "a"), "a", wanted=False)
    scene.live(spec("c", "b"), "b", "a", wanted=False)
    scene.live(spec("d", "a"), "a", wanted=False)
    scene.live(spec("e"))
    groups = scene.plan().closing_groups(scene.nodes)
    assert [[step.name.short for step in group] for group in groups] == [["c", "d"], ["b"], ["a"]]


def test_an_old_object_may_hold_a_younger_one_since_it_was_changed_in_place() -> None:
    scene = Scene()
    old = scene.live(mutable("old", "young"), wanted=False)
    scene.live(spec("young"), wanted=False)
    assert old.held
    old.held.holds = {full("young"): 2}
    groups = scene.plan().closing_groups(scene.nodes)
    assert [[step.name.short for step in group] for group in groups] == [["old"], ["young"]]


def test_the_same_scene_gives_the_same_plan_and_stays_the_same() -> None:
    scene = Scene(away={"gone": "it left"})
    scene.live(spec("a"))
    scene.live(mutable("b", "a", "w"), "a")
    scene.live(spec("c", "b"), "b", wanted=False)
    scene.live(spec("w"))
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

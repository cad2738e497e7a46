"""The reconciler on a manual clock, so that all times are exact."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest
from tests.support.waiting import run_others, wait_until
from tests.unit.graph.world import (
    HANGS,
    OK,
    STUCK,
    CallBehavior,
    World,
    fails,
    full_name,
    mutable,
    spec,
    stubborn,
    takes,
)

from cogwork.core.clock import ManualClock, SystemClock
from cogwork.graph.events import CallAbandoned, CallFailed, StateChanged
from cogwork.graph.name import Reference, ResourceName
from cogwork.graph.node import Activity, NodeState
from cogwork.graph.plan import MAX_ABANDONED
from cogwork.graph.provider import Dependencies, Offer, Providers
from cogwork.graph.reconciler import Applied, Reconciler, Superseded
from cogwork.graph.spec import Spec


async def test_independent_resources_are_built_concurrently() -> None:
    async with World() as world:
        specs = [spec(f"n{number}") for number in range(50)]
        for item in specs:
            world.script(item.name.short, takes(1))
        applied = world.apply(*specs, revision="r1")
        await world.advance(0.999)
        assert not applied.done()
        await world.advance_to(1)
        assert applied.result() == Applied("r1", 1.0, ready=50, unhealthy=0)
        assert set(world.times("built")) == {1.0}


async def test_dependent_groups_are_built_one_after_another() -> None:
    async with World() as world:
        for name in ("a1", "a2", "b1", "b2", "c1", "c2"):
            world.script(name, takes(1))
        applied = world.apply(
            spec("c1", "b1 b2"),
            spec("c2", "b2 a1"),
            spec("b1", "a1"),
            spec("b2", "a1 a2"),
            spec("a1"),
            spec("a2"),
        )
        await world.advance_to(3)
        assert world.times("built", "a1", "a2") == [1, 1]
        assert world.times("built", "b1", "b2") == [2, 2]
        assert world.times("built", "c1", "c2") == [3, 3]
        assert applied.result() == Applied("", 3.0, 6, 0)
        assert world.thing("c1").holds == {
            full_name("b1"): world.thing("b1"),
            full_name("b2"): world.thing("b2"),
        }


async def test_resource_is_built_as_soon_as_its_dependencies_are_ready() -> None:
    async with World() as world:
        world.script("slow", takes(10))
        world.script("quick", takes(1))
        await world.run(
            spec("slow"), spec("quick"), spec("on_quick", "quick"), spec("on_slow", "slow")
        )
        await world.advance_to(10)
        assert world.times("built", "on_quick") == [1]
        assert world.times("built", "on_slow") == [10]


async def test_hanging_constructor_blocks_only_dependents_until_its_timeout() -> None:
    async with World() as world:
        world.script("stuck", HANGS)
        applied = world.apply(spec("stuck"), spec("on_stuck", "stuck"), spec("a"), spec("b", "a"))
        await world.clock.settle()
        assert [world.state(name) for name in ("a", "b")] == [NodeState.READY, NodeState.READY]
        await world.advance_to(119.999)
        assert world.state("stuck") is NodeState.CONFIGURING
        assert not applied.done()
        await world.advance_to(120)
        assert world.slow("stuck") == [2.0, *range(5, 120, 5)]
        assert world.reason("stuck") == "building timed out after 2m0s"
        assert world.reason("on_stuck") == (
            'depends on "stuck", which is not ready: building timed out after 2m0s'
        )
        assert world.state("on_stuck") is NodeState.UNHEALTHY
        assert applied.result() == Applied("", 120.0, ready=2, unhealthy=2)


async def test_close_is_concurrent_in_reverse_dependency_order() -> None:
    async with World() as world:
        for name in ("a", "b", "c1", "c2", "other"):
            world.script(name, close=takes(1))
        await world.run(spec("a"), spec("b", "a"), spec("c1", "b"), spec("c2", "b"), spec("other"))
        closing = asyncio.ensure_future(world.graph.aclose())
        await world.advance(10)
        assert closing.result() == []
        assert {(at, name) for at, _, name in world.history_of("closed")} == {
            (1, "c1"),
            (1, "c2"),
            (1, "other"),
            (2, "b"),
            (3, "a"),
        }


async def test_equal_configuration_changes_nothing() -> None:
    async with World() as world:
        await world.run(spec("a"), spec("b", "a"))
        before = len(world.history)
        applied = world.apply(spec("a"), spec("b", "a"), revision="r2")
        await world.clock.settle()
        assert applied.result() == Applied("r2", 0.0, 2, 0)
        assert len(world.history) == before


async def test_only_dependents_of_a_replaced_resource_are_rebuilt() -> None:
    async with World() as world:
        await world.run(spec("a"), spec("b", "a"), spec("c", "b"), spec("d"), spec("e", "d"))
        a, b, c, d, e = (world.thing(name) for name in "abcde")
        await world.run(
            spec("a"), spec("b", "a", settings=1), spec("c", "b"), spec("d"), spec("e", "d")
        )
        assert [world.thing("a"), world.thing("d"), world.thing("e")] == [a, d, e]
        assert world.thing("b") is not b
        assert world.thing("c") is not c
        assert world.thing("c").holds == {full_name("b"): world.thing("b")}


async def test_reconfigure_keeps_the_object_and_its_dependents() -> None:
    async with World() as world:
        world.script("a", reconfigure=takes(3))
        await world.run(mutable("a"), spec("b", "a"))
        a, b = world.thing("a"), world.thing("b")
        await world.run(mutable("a", settings=1), spec("b", "a"))
        assert world.state("a") is NodeState.CONFIGURING
        await world.advance(3)
        assert world.thing("a") is a
        assert a.settings == 1
        assert world.thing("b") is b
        assert world.state("a") is NodeState.READY


@pytest.mark.parametrize("behavior", [fails("not like this"), HANGS, stubborn(0.0), stubborn(5.0)])
async def test_failed_reconfigure_rebuilds_the_resource_and_its_dependents(
    behavior: CallBehavior,
) -> None:
    async with World() as world:
        world.script("a", reconfigure=behavior)
        await world.run(mutable("a"), spec("b", "a"))
        a, b = world.thing("a"), world.thing("b")
        await world.run(mutable("a", settings=1), spec("b", "a"))
        await world.advance(130)
        assert world.thing("a") is not a
        assert world.thing("a").settings == 1
        assert world.thing("b") is not b
        assert world.thing("b").holds == {full_name("a"): world.thing("a")}
        assert len(world.times("reconfigure")) == 1
        assert any(
            isinstance(event, CallFailed) and event.activity is Activity.RECONFIGURING
            for _, event in world.events
        )


async def test_abandoned_reconfigure_that_succeeds_late_does_not_keep_the_object() -> None:
    """The object switched to the new settings after the old ones were wanted again."""
    async with World() as world:
        world.script("a", reconfigure=stubborn(0.5))
        world.script("b", close=takes(5))
        await world.run(mutable("a"), spec("b", "a"))
        await world.run(mutable("a", settings=1), spec("b", "a"))
        await world.run(mutable("a"), spec("b", "a"))
        await world.advance(1)
        await world.run(mutable("a"), spec("b", "a"), spec("c"))
        await world.advance(10)
        assert world.thing("a").settings == 0


async def test_resource_is_closed_when_its_new_dependency_fails() -> None:
    async with World() as world:
        world.script("root", fails())
        await world.run(mutable("a"), spec("b", "a"))
        await world.run(
            mutable("a", "x"), spec("b", "a"), spec("c", "a"), spec("x", "root"), spec("root")
        )
        assert world.times("build", "c") == []
        assert [world.state(name) for name in ("a", "b", "x")] == [NodeState.UNHEALTHY] * 3
        assert world.reason("b") == 'depends on "a", which waits for "root": no such device'
        assert world.things == []
        world.script("root")
        await world.advance(30)
        assert [world.state(name) for name in ("a", "b", "x")] == [NodeState.READY] * 3


async def test_running_reconfigure_continues_when_the_next_configuration_agrees() -> None:
    async with World() as world:
        world.script("a", reconfigure=takes(10))
        await world.run(mutable("a"))
        await world.run(mutable("a", settings=1))
        await world.advance(5)
        await world.run(mutable("a", settings=1), spec("b"))
        await world.advance(5)
        assert world.times("reconfigure", "a") == [0]
        assert world.state("a") is NodeState.READY


async def test_constructor_is_not_repeated_when_its_dependency_is_reconfigured() -> None:
    async with World() as world:
        world.script("a", reconfigure=takes(10))
        world.script("b", takes(5))
        await world.run(mutable("a"), spec("b", "a"))
        await world.advance(1)
        await world.run(mutable("a", settings=1), spec("b", "a"))
        await world.advance(20)
        assert world.times("build", "b") == [0]
        assert len(world.things) == 2


async def test_new_configuration_keeps_constructors_with_equal_inputs() -> None:
    async with World() as world:
        world.script("same", takes(10))
        world.script("changed", takes(10))
        world.script("gone", takes(10))
        first = world.apply(spec("same"), spec("changed"), spec("gone"), revision="r1")
        await world.advance(4)
        second = world.apply(spec("same"), spec("changed", settings=1), revision="r2")
        await world.clock.settle()
        assert first.result() == Superseded("r1")
        assert list(world.graph.nodes) == [full_name("same"), full_name("changed")]
        await world.advance_to(10)
        assert world.state("same") is NodeState.READY
        assert not second.done()
        await world.advance_to(14)
        assert second.result() == Applied("r2", 10.0, 2, 0)
        assert world.times("build", "same") == [0]
        assert world.times("build", "changed") == [0, 4]
        assert world.thing("changed").settings == 1


async def test_constructor_is_abandoned_when_its_dependency_is_replaced() -> None:
    async with World() as world:
        world.script("b", takes(10))
        await world.run(spec("a"), spec("b", "a"))
        await world.advance(5)
        await world.run(spec("a", settings=1), spec("b", "a"))
        await world.advance(10)
        assert world.times("build", "b") == [0, 5]
        assert world.thing("b").holds == {full_name("a"): world.thing("a")}


async def test_late_result_of_an_abandoned_constructor_is_closed_once() -> None:
    async with World() as world:
        world.script("a", [stubborn(30), OK])
        await world.run(spec("a"))
        await world.advance(1)
        await world.run(spec("a", settings=1))
        await world.advance_to(1.999)
        assert world.times("build", "a") == [0]
        await world.advance_to(2)
        assert world.times("build", "a") == [0, 2]
        assert world.state("a") is NodeState.READY
        assert [event for _, event in world.events if isinstance(event, CallAbandoned)] == [
            CallAbandoned(full_name("a"), Activity.BUILDING)
        ]
        a = world.thing("a")
        await world.advance_to(31)
        assert world.history_of("built late", "closed") == [
            (31, "built late", "a"),
            (31, "closed", "a"),
        ]
        assert world.thing("a") is a


async def test_next_constructor_waits_until_a_late_object_is_closed() -> None:
    """The late object holds the device until its close has returned."""
    async with World() as world:
        world.script("a", [stubborn(0.2), OK], close=takes(0.3))
        await world.run(spec("a"))
        await world.run(spec("a", settings=1))
        await world.advance(5)
        assert world.history_of("build", "closed")[:3] == [
            (0, "build", "a"),
            (0.5, "closed", "a"),
            (0.5, "build", "a"),
        ]


async def test_next_constructor_waits_for_that_of_the_removed_resource() -> None:
    async with World() as world:
        world.script("a", [stubborn(0.5), OK])
        await world.run(spec("a"))
        await world.run()
        await world.run(spec("a"))
        await world.advance(2)
        assert world.times("built late", "a") == [0.5]
        assert world.times("build", "a") == [0, 0.5]


async def test_failed_build_is_retried_with_back_off() -> None:
    async with World() as world:
        world.script("a", fails())
        applied = world.apply(spec("a"))
        await world.advance(300)
        assert applied.result() == Applied("", 0.0, 0, 1)
        assert world.reason("a") == "no such device"
        times = world.times("build", "a")
        pauses = [later - earlier for earlier, later in pairwise(times)]
        for pause, expected in zip(pauses, (0.5, 1, 2, 4, 8, 16, 30, 30, 30), strict=False):
            assert 0.5 * expected <= pause <= expected
        assert min(pauses) >= 0.5
        assert max(pauses) <= 30
        world.script("a")
        await world.advance(30)
        assert world.state("a") is NodeState.READY
        assert world.states("a").count((world.states("a")[-1][0], NodeState.READY)) == 1


async def test_changed_attributes_are_retried_at_once() -> None:
    async with World() as world:
        world.script("a", fails())
        await world.run(spec("a"))
        await world.advance(100)
        world.script("a")
        await world.run(spec("a", settings=1))
        assert world.state("a") is NodeState.READY


async def test_replaced_dependency_ends_the_back_off() -> None:
    async with World() as world:
        world.script("b", fails())
        await world.run(spec("a"), spec("b", "a"))
        await world.advance(100)
        world.script("b")
        before = len(world.times("build", "b"))
        await world.run(spec("a", settings=1), spec("b", "a"))
        assert world.state("b") is NodeState.READY
        assert len(world.times("build", "b")) == before + 1


async def test_replaced_provider_ends_the_back_off() -> None:
    async with World() as world:
        world.script("a", fails())
        await world.run(spec("a"))
        await world.advance(100)
        other = OtherProvider(world)
        world.providers.add("acme", other)
        await world.clock.settle()
        assert world.state("a") is NodeState.READY
        assert other.built == 1


async def test_provider_replaced_during_construction_builds_the_resource() -> None:
    async with World() as world:
        world.script("a", takes(10))
        await world.run(spec("a"))
        other = OtherProvider(world)
        world.providers.add("acme", other)
        await world.advance(10)
        assert world.state("a") is NodeState.READY
        assert other.built == 1


class OtherProvider:
    """A provider of the same models as the world's, with the same session number."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.built = 0

    def offer(self, spec: Spec) -> Offer:
        return Offer(self)

    async def build(self, spec: Spec, dependencies: Dependencies) -> object:
        self.built += 1
        return object()

    async def reconfigure(self, resource: object, spec: Spec, dependencies: Dependencies) -> None:
        raise NotImplementedError

    async def close(self, resource: object) -> None:
        pass


async def test_dependents_recover_with_their_dependency() -> None:
    async with World() as world:
        world.script("a", [fails(), OK])
        await world.run(spec("a"), spec("b", "a"), spec("c", "b"))
        assert world.reason("b") == 'depends on "a", which is not ready: no such device'
        assert world.reason("c") == 'depends on "b", which waits for "a": no such device'
        await world.advance(1)
        assert [world.state(name) for name in "abc"] == [NodeState.READY] * 3


async def test_resources_follow_a_provider_that_leaves_and_returns() -> None:
    async with World("other") as world:
        await world.run(spec("a", family="other"), spec("b", "a"), spec("c"))
        a, c = world.thing("a"), world.thing("c")
        world.suppliers["other"].leave()
        await world.clock.settle()
        assert world.reason("a") == 'module "other" is not running'
        assert world.reason("b") == (
            'depends on "a", which is not ready: module "other" is not running'
        )
        assert world.history_of("close") == [(0, "close", "b"), (0, "close", "a")]
        assert world.thing("c") is c
        world.suppliers["other"].come_back()
        await world.clock.settle()
        assert world.state("b") is NodeState.READY
        assert world.thing("a") is not a
        assert world.thing("b").holds == {full_name("a"): world.thing("a")}


async def test_unknown_model_is_the_reason() -> None:
    async with World() as world:
        await world.run(spec("a", family="nobody"))
        assert world.reason("a") == (
            'unknown model "test:nobody:plain" for rdk:component:sensor: '
            "check the spelling, or add the module that provides it"
        )


async def test_dependents_of_a_removed_resource_wait_and_recover() -> None:
    async with World() as world:
        await world.run(spec("x"), spec("a", "x"), spec("b", "a"))
        await world.run(spec("a", "x"), spec("b", "a"))
        assert list(world.graph.nodes) == [full_name("a"), full_name("b")]
        assert world.state("a") is NodeState.UNHEALTHY
        assert world.reason("a") == 'depends on "x", which is not configured'
        assert world.reason("b") == (
            'depends on "a", which is not ready: depends on "x", which is not configured'
        )
        assert world.history_of("close") == [
            (0, "close", "b"),
            (0, "close", "a"),
            (0, "close", "x"),
        ]
        await world.run(spec("a", "x"), spec("b", "a"), spec("x"))
        assert [world.state(name) for name in "xab"] == [NodeState.READY] * 3


async def test_faulty_spec_is_unhealthy_until_it_is_fixed() -> None:
    async with World() as world:
        await world.run(spec("a"), spec("b", "a"))
        await world.run(spec("a", fault='"pin" must be a number'), spec("b", "a"))
        assert world.reason("a") == '"pin" must be a number'
        assert world.state("b") is NodeState.UNHEALTHY
        await world.run(spec("a"), spec("b", "a"))
        assert world.state("b") is NodeState.READY


async def test_cycle_and_its_dependents_are_unhealthy_until_it_is_fixed() -> None:
    async with World() as world:
        await world.run(spec("top", "middle"), spec("middle", "a"), spec("a", "b"), spec("b"))
        await world.run(spec("top", "middle"), spec("middle", "a"), spec("a", "b"), spec("b", "a"))
        assert world.reason("a") == 'circular dependency: "a" -> "b" -> "a"'
        assert world.reason("middle") == (
            'depends on "a", which is not ready: circular dependency: "a" -> "b" -> "a"'
        )
        assert world.reason("top") == (
            'depends on "middle", which waits for "a": circular dependency: "a" -> "b" -> "a"'
        )
        await world.run(spec("top", "middle"), spec("middle", "a"), spec("a", "b"), spec("b"))
        assert world.state("top") is NodeState.READY


async def test_optional_dependency_is_waited_for_briefly() -> None:
    async with World() as world:
        world.script("w", takes(1.5))
        await world.run(spec("a", wants="w"), spec("w"))
        await world.advance_to(1.5)
        assert world.times("build", "a") == [1.5]
        assert world.thing("a").holds == {full_name("w"): world.thing("w")}


@pytest.mark.parametrize("kind", ["plain", "mutable"])
async def test_resource_is_built_without_a_slow_optional_dependency(kind: str) -> None:
    async with World() as world:
        world.script("w", takes(10))
        await world.run(spec("a", wants="w", kind=kind), spec("w"))
        await world.advance_to(9)
        assert world.times("built", "a") == [2]
        a = world.thing("a")
        await world.advance_to(10)
        assert world.thing("a").holds == {full_name("w"): world.thing("w")}
        assert world.thing("a") is not a  # no object may hold a younger one


async def test_existing_dependencies_are_added_by_reconfigure() -> None:
    async with World() as world:
        await world.run(spec("old"), spec("older"), mutable("a"))
        a = world.thing("a")
        await world.run(spec("old"), spec("older"), mutable("a", "old", wants="older"))
        assert world.thing("a") is a
        assert a.holds == {full_name(name): world.thing(name) for name in ("old", "older")}


async def test_retries_of_others_do_not_prolong_the_optional_dependency_wait() -> None:
    async with World() as world:
        world.script("w", takes(60))
        world.script("broken", fails())
        await world.run(spec("a", wants="w"), spec("w"), spec("broken"))
        await world.advance_to(20)
        assert world.times("build", "a") == [2]


@pytest.mark.parametrize("kind", ["plain", "mutable"])
async def test_optional_dependency_that_is_to_be_closed_is_not_passed(kind: str) -> None:
    async with World() as world:
        world.script("holder", close=[takes(20), OK])
        await world.run(spec("w"), spec("holder", "w"), spec("b", kind=kind))
        both = spec("a", wants="w", kind=kind), spec("b", wants="w", kind=kind)
        await world.run(spec("w", settings=1), spec("holder", "w"), *both)
        await world.advance_to(19)
        assert world.times("build", "a") == [2]
        assert world.times("build", "b") == [0]
        await world.advance_to(30)
        assert world.thing("a").holds == {full_name("w"): world.thing("w")}
        assert world.thing("b").holds == {full_name("w"): world.thing("w")}


async def test_each_build_attempt_waits_anew_for_optional_dependencies() -> None:
    async with World() as world:
        world.script("w", takes(60))
        await world.run(spec("a", wants="w"), spec("w"))
        await world.advance_to(10)
        await world.run(spec("a", wants="w", settings=1), spec("w"))
        await world.advance_to(20)
        assert world.times("build", "a") == [2, 12]


async def test_retries_of_others_do_not_prolong_the_cancellation_grace() -> None:
    async with World() as world:
        world.script("a", [STUCK, OK])
        for number in range(20):
            world.script(f"broken{number}", fails(after=0.05))
        broken = [spec(f"broken{number}") for number in range(20)]
        await world.run(spec("a"), *broken)
        await world.run(spec("a", settings=1), *broken)
        await world.advance(10)
        assert world.times("build", "a") == [0, 1]


async def test_resource_runs_without_a_failed_or_removed_optional_dependency() -> None:
    async with World() as world:
        world.script("w", [fails(), OK])
        await world.run(spec("a", wants="w"), spec("w"))
        assert world.state("a") is NodeState.READY
        assert world.thing("a").holds == {}
        await world.advance(1)
        assert world.thing("a").holds == {full_name("w"): world.thing("w")}
        await world.run(spec("a", wants="w"))
        assert world.state("a") is NodeState.READY
        assert world.thing("a").holds == {}


async def test_optional_dependency_in_a_cycle_is_dropped() -> None:
    async with World() as world:
        await world.run(spec("a", wants="b"), spec("b", "a"))
        assert [world.state(name) for name in "ab"] == [NodeState.READY] * 2
        assert world.thing("a").holds == {}
        assert world.thing("b").holds == {full_name("a"): world.thing("a")}
        assert world.graph.dropped_dependencies(full_name("a")) == (full_name("b"),)
        assert world.graph.dropped_dependencies(full_name("b")) == ()


async def test_constructor_given_its_future_dependent_is_repeated_without_it() -> None:
    """The want is dropped during construction: objects that hold each other cannot be closed."""
    async with World() as world:
        world.script("x", [takes(10), OK])
        await world.run(spec("x", wants="w"), mutable("w"))
        await world.advance(5)
        await world.run(spec("x", wants="w"), mutable("w", "x"))
        await world.advance(20)
        assert world.thing("x").holds == {}
        assert world.thing("w").holds == {full_name("x"): world.thing("x")}


@pytest.mark.parametrize("behavior", [takes(30), fails(after=1), fails(after=30)])
async def test_resources_that_swap_their_dependency_never_hold_each_other(
    behavior: CallBehavior,
) -> None:
    """The object that must release its dependency first waits for a third one."""
    async with World() as world:
        world.script("c", behavior)
        await world.run(mutable("a"), mutable("b", "a"))
        await world.run(mutable("a", wants="b"), mutable("b", "c"), spec("c"))
        await world.advance(20)
        await world.run(mutable("a", wants="b"), mutable("b", "c"), spec("c"), spec("d"))
        await world.advance(100)
        assert world.state("a") is NodeState.READY
        if behavior.error:
            assert world.state("b") is NodeState.UNHEALTHY
            assert world.thing("a").holds == {}
            assert len(world.things) == 2
        else:
            assert world.thing("a").holds == {full_name("b"): world.thing("b")}


@pytest.mark.parametrize("behavior", [takes(30), fails(after=1), fails(after=30)])
@pytest.mark.parametrize("between", [spec("m", "a"), mutable("m", "a")])
async def test_resources_never_hold_each_other_through_an_unchanged_third(
    behavior: CallBehavior, between: Spec
) -> None:
    async with World() as world:
        world.script("c", behavior)
        await world.run(mutable("a", "b"), mutable("b"), between)
        await world.run(mutable("a", "c"), mutable("b", "m"), between, spec("c"))
        world.lose("b", "the cable was pulled")
        await world.advance(40)
        world.lose("m", "the cable was pulled")
        await world.advance(40)
        if behavior.error:
            assert {world.state(name) for name in "abcm"} == {NodeState.UNHEALTHY}
            assert world.things == []
        else:
            assert {world.state(name) for name in "abcm"} == {NodeState.READY}
            assert world.thing("b").holds == {full_name("m"): world.thing("m")}


async def test_reconfigure_given_its_future_dependent_drops_it() -> None:
    async with World() as world:
        world.script("x", reconfigure=takes(10))
        await world.run(mutable("x"), mutable("w"))
        await world.run(mutable("x", wants="w"), mutable("w"))
        await world.advance(5)
        await world.run(mutable("x", wants="w"), mutable("w", "x"))
        await world.advance(20)
        assert world.thing("x").holds == {}
        assert world.thing("w").holds == {full_name("x"): world.thing("x")}


async def test_lost_resource_is_rebuilt_with_only_its_dependents() -> None:
    async with World() as world:
        await world.run(spec("a"), spec("b", "a"), spec("c"))
        a, b, c = (world.thing(name) for name in "abc")
        world.lose("a", "the cable was pulled")
        world.lose("nobody", "whatever")
        await world.clock.settle()
        assert world.thing("a") is not a
        assert world.thing("b") is not b
        assert world.thing("c") is c
        assert world.state("b") is NodeState.READY


async def test_repeatedly_lost_resource_is_rebuilt_with_back_off() -> None:
    async with World() as world:
        await world.run(spec("a"), spec("b", "a"))
        for _ in range(20):
            world.lose("a", "the cable is loose")
            await world.advance(1)
        assert 2 <= len(world.times("built", "a")) <= 8
        assert world.state("a") is NodeState.UNHEALTHY
        assert world.reason("a") == "the cable is loose"
        assert world.reason("b") == 'depends on "a", which is not ready: the cable is loose'
        await world.advance(60)
        assert world.state("b") is NodeState.READY
        a = world.thing("a")
        world.lose("a", "once in a while")
        await world.clock.settle()
        assert world.thing("a") is not a
        assert world.state("b") is NodeState.READY


async def test_failing_observer_does_not_stop_the_reconciler(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with World() as world:

        def raise_error(name: ResourceName, state: NodeState) -> None:
            raise ValueError(name, state)

        world.on_state = raise_error
        await world.run(spec("a"), spec("b", "a"))
        assert world.state("b") is NodeState.READY
    assert "an observer of the resource graph failed" in caplog.text


async def test_unhealthy_reason_is_cleared_when_the_dependency_appears() -> None:
    async with World() as world:
        world.script("x", takes(1))
        await world.run(spec("a", "x"))
        assert world.reason("a") == 'depends on "x", which is not configured'
        await world.run(spec("a", "x"), spec("x"))
        assert world.state("a") is NodeState.CONFIGURING
        await world.advance(1)
        assert world.state("a") is NodeState.READY


async def test_resource_lost_during_reconfigure_is_rebuilt() -> None:
    async with World() as world:
        world.script("a", reconfigure=takes(1))
        await world.run(mutable("a"))
        a = world.thing("a")
        await world.run(mutable("a", settings=1))
        world.lose("a", "the cable was pulled")
        await world.advance(5)
        assert world.thing("a") is not a
        assert world.state("a") is NodeState.READY


async def test_dependency_named_by_the_provider_is_passed() -> None:
    async with World() as world:
        world.suppliers["acme"].needs["b"] = (Reference("a"),)
        world.script("a", takes(1))
        await world.run(spec("b"), spec("a"))
        await world.advance(1)
        assert world.thing("b").holds == {full_name("a"): world.thing("a")}


async def test_dependency_dropped_by_the_provider_during_construction_is_released() -> None:
    async with World() as world:
        world.suppliers["acme"].needs["b"] = (Reference("a"),)
        world.script("b", takes(1))
        await world.run(spec("b"), spec("a"))
        world.suppliers["acme"].needs.clear()
        world.providers.notify_changed()
        await world.advance(5)
        assert world.state("b") is NodeState.READY
        assert world.thing("b").holds == {}


async def test_failed_close_is_reported_and_counts_as_closed() -> None:
    async with World() as world:
        world.script("a", close=fails("stuck valve"))
        await world.run(spec("a"))
        await world.run(spec("a", settings=1))
        assert world.state("a") is NodeState.READY
        assert (0, CallFailed(full_name("a"), Activity.CLOSING, "stuck valve")) in world.events


@pytest.mark.parametrize("behavior", [HANGS, STUCK])
async def test_hanging_close_is_abandoned_after_its_timeout(behavior: CallBehavior) -> None:
    async with World() as world:
        world.script("a", close=behavior)
        await world.run(spec("a"), spec("b", "a"))
        await world.run(spec("a", settings=1), spec("b", "a"))
        await world.advance_to(29.999)
        assert world.times("build", "a") == [0]
        await world.advance_to(31)
        assert world.times("build", "a") == [0, 30 if behavior is HANGS else 31]
        assert world.state("b") is NodeState.READY
        assert world.slow("a") == [2, 5, 10, 15, 20, 25]


async def test_dependency_is_closed_after_its_holder_when_the_plan_changes() -> None:
    async with World() as world:
        world.script("b", close=takes(5))
        await world.run(spec("a"), spec("b", "a"))
        await world.run(spec("a"), spec("b", "a", settings=1))
        await world.advance(1)
        await world.run(spec("b"))
        await world.advance(10)
        assert world.history_of("closed") == [(5, "closed", "b"), (5, "closed", "a")]


async def test_dependency_passed_to_an_unfinished_reconfigure_is_closed_last() -> None:
    async with World() as world:
        world.script("a", reconfigure=HANGS, close=takes(5))
        await world.run(spec("b"), mutable("a"))
        await world.run(spec("b"), mutable("a", "b"))
        await world.run(mutable("a"))
        await world.advance(10)
        assert world.history_of("closed") == [(5, "closed", "a"), (5, "closed", "b")]


async def test_object_is_closed_after_its_abandoned_reconfigure_ends() -> None:
    async with World() as world:
        world.script("a", reconfigure=stubborn(0.5))
        await world.run(mutable("a"))
        await world.run(mutable("a", settings=1))
        await world.run()
        await world.advance(1)
        assert world.history_of("reconfigured", "close") == [
            (0.5, "reconfigured", "a"),
            (0.5, "close", "a"),
        ]


Edit = Callable[[World], None]


def remove(world: World) -> None:
    world.apply(spec("b", "a"))


def change(world: World) -> None:
    world.apply(spec("a", settings=1), spec("b", "a"))


def add_fault(world: World) -> None:
    world.apply(spec("a", fault="wrong"), spec("b", "a"))


@pytest.mark.parametrize("edit", [remove, change, add_fault])
async def test_edit_reverted_before_its_execution_keeps_the_object(edit: Edit) -> None:
    async with World() as world:
        world.script("b", close=takes(5))
        await world.run(spec("a"), spec("b", "a"))
        a = world.thing("a")
        edit(world)
        await world.advance(1)
        await world.run(spec("a"), spec("b", "a"))
        await world.advance(10)
        assert world.thing("a") is a
        assert world.state("a") is NodeState.READY
        assert world.reason("a") is None
        assert world.state("b") is NodeState.READY


async def test_first_of_two_specs_with_the_same_name_counts() -> None:
    async with World() as world:
        await world.run(spec("a", settings=1), spec("a", settings=2))
        await world.advance(5)
        assert world.thing("a").settings == 1
        assert world.times("build", "a") == [0]


async def test_resource_removed_and_added_in_one_turn_is_kept() -> None:
    async with World() as world:
        await world.run(spec("a"))
        a = world.thing("a")
        world.apply()
        await world.run(spec("a"))
        assert world.thing("a") is a


async def test_ready_nodes_have_the_last_applied_revision() -> None:
    async with World() as world:
        world.script("slow", [takes(10)])
        world.script("broken", fails())
        await world.run(spec("a"), spec("slow"), spec("broken"), revision="r1")
        await world.advance(5)
        assert world.graph.revision == ""
        assert world.node("a").revision == ""
        await world.advance_to(10)
        assert world.graph.revision == "r1"
        assert world.node("a").revision == "r1"
        assert world.node("broken").revision == ""
        await world.run(spec("a"), spec("slow", settings=1), spec("broken"), revision="r2")
        await world.advance(5)
        assert world.graph.revision == "r1"
        assert world.node("a").revision == "r1"
        await world.advance(5)
        assert world.graph.revision == "r2"
        assert world.node("a").revision == "r2"


async def test_configuration_is_applied_while_other_resources_are_retried() -> None:
    async with World() as world:
        names = [f"unreachable{number}" for number in range(8)]
        for number, name in enumerate(names):
            world.script(name, fails(after=10 + number))
        unreachable = [spec(name) for name in names]
        await world.run(*unreachable, revision="r1")
        await world.advance(100)
        assert world.graph.revision == "r1"
        applied = world.apply(*unreachable, spec("a"), revision="r2")
        await world.advance(60)
        assert applied.done()
        assert world.graph.revision == "r2"


async def test_at_most_four_abandoned_constructors_per_resource() -> None:
    async with World() as world:
        world.script("a", STUCK)
        await world.run(spec("a"))
        await world.advance(2000)
        assert len(world.times("build", "a")) == 4
        assert world.reason("a") == (
            "4 earlier attempts to build it have not returned yet; restart the server to end them"
        )


async def test_running_constructor_survives_the_limit_of_abandoned_ones() -> None:
    async with World() as world:
        world.script("a", [STUCK, STUCK, STUCK, STUCK, takes(10)])
        for settings in range(5):
            await world.run(spec("a", settings=settings))
            await world.advance(2)
        await world.run(spec("a", settings=4), spec("b"))
        await world.advance(10)
        assert world.state("a") is NodeState.READY


async def test_aclose_returns_resources_that_did_not_close_in_the_budget() -> None:
    async with World() as world:
        world.script("b", close=HANGS)
        await world.run(spec("a"), spec("b", "a"), spec("c"))
        closing = asyncio.ensure_future(world.graph.aclose(budget=3))
        await world.advance(2.999)
        assert not closing.done()
        await world.advance(0.001)
        assert closing.result() == [full_name("a"), full_name("b")]
        assert not world.running
        assert _other_tasks() == set()
        world.things.clear()


async def test_aclose_abandons_calls_that_ignore_cancellation() -> None:
    async with World() as world:
        world.script("a", STUCK, close=STUCK)
        world.script("b", close=STUCK)
        await world.run(spec("a"), spec("b"))
        closing = asyncio.ensure_future(world.graph.aclose(budget=3))
        await world.advance(5)
        assert closing.result() == [full_name("a"), full_name("b")]
        world.release.set()
        await world.clock.settle()
        assert _other_tasks() == set()
        world.things.clear()


async def test_aclose_closes_the_late_result_of_a_constructor() -> None:
    async with World() as world:
        world.script("a", stubborn(0.5))
        await world.run(spec("a"))
        closing = asyncio.ensure_future(world.graph.aclose())
        await world.advance(2)
        assert closing.result() == []
        assert world.history_of("built late", "closed") == [
            (0.5, "built late", "a"),
            (0.5, "closed", "a"),
        ]


async def test_aclose_ends_the_slow_close_of_a_late_result() -> None:
    async with World() as world:
        world.script("a", stubborn(0.5), close=HANGS)
        await world.run(spec("a"))
        closing = asyncio.ensure_future(world.graph.aclose(budget=5))
        await world.advance(7)
        assert closing.result() == [full_name("a")]
        assert not world.running
        assert _other_tasks() == set()


async def test_aclose_waits_within_its_budget_for_late_results() -> None:
    async with World() as world:
        world.script("a", stubborn(4))
        await world.run(spec("a"))
        closing = asyncio.ensure_future(world.graph.aclose(budget=20))
        await world.advance(5)
        assert closing.result() == []
        assert world.history_of("closed") == [(4, "closed", "a")]


async def test_abandoned_constructors_count_after_the_node_was_removed() -> None:
    async with World() as world:
        world.script("a", STUCK)
        for _ in range(12):
            await world.run(spec("a"))
            await world.run()
            await world.advance(2)
        assert len(world.times("build", "a")) == MAX_ABANDONED


async def test_lost_report_about_a_replaced_object_is_ignored() -> None:
    async with World() as world:
        await world.run(spec("a"))
        old = world.thing("a")
        world.lose("a", "the cable was pulled")
        await world.clock.settle()
        new = world.thing("a")
        world.graph.report_lost(full_name("a"), old, "the cable was pulled")
        await world.clock.settle()
        assert world.thing("a") is new


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (SystemExit(3), "it called sys.exit(3)"),
        (KeyError("fps"), "KeyError: 'fps'"),
        (ValueError("the camera has no such mode"), "the camera has no such mode"),
        (RuntimeError(), "RuntimeError"),
        (Unspeakable(), "Unspeakable (its message cannot be rendered)"),
    ],
)
async def test_constructor_failure_is_the_reason_of_the_node(
    error: BaseException, message: str
) -> None:
    class Builder:
        async def build(self, spec: Spec, dependencies: Dependencies) -> object:
            raise error

        async def reconfigure(
            self, resource: object, spec: Spec, dependencies: Dependencies
        ) -> None:
            raise NotImplementedError

        async def close(self, resource: object) -> None:
            raise NotImplementedError

    class StubProvider:
        def offer(self, spec: Spec) -> Offer:
            return Offer(Builder())

    providers = Providers({"shop": StubProvider()})
    graph = Reconciler(providers, ManualClock())
    try:
        outcome = await graph.apply([spec("a")])
        assert isinstance(outcome, Applied)
        node = graph.nodes[full_name("a")]
        assert node.state is NodeState.UNHEALTHY
        assert node.reason is not None
        assert node.reason.text == message
    finally:
        await graph.aclose()
    providers.notify_changed()


async def test_aclose_of_an_unused_graph_returns_nothing() -> None:
    async with World() as world:
        assert await world.graph.aclose() == []


async def test_aclose_is_idempotent_and_refuses_new_configurations() -> None:
    async with World() as world:
        await world.run(spec("a"))
        closing = [asyncio.ensure_future(world.graph.aclose()) for _ in range(2)]
        await world.clock.settle()
        assert [closed.result() for closed in closing] == [[], []]
        again = asyncio.ensure_future(world.graph.aclose())
        await world.clock.settle()
        assert again.result() == []
        with pytest.raises(RuntimeError, match="accepts no new configuration"):
            world.apply(spec("a"))


async def test_aclose_supersedes_the_running_configuration() -> None:
    async with World() as world:
        world.script("a", HANGS)
        applied = world.apply(spec("a"), revision="r1")
        await world.clock.settle()
        closing = asyncio.ensure_future(world.graph.aclose())
        await world.clock.settle()
        assert applied.result() == Superseded("r1")
        assert closing.result() == []
        assert not world.running


@pytest.mark.parametrize("turns", range(8))
async def test_configuration_applied_when_a_dependency_becomes_ready(turns: int) -> None:
    """The running plan must not use the settings of the next configuration."""
    async with World() as world:
        other = OtherProvider(world)
        world.providers.add("other", other)
        world.script("a", takes(1))
        await world.run(spec("a"), spec("b", "a"))
        is_ready = asyncio.Event()

        def notice(name: object, state: NodeState) -> None:
            if (name, state) == (full_name("a"), NodeState.READY):
                is_ready.set()

        world.on_state = notice
        advancing = asyncio.ensure_future(world.advance(1))
        await is_ready.wait()
        await run_others(turns)
        world.apply(spec("a"), spec("b", "a", family="other"))
        await advancing
        await world.clock.settle()
        assert world.state("b") is NodeState.READY
        assert other.built == 1


async def test_observer_may_apply_another_configuration() -> None:
    async with World() as world:
        world.script("b", takes(1))

        def add(name: object, state: NodeState) -> None:
            if (name, state) == (full_name("a"), NodeState.CONFIGURING):
                world.apply(spec("a"), spec("b"))

        world.on_state = add
        await world.run(spec("a"))
        assert (world.state("a"), world.state("b")) == (NodeState.READY, NodeState.CONFIGURING)
        assert world.states("b") == [(0, NodeState.CONFIGURING)]
        await world.advance(1)
        assert world.state("b") is NodeState.READY


async def test_each_state_change_is_reported_once() -> None:
    async with World() as world:
        world.script("a", takes(1))
        await world.run(spec("a"))
        await world.advance(1)
        await world.run()
        assert [event for _, event in world.events if isinstance(event, StateChanged)] == [
            StateChanged(full_name("a"), NodeState.UNCONFIGURED, NodeState.CONFIGURING, None),
            StateChanged(full_name("a"), NodeState.CONFIGURING, NodeState.READY, None),
            StateChanged(full_name("a"), NodeState.READY, NodeState.REMOVING, None),
        ]


def _other_tasks() -> set[asyncio.Task[object]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


class _GatedProvider:
    """A builder and provider whose resources all wait at the same gate."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.built = 0

    def offer(self, spec: Spec) -> Offer:
        del spec
        return Offer(self)

    async def build(self, spec: Spec, dependencies: Dependencies) -> object:
        del spec, dependencies
        self.built += 1
        await self.gate.wait()
        return object()

    async def reconfigure(self, resource: object, spec: Spec, dependencies: Dependencies) -> None:
        raise NotImplementedError

    async def close(self, resource: object) -> None:
        del resource


@pytest.mark.parametrize("turns", range(8))
async def test_resource_that_finishes_during_a_new_plan_is_not_built_twice(
    turns: int,
) -> None:
    gated = _GatedProvider()
    providers = Providers({"gated": gated})
    reconciler = Reconciler(providers, SystemClock())
    applied = reconciler.apply([spec("a")])
    await wait_until(lambda: gated.built, every=0)  # the test counts turns of the loop
    providers.notify_changed()
    await run_others(turns)
    gated.gate.set()
    await applied
    await run_others(20)
    assert gated.built == 1
    assert await reconciler.aclose() == []


async def test_reasons_and_events_contain_no_secret() -> None:
    async with World(redact=lambda text: text.replace("hunter-22", "***")) as world:
        world.script("a", fails("cannot log in with hunter-22"))
        world.apply(spec("a"), spec("b", "a"), spec("c", "b"))
        await world.advance(0)
        nodes = world.graph.nodes.values()
        assert all(node.reason is not None and "***" in node.reason.text for node in nodes)
        assert "hunter-22" not in str([node.reason for node in nodes])
        assert "hunter-22" not in str(world.events)


async def test_discovered_resources_come_and_go_without_the_configuration() -> None:
    async with World() as world:
        await world.run(spec("a", needs="far"))
        assert world.state("a") is NodeState.UNHEALTHY
        world.graph.set_discovered([spec("far")])
        await world.advance(0)
        assert (world.state("a"), world.state("far")) == (NodeState.READY, NodeState.READY)
        world.graph.set_discovered([])
        await world.advance(0)
        assert world.state("a") is NodeState.UNHEALTHY
        assert full_name("far") not in world.graph.nodes


async def test_configured_resource_takes_precedence_over_a_discovered_one() -> None:
    async with World() as world:
        world.graph.set_discovered([spec("a", settings=1)])
        await world.run(spec("a", settings=2))
        assert world.graph.nodes[full_name("a")].spec.settings == 2
        await world.run()
        assert world.graph.nodes[full_name("a")].spec.settings == 1
        assert world.state("a") is NodeState.READY

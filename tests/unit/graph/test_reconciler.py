"""The graph at work, on a clock that only moves when told: the times are exact."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest
from tests.unit.graph.world import (
    HANGS,
    OK,
    STUCK,
    Deed,
    World,
    fails,
    full,
    mutable,
    spec,
    stubborn,
    takes,
)

from cogwork.core.clock import ManualClock, SystemClock
from cogwork.graph.events import CallAbandoned, CallFailed, StateChanged
from cogwork.graph.name import Reference, ResourceName
from cogwork.graph.node import Activity, State
from cogwork.graph.plan import MAX_ABANDONED
from cogwork.graph.provider import Dependencies, Offer, Providers
from cogwork.graph.reconciler import Applied, Reconciler, Superseded
from cogwork.graph.spec import Spec


async def test_fifty_independent_resources_of_one_second_are_ready_after_one_second() -> None:
    async with World() as world:
        specs = [spec(f"n{number}") for number in range(50)]
        for item in specs:
            world.script(item.name.short, takes(1))
        applied = world.apply(*specs, revision="r1")
        await world.advance(0.999)
        assert not applied.done()
        await world.until(1)
        assert applied.result() == Applied("r1", 1.0, ready=50, unhealthy=0)
        assert set(world.times("built")) == {1.0}


async def test_three_groups_of_one_second_are_ready_after_one_two_and_three() -> None:
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
        await world.until(3)
        assert world.times("built", "a1", "a2") == [1, 1]
        assert world.times("built", "b1", "b2") == [2, 2]
        assert world.times("built", "c1", "c2") == [3, 3]
        assert applied.result() == Applied("", 3.0, 6, 0)
        assert world.thing("c1").holds == {
            full("b1"): world.thing("b1"),
            full("b2"): world.thing("b2"),
        }


async def test_each_is_built_as_soon_as_its_own_dependencies_are_there() -> None:
    async with World() as world:
        world.script("slow", takes(10))
        world.script("quick", takes(1))
        await world.run(
            spec("slow"), spec("quick"), spec("on_quick", "quick"), spec("on_slow", "slow")
        )
        await world.until(10)
        assert world.times("built", "on_quick") == [1]
        assert world.times("built", "on_slow") == [10]


async def test_one_that_hangs_delays_only_its_dependents_and_is_given_up_after_two_minutes() -> (
    None
):
    async with World() as world:
        world.script("stuck", HANGS)
        applied = world.apply(spec("stuck"), spec("on_stuck", "stuck"), spec("a"), spec("b", "a"))
        await world.clock.settle()
        assert [world.state(name) for name in ("a", "b")] == [State.READY, State.READY]
        await world.until(119.999)
        assert world.state("stuck") is State.CONFIGURING
        assert not applied.done()
        await world.until(120)
        assert world.slow("stuck") == [2.0, *range(5, 120, 5)]
        assert world.reason("stuck") == "building timed out after 2m0s"
        assert world.reason("on_stuck") == (
            'depends on "stuck", which is not ready: building timed out after 2m0s'
        )
        assert world.state("on_stuck") is State.UNHEALTHY
        assert applied.result() == Applied("", 120.0, ready=2, unhealthy=2)


async def test_closing_is_in_reverse_and_concurrent() -> None:
    async with World() as world:
        for name in ("a", "b", "c1", "c2", "other"):
            world.script(name, close=takes(1))
        await world.run(spec("a"), spec("b", "a"), spec("c1", "b"), spec("c2", "b"), spec("other"))
        closing = asyncio.ensure_future(world.graph.aclose())
        await world.advance(10)
        assert closing.result() == []
        assert {(at, name) for at, _, name in world.told("closed")} == {
            (1, "c1"),
            (1, "c2"),
            (1, "other"),
            (2, "b"),
            (3, "a"),
        }


async def test_an_equal_configuration_touches_nothing() -> None:
    async with World() as world:
        await world.run(spec("a"), spec("b", "a"))
        before = len(world.history)
        applied = world.apply(spec("a"), spec("b", "a"), revision="r2")
        await world.clock.settle()
        assert applied.result() == Applied("r2", 0.0, 2, 0)
        assert len(world.history) == before


async def test_only_what_holds_a_replaced_object_is_rebuilt() -> None:
    async with World() as world:
        await world.run(spec("a"), spec("b", "a"), spec("c", "b"), spec("d"), spec("e", "d"))
        a, b, c, d, e = (world.thing(name) for name in "abcde")
        await world.run(
            spec("a"), spec("b", "a", settings=1), spec("c", "b"), spec("d"), spec("e", "d")
        )
        assert [world.thing("a"), world.thing("d"), world.thing("e")] == [a, d, e]
        assert world.thing("b") is not b
        assert world.thing("c") is not c
        assert world.thing("c").holds == {full("b"): world.thing("b")}


async def test_a_change_in_place_keeps_the_object_and_its_dependents() -> None:
    async with World() as world:
        world.script("a", reconfigure=takes(3))
        await world.run(mutable("a"), spec("b", "a"))
        a, b = world.thing("a"), world.thing("b")
        await world.run(mutable("a", settings=1), spec("b", "a"))
        assert world.state("a") is State.CONFIGURING
        await world.advance(3)
        assert world.thing("a") is a
        assert a.settings == 1
        assert world.thing("b") is b
        assert world.state("a") is State.READY


@pytest.mark.parametrize("deed", [fails("not like this"), HANGS, stubborn(0.0), stubborn(5.0)])
async def test_a_change_in_place_that_fails_is_a_rebuild_with_dependents(deed: Deed) -> None:
    async with World() as world:
        world.script("a", reconfigure=deed)
        await world.run(mutable("a"), spec("b", "a"))
        a, b = world.thing("a"), world.thing("b")
        await world.run(mutable("a", settings=1), spec("b", "a"))
        await world.advance(130)
        assert world.thing("a") is not a
        assert world.thing("a").settings == 1
        assert world.thing("b") is not b
        assert world.thing("b").holds == {full("a"): world.thing("a")}
        assert len(world.times("reconfigure")) == 1
        assert any(
            isinstance(event, CallFailed) and event.activity is Activity.RECONFIGURING
            for _, event in world.events
        )


async def test_a_change_that_was_given_up_but_ends_well_does_not_make_the_object_right() -> None:
    """It went over to the new settings after the old ones were wanted again."""
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


async def test_a_change_in_place_whose_other_dependency_fails_closes_the_object() -> None:
    async with World() as world:
        world.script("root", fails())
        await world.run(mutable("a"), spec("b", "a"))
        await world.run(
            mutable("a", "x"), spec("b", "a"), spec("c", "a"), spec("x", "root"), spec("root")
        )
        assert world.times("build", "c") == []
        assert [world.state(name) for name in ("a", "b", "x")] == [State.UNHEALTHY] * 3
        assert world.reason("b") == 'depends on "a", which waits for "root": no such device'
        assert world.things == []
        world.script("root")
        await world.advance(30)
        assert [world.state(name) for name in ("a", "b", "x")] == [State.READY] * 3


async def test_a_change_under_way_goes_on_when_another_configuration_wants_the_same() -> None:
    async with World() as world:
        world.script("a", reconfigure=takes(10))
        await world.run(mutable("a"))
        await world.run(mutable("a", settings=1))
        await world.advance(5)
        await world.run(mutable("a", settings=1), spec("b"))
        await world.advance(5)
        assert world.times("reconfigure", "a") == [0]
        assert world.state("a") is State.READY


async def test_a_constructor_that_ends_before_its_dependency_is_changed_is_not_run_again() -> None:
    async with World() as world:
        world.script("a", reconfigure=takes(10))
        world.script("b", takes(5))
        await world.run(mutable("a"), spec("b", "a"))
        await world.advance(1)
        await world.run(mutable("a", settings=1), spec("b", "a"))
        await world.advance(20)
        assert world.times("build", "b") == [0]
        assert len(world.things) == 2


async def test_superseding_keeps_constructors_whose_inputs_are_the_same() -> None:
    async with World() as world:
        world.script("same", takes(10))
        world.script("changed", takes(10))
        world.script("gone", takes(10))
        first = world.apply(spec("same"), spec("changed"), spec("gone"), revision="r1")
        await world.advance(4)
        second = world.apply(spec("same"), spec("changed", settings=1), revision="r2")
        await world.clock.settle()
        assert first.result() == Superseded("r1")
        assert list(world.graph.nodes) == [full("same"), full("changed")]
        await world.until(10)
        assert world.state("same") is State.READY
        assert not second.done()
        await world.until(14)
        assert second.result() == Applied("r2", 10.0, 2, 0)
        assert world.times("build", "same") == [0]
        assert world.times("build", "changed") == [0, 4]
        assert world.thing("changed").settings == 1


async def test_a_constructor_is_abandoned_when_what_it_was_given_is_replaced() -> None:
    async with World() as world:
        world.script("b", takes(10))
        await world.run(spec("a"), spec("b", "a"))
        await world.advance(5)
        await world.run(spec("a", settings=1), spec("b", "a"))
        await world.advance(10)
        assert world.times("build", "b") == [0, 5]
        assert world.thing("b").holds == {full("a"): world.thing("a")}


async def test_a_late_result_is_closed_once() -> None:
    async with World() as world:
        world.script("a", [stubborn(30), OK])
        await world.run(spec("a"))
        await world.advance(1)
        await world.run(spec("a", settings=1))
        await world.until(1.999)
        assert world.times("build", "a") == [0]
        await world.until(2)
        assert world.times("build", "a") == [0, 2]
        assert world.state("a") is State.READY
        assert [event for _, event in world.events if isinstance(event, CallAbandoned)] == [
            CallAbandoned(full("a"), Activity.BUILDING)
        ]
        a = world.thing("a")
        await world.until(31)
        assert world.told("built late", "closed") == [(31, "built late", "a"), (31, "closed", "a")]
        assert world.thing("a") is a


async def test_the_next_constructor_waits_until_a_late_object_is_closed() -> None:
    """The late object holds the device until its close has returned."""
    async with World() as world:
        world.script("a", [stubborn(0.2), OK], close=takes(0.3))
        await world.run(spec("a"))
        await world.run(spec("a", settings=1))
        await world.advance(5)
        assert world.told("build", "closed")[:3] == [
            (0, "build", "a"),
            (0.5, "closed", "a"),
            (0.5, "build", "a"),
        ]


async def test_the_next_constructor_waits_for_the_one_of_the_removed_resource() -> None:
    async with World() as world:
        world.script("a", [stubborn(0.5), OK])
        await world.run(spec("a"))
        await world.run()
        await world.run(spec("a"))
        await world.advance(2)
        assert world.times("built late", "a") == [0.5]
        assert world.times("build", "a") == [0, 0.5]


async def test_a_failure_is_retried_with_growing_pauses() -> None:
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
        assert world.state("a") is State.READY
        assert world.states("a").count((world.states("a")[-1][0], State.READY)) == 1


async def test_changed_attributes_are_tried_at_once() -> None:
    async with World() as world:
        world.script("a", fails())
        await world.run(spec("a"))
        await world.advance(100)
        world.script("a")
        await world.run(spec("a", settings=1))
        assert world.state("a") is State.READY


async def test_a_replaced_dependency_ends_the_pause() -> None:
    async with World() as world:
        world.script("b", fails())
        await world.run(spec("a"), spec("b", "a"))
        await world.advance(100)
        world.script("b")
        before = len(world.times("build", "b"))
        await world.run(spec("a", settings=1), spec("b", "a"))
        assert world.state("b") is State.READY
        assert len(world.times("build", "b")) == before + 1


async def test_a_provider_that_was_replaced_by_another_ends_the_pause() -> None:
    async with World() as world:
        world.script("a", fails())
        await world.run(spec("a"))
        await world.advance(100)
        other = Other(world)
        world.providers.add("acme", other)
        await world.clock.settle()
        assert world.state("a") is State.READY
        assert other.built == 1


async def test_a_provider_that_was_replaced_in_mid_construction() -> None:
    async with World() as world:
        world.script("a", takes(10))
        await world.run(spec("a"))
        other = Other(world)
        world.providers.add("acme", other)
        await world.advance(10)
        assert world.state("a") is State.READY
        assert other.built == 1


class Other:
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


async def test_a_dependent_recovers_with_its_dependency() -> None:
    async with World() as world:
        world.script("a", [fails(), OK])
        await world.run(spec("a"), spec("b", "a"), spec("c", "b"))
        assert world.reason("b") == 'depends on "a", which is not ready: no such device'
        assert world.reason("c") == 'depends on "b", which waits for "a": no such device'
        await world.advance(1)
        assert [world.state(name) for name in "abc"] == [State.READY] * 3


async def test_a_provider_leaves_and_returns() -> None:
    async with World("other") as world:
        await world.run(spec("a", family="other"), spec("b", "a"), spec("c"))
        a, c = world.thing("a"), world.thing("c")
        world.suppliers["other"].leave()
        await world.clock.settle()
        assert world.reason("a") == 'module "other" is not running'
        assert world.reason("b") == (
            'depends on "a", which is not ready: module "other" is not running'
        )
        assert world.told("close") == [(0, "close", "b"), (0, "close", "a")]
        assert world.thing("c") is c
        world.suppliers["other"].come_back()
        await world.clock.settle()
        assert world.state("b") is State.READY
        assert world.thing("a") is not a
        assert world.thing("b").holds == {full("a"): world.thing("a")}


async def test_a_model_nobody_provides() -> None:
    async with World() as world:
        await world.run(spec("a", family="nobody"))
        assert world.reason("a") == (
            'unknown model "test:nobody:plain" for rdk:component:sensor: '
            "check the spelling, or add the module that provides it"
        )


async def test_dependents_of_a_removed_resource_stay_and_come_back() -> None:
    async with World() as world:
        await world.run(spec("x"), spec("a", "x"), spec("b", "a"))
        await world.run(spec("a", "x"), spec("b", "a"))
        assert list(world.graph.nodes) == [full("a"), full("b")]
        assert world.state("a") is State.UNHEALTHY
        assert world.reason("a") == 'depends on "x", which is not configured'
        assert world.reason("b") == (
            'depends on "a", which is not ready: depends on "x", which is not configured'
        )
        assert world.told("close") == [(0, "close", "b"), (0, "close", "a"), (0, "close", "x")]
        await world.run(spec("a", "x"), spec("b", "a"), spec("x"))
        assert [world.state(name) for name in "xab"] == [State.READY] * 3


async def test_a_fault_in_the_configuration_and_its_repair() -> None:
    async with World() as world:
        await world.run(spec("a"), spec("b", "a"))
        await world.run(spec("a", fault='"pin" must be a number'), spec("b", "a"))
        assert world.reason("a") == '"pin" must be a number'
        assert world.state("b") is State.UNHEALTHY
        await world.run(spec("a"), spec("b", "a"))
        assert world.state("b") is State.READY


async def test_a_circle_and_what_depends_on_it() -> None:
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
        assert world.state("top") is State.READY


async def test_an_optional_dependency_is_given_when_it_is_there() -> None:
    async with World() as world:
        world.script("w", takes(1.5))
        await world.run(spec("a", wants="w"), spec("w"))
        await world.until(1.5)
        assert world.times("build", "a") == [1.5]
        assert world.thing("a").holds == {full("w"): world.thing("w")}


@pytest.mark.parametrize("kind", ["plain", "mutable"])
async def test_an_optional_dependency_that_is_slow_is_not_waited_for(kind: str) -> None:
    async with World() as world:
        world.script("w", takes(10))
        await world.run(spec("a", wants="w", kind=kind), spec("w"))
        await world.until(9)
        assert world.times("built", "a") == [2]
        a = world.thing("a")
        await world.until(10)
        assert world.thing("a").holds == {full("w"): world.thing("w")}
        assert world.thing("a") is not a  # no object may hold a younger one


async def test_an_older_dependency_is_taken_over_in_place() -> None:
    async with World() as world:
        await world.run(spec("old"), spec("older"), mutable("a"))
        a = world.thing("a")
        await world.run(spec("old"), spec("older"), mutable("a", "old", wants="older"))
        assert world.thing("a") is a
        assert a.holds == {full(name): world.thing(name) for name in ("old", "older")}


async def test_other_peoples_retries_do_not_prolong_the_wait_for_an_optional_one() -> None:
    async with World() as world:
        world.script("w", takes(60))
        world.script("broken", fails())
        await world.run(spec("a", wants="w"), spec("w"), spec("broken"))
        await world.until(20)
        assert world.times("build", "a") == [2]


@pytest.mark.parametrize("kind", ["plain", "mutable"])
async def test_an_optional_dependency_that_is_about_to_be_closed_is_not_given(kind: str) -> None:
    async with World() as world:
        world.script("holder", close=[takes(20), OK])
        await world.run(spec("w"), spec("holder", "w"), spec("b", kind=kind))
        both = spec("a", wants="w", kind=kind), spec("b", wants="w", kind=kind)
        await world.run(spec("w", settings=1), spec("holder", "w"), *both)
        await world.until(19)
        assert world.times("build", "a") == [2]
        assert world.times("build", "b") == [0]
        await world.until(30)
        assert world.thing("a").holds == {full("w"): world.thing("w")}
        assert world.thing("b").holds == {full("w"): world.thing("w")}


async def test_each_attempt_has_its_own_patience() -> None:
    async with World() as world:
        world.script("w", takes(60))
        await world.run(spec("a", wants="w"), spec("w"))
        await world.until(10)
        await world.run(spec("a", wants="w", settings=1), spec("w"))
        await world.until(20)
        assert world.times("build", "a") == [2, 12]


async def test_other_peoples_retries_do_not_prolong_the_grace() -> None:
    async with World() as world:
        world.script("a", [STUCK, OK])
        for number in range(20):
            world.script(f"broken{number}", fails(after=0.05))
        broken = [spec(f"broken{number}") for number in range(20)]
        await world.run(spec("a"), *broken)
        await world.run(spec("a", settings=1), *broken)
        await world.advance(10)
        assert world.times("build", "a") == [0, 1]


async def test_an_optional_dependency_that_fails_or_goes_is_done_without() -> None:
    async with World() as world:
        world.script("w", [fails(), OK])
        await world.run(spec("a", wants="w"), spec("w"))
        assert world.state("a") is State.READY
        assert world.thing("a").holds == {}
        await world.advance(1)
        assert world.thing("a").holds == {full("w"): world.thing("w")}
        await world.run(spec("a", wants="w"))
        assert world.state("a") is State.READY
        assert world.thing("a").holds == {}


async def test_optional_dependencies_in_a_circle_are_left_out() -> None:
    async with World() as world:
        await world.run(spec("a", wants="b"), spec("b", "a"))
        assert [world.state(name) for name in "ab"] == [State.READY] * 2
        assert world.thing("a").holds == {}
        assert world.thing("b").holds == {full("a"): world.thing("a")}


async def test_a_constructor_that_was_given_what_is_to_depend_on_it() -> None:
    """The want is dropped while the constructor runs: two that hold each other cannot be closed."""
    async with World() as world:
        world.script("x", [takes(10), OK])
        await world.run(spec("x", wants="w"), mutable("w"))
        await world.advance(5)
        await world.run(spec("x", wants="w"), mutable("w", "x"))
        await world.advance(20)
        assert world.thing("x").holds == {}
        assert world.thing("w").holds == {full("x"): world.thing("x")}


@pytest.mark.parametrize("deed", [takes(30), fails(after=1), fails(after=30)])
async def test_two_that_swap_who_depends_on_whom_never_hold_each_other(deed: Deed) -> None:
    """The one that is to let go first waits for a third."""
    async with World() as world:
        world.script("c", deed)
        await world.run(mutable("a"), mutable("b", "a"))
        await world.run(mutable("a", wants="b"), mutable("b", "c"), spec("c"))
        await world.advance(20)
        await world.run(mutable("a", wants="b"), mutable("b", "c"), spec("c"), spec("d"))
        await world.advance(100)
        assert world.state("a") is State.READY
        if deed.error:
            assert world.state("b") is State.UNHEALTHY
            assert world.thing("a").holds == {}
            assert len(world.things) == 2
        else:
            assert world.thing("a").holds == {full("b"): world.thing("b")}


@pytest.mark.parametrize("deed", [takes(30), fails(after=1), fails(after=30)])
@pytest.mark.parametrize("between", [spec("m", "a"), mutable("m", "a")])
async def test_nor_do_they_through_a_third_that_is_left_alone(deed: Deed, between: Spec) -> None:
    async with World() as world:
        world.script("c", deed)
        await world.run(mutable("a", "b"), mutable("b"), between)
        await world.run(mutable("a", "c"), mutable("b", "m"), between, spec("c"))
        world.lose("b", "the cable was pulled")
        await world.advance(40)
        world.lose("m", "the cable was pulled")
        await world.advance(40)
        if deed.error:
            assert {world.state(name) for name in "abcm"} == {State.UNHEALTHY}
            assert world.things == []
        else:
            assert {world.state(name) for name in "abcm"} == {State.READY}
            assert world.thing("b").holds == {full("m"): world.thing("m")}


async def test_a_change_in_place_that_was_given_what_is_to_depend_on_it() -> None:
    async with World() as world:
        world.script("x", reconfigure=takes(10))
        await world.run(mutable("x"), mutable("w"))
        await world.run(mutable("x", wants="w"), mutable("w"))
        await world.advance(5)
        await world.run(mutable("x", wants="w"), mutable("w", "x"))
        await world.advance(20)
        assert world.thing("x").holds == {}
        assert world.thing("w").holds == {full("x"): world.thing("x")}


async def test_what_is_lost_is_rebuilt_with_its_dependents_only() -> None:
    async with World() as world:
        await world.run(spec("a"), spec("b", "a"), spec("c"))
        a, b, c = (world.thing(name) for name in "abc")
        world.lose("a", "the cable was pulled")
        world.lose("nobody", "whatever")
        await world.clock.settle()
        assert world.thing("a") is not a
        assert world.thing("b") is not b
        assert world.thing("c") is c
        assert world.state("b") is State.READY


async def test_one_that_is_lost_again_and_again_is_given_a_pause() -> None:
    async with World() as world:
        await world.run(spec("a"), spec("b", "a"))
        for _ in range(20):
            world.lose("a", "the cable is loose")
            await world.advance(1)
        assert 2 <= len(world.times("built", "a")) <= 8
        assert world.state("a") is State.UNHEALTHY
        assert world.reason("a") == "the cable is loose"
        assert world.reason("b") == 'depends on "a", which is not ready: the cable is loose'
        await world.advance(60)
        assert world.state("b") is State.READY
        a = world.thing("a")
        world.lose("a", "once in a while")
        await world.clock.settle()
        assert world.thing("a") is not a
        assert world.state("b") is State.READY


async def test_an_observer_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with World() as world:

        def trip(name: ResourceName, state: State) -> None:
            raise ValueError(name, state)

        world.on_state = trip
        await world.run(spec("a"), spec("b", "a"))
        assert world.state("b") is State.READY
    assert "an observer of the resource graph failed" in caplog.text


async def test_a_node_whose_obstacle_went_away_does_not_go_on_naming_it() -> None:
    async with World() as world:
        world.script("x", takes(1))
        await world.run(spec("a", "x"))
        assert world.reason("a") == 'depends on "x", which is not configured'
        await world.run(spec("a", "x"), spec("x"))
        assert world.state("a") is State.CONFIGURING
        await world.advance(1)
        assert world.state("a") is State.READY


async def test_one_that_is_lost_while_it_is_changed_is_rebuilt() -> None:
    async with World() as world:
        world.script("a", reconfigure=takes(1))
        await world.run(mutable("a"))
        a = world.thing("a")
        await world.run(mutable("a", settings=1))
        world.lose("a", "the cable was pulled")
        await world.advance(5)
        assert world.thing("a") is not a
        assert world.state("a") is State.READY


async def test_one_that_is_given_by_the_provider_s_own_knowledge() -> None:
    async with World() as world:
        world.suppliers["acme"].needs["b"] = (Reference("a"),)
        world.script("a", takes(1))
        await world.run(spec("b"), spec("a"))
        await world.advance(1)
        assert world.thing("b").holds == {full("a"): world.thing("a")}


async def test_the_provider_asks_for_less_while_the_constructor_runs() -> None:
    async with World() as world:
        world.suppliers["acme"].needs["b"] = (Reference("a"),)
        world.script("b", takes(1))
        await world.run(spec("b"), spec("a"))
        world.suppliers["acme"].needs.clear()
        world.providers.notify_changed()
        await world.advance(5)
        assert world.state("b") is State.READY
        assert world.thing("b").holds == {}


async def test_a_close_that_fails_is_told_and_done() -> None:
    async with World() as world:
        world.script("a", close=fails("stuck valve"))
        await world.run(spec("a"))
        await world.run(spec("a", settings=1))
        assert world.state("a") is State.READY
        assert (0, CallFailed(full("a"), Activity.CLOSING, "stuck valve")) in world.events


@pytest.mark.parametrize("deed", [HANGS, STUCK])
async def test_a_close_that_hangs_is_given_up_after_thirty_seconds(deed: Deed) -> None:
    async with World() as world:
        world.script("a", close=deed)
        await world.run(spec("a"), spec("b", "a"))
        await world.run(spec("a", settings=1), spec("b", "a"))
        await world.until(29.999)
        assert world.times("build", "a") == [0]
        await world.until(31)
        assert world.times("build", "a") == [0, 30 if deed is HANGS else 31]
        assert world.state("b") is State.READY
        assert world.slow("a") == [2, 5, 10, 15, 20, 25]


async def test_a_dependency_is_not_closed_before_its_holder_even_if_plans_change() -> None:
    async with World() as world:
        world.script("b", close=takes(5))
        await world.run(spec("a"), spec("b", "a"))
        await world.run(spec("a"), spec("b", "a", settings=1))
        await world.advance(1)
        await world.run(spec("b"))
        await world.advance(10)
        assert world.told("closed") == [(5, "closed", "b"), (5, "closed", "a")]


async def test_a_dependency_given_by_an_unfinished_change_outlives_the_object() -> None:
    async with World() as world:
        world.script("a", reconfigure=HANGS, close=takes(5))
        await world.run(spec("b"), mutable("a"))
        await world.run(spec("b"), mutable("a", "b"))
        await world.run(mutable("a"))
        await world.advance(10)
        assert world.told("closed") == [(5, "closed", "a"), (5, "closed", "b")]


async def test_an_object_is_not_closed_while_an_abandoned_change_winds_up() -> None:
    async with World() as world:
        world.script("a", reconfigure=stubborn(0.5))
        await world.run(mutable("a"))
        await world.run(mutable("a", settings=1))
        await world.run()
        await world.advance(1)
        assert world.told("reconfigured", "close") == [
            (0.5, "reconfigured", "a"),
            (0.5, "close", "a"),
        ]


Undo = Callable[[World], None]


def remove(world: World) -> None:
    world.apply(spec("b", "a"))


def change(world: World) -> None:
    world.apply(spec("a", settings=1), spec("b", "a"))


def break_it(world: World) -> None:
    world.apply(spec("a", fault="wrong"), spec("b", "a"))


@pytest.mark.parametrize("edit", [remove, change, break_it])
async def test_an_edit_taken_back_before_it_was_carried_out_leaves_the_object(edit: Undo) -> None:
    async with World() as world:
        world.script("b", close=takes(5))
        await world.run(spec("a"), spec("b", "a"))
        a = world.thing("a")
        edit(world)
        await world.advance(1)
        await world.run(spec("a"), spec("b", "a"))
        await world.advance(10)
        assert world.thing("a") is a
        assert world.state("a") is State.READY
        assert world.reason("a") is None
        assert world.state("b") is State.READY


async def test_of_two_with_one_name_the_first_counts() -> None:
    async with World() as world:
        await world.run(spec("a", settings=1), spec("a", settings=2))
        await world.advance(5)
        assert world.thing("a").settings == 1
        assert world.times("build", "a") == [0]


async def test_removed_and_wanted_again_in_one_breath_is_kept() -> None:
    async with World() as world:
        await world.run(spec("a"))
        a = world.thing("a")
        world.apply()
        await world.run(spec("a"))
        assert world.thing("a") is a


async def test_nodes_carry_the_revision_that_was_applied() -> None:
    async with World() as world:
        world.script("slow", [takes(10)])
        world.script("broken", fails())
        await world.run(spec("a"), spec("slow"), spec("broken"), revision="r1")
        await world.advance(5)
        assert world.graph.revision == ""
        assert world.node("a").revision == ""
        await world.until(10)
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


async def test_a_configuration_is_applied_although_others_are_always_being_retried() -> None:
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


async def test_four_constructors_that_never_return_are_enough() -> None:
    async with World() as world:
        world.script("a", STUCK)
        await world.run(spec("a"))
        await world.advance(2000)
        assert len(world.times("build", "a")) == 4
        assert world.reason("a") == (
            "4 earlier attempts to build it have not returned yet; restart the server to end them"
        )


async def test_a_constructor_under_way_is_not_given_up_for_those_that_never_return() -> None:
    async with World() as world:
        world.script("a", [STUCK, STUCK, STUCK, STUCK, takes(10)])
        for settings in range(5):
            await world.run(spec("a", settings=settings))
            await world.advance(2)
        await world.run(spec("a", settings=4), spec("b"))
        await world.advance(10)
        assert world.state("a") is State.READY


async def test_aclose_returns_what_did_not_close_within_the_budget() -> None:
    async with World() as world:
        world.script("b", close=HANGS)
        await world.run(spec("a"), spec("b", "a"), spec("c"))
        closing = asyncio.ensure_future(world.graph.aclose(budget=3))
        await world.advance(2.999)
        assert not closing.done()
        await world.advance(0.001)
        assert closing.result() == [full("a"), full("b")]
        assert not world.running
        assert _tasks() == set()
        world.things.clear()


async def test_aclose_gives_up_what_swallows_its_cancellation() -> None:
    async with World() as world:
        world.script("a", STUCK, close=STUCK)
        world.script("b", close=STUCK)
        await world.run(spec("a"), spec("b"))
        closing = asyncio.ensure_future(world.graph.aclose(budget=3))
        await world.advance(5)
        assert closing.result() == [full("a"), full("b")]
        world.let_go.set()
        await world.clock.settle()
        assert _tasks() == set()
        world.things.clear()


async def test_aclose_closes_a_late_result() -> None:
    async with World() as world:
        world.script("a", stubborn(0.5))
        await world.run(spec("a"))
        closing = asyncio.ensure_future(world.graph.aclose())
        await world.advance(2)
        assert closing.result() == []
        assert world.told("built late", "closed") == [
            (0.5, "built late", "a"),
            (0.5, "closed", "a"),
        ]


async def test_aclose_ends_the_slow_close_of_a_late_result() -> None:
    async with World() as world:
        world.script("a", stubborn(0.5), close=HANGS)
        await world.run(spec("a"))
        closing = asyncio.ensure_future(world.graph.aclose(budget=5))
        await world.advance(7)
        assert closing.result() == [full("a")]
        assert not world.running
        assert _tasks() == set()


async def test_aclose_uses_its_budget_to_close_what_arrives_late() -> None:
    async with World() as world:
        world.script("a", stubborn(4))
        await world.run(spec("a"))
        closing = asyncio.ensure_future(world.graph.aclose(budget=20))
        await world.advance(5)
        assert closing.result() == []
        assert world.told("closed") == [(4, "closed", "a")]


async def test_abandoned_constructors_count_also_after_the_node_was_removed() -> None:
    async with World() as world:
        world.script("a", STUCK)
        for _ in range(12):
            await world.run(spec("a"))
            await world.run()
            await world.advance(2)
        assert len(world.times("build", "a")) == MAX_ABANDONED


async def test_a_late_word_about_a_replaced_object_changes_nothing() -> None:
    async with World() as world:
        await world.run(spec("a"))
        old = world.thing("a")
        world.lose("a", "the cable was pulled")
        await world.clock.settle()
        new = world.thing("a")
        world.graph.report_lost(full("a"), old, "the cable was pulled")
        await world.clock.settle()
        assert world.thing("a") is new


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SystemExit(3), "it called sys.exit(3)"),
        (KeyError("fps"), "KeyError: 'fps'"),
        (ValueError("the camera has no such mode"), "the camera has no such mode"),
        (RuntimeError(), "RuntimeError"),
        (Unspeakable(), "Unspeakable (its message cannot be rendered)"),
    ],
)
async def test_however_a_constructor_fails_the_node_says_so(
    error: BaseException, said: str
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

    class Shop:
        def offer(self, spec: Spec) -> Offer:
            return Offer(Builder())

    providers = Providers({"shop": Shop()})
    graph = Reconciler(providers, ManualClock())
    try:
        outcome = await graph.apply([spec("a")])
        assert isinstance(outcome, Applied)
        node = graph.nodes[full("a")]
        assert node.state is State.UNHEALTHY
        assert node.reason is not None
        assert node.reason.text == said
    finally:
        await graph.aclose()
    providers.notify_changed()


async def test_aclose_of_a_graph_that_never_ran() -> None:
    async with World() as world:
        assert await world.graph.aclose() == []


async def test_aclose_twice_closes_once_and_does_not_wait() -> None:
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


async def test_aclose_supersedes_what_is_being_applied() -> None:
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
async def test_a_configuration_that_comes_just_as_a_dependency_gets_ready(turns: int) -> None:
    """The pass under way must not mix its own plan with the settings of the next one."""
    async with World() as world:
        other = Other(world)
        world.providers.add("other", other)
        world.script("a", takes(1))
        await world.run(spec("a"), spec("b", "a"))
        advancing = asyncio.ensure_future(world.advance(1))
        for _ in range(100):
            if world.state("a") is State.READY:
                break
            await asyncio.sleep(0)
        for _ in range(turns):
            await asyncio.sleep(0)
        world.apply(spec("a"), spec("b", "a", family="other"))
        await advancing
        await world.clock.settle()
        assert world.state("b") is State.READY
        assert other.built == 1


async def test_an_observer_may_apply_another_configuration() -> None:
    async with World() as world:
        world.script("b", takes(1))

        def add(name: object, state: State) -> None:
            if (name, state) == (full("a"), State.CONFIGURING):
                world.apply(spec("a"), spec("b"))

        world.on_state = add
        await world.run(spec("a"))
        assert (world.state("a"), world.state("b")) == (State.READY, State.CONFIGURING)
        assert world.states("b") == [(0, State.CONFIGURING)]
        await world.advance(1)
        assert world.state("b") is State.READY


async def test_states_are_told_once_each() -> None:
    async with World() as world:
        world.script("a", takes(1))
        await world.run(spec("a"))
        await world.advance(1)
        await world.run()
        assert [event for _, event in world.events if isinstance(event, StateChanged)] == [
            StateChanged(full("a"), State.UNCONFIGURED, State.CONFIGURING, None),
            StateChanged(full("a"), State.CONFIGURING, State.READY, None),
            StateChanged(full("a"), State.READY, State.REMOVING, None),
        ]


def _tasks() -> set[asyncio.Task[object]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


class _Gated:
    """Builder and provider in one: every resource waits at the same gate."""

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
async def test_one_that_returns_just_when_another_plan_is_made_is_not_built_twice(
    turns: int,
) -> None:
    gated = _Gated()
    providers = Providers({"gated": gated})
    reconciler = Reconciler(providers, SystemClock())
    applied = reconciler.apply([spec("a")])
    async with asyncio.timeout(5):
        while not gated.built:  # noqa: ASYNC110 - turn by turn is what it is about
            await asyncio.sleep(0)
    providers.notify_changed()
    for _ in range(turns):
        await asyncio.sleep(0)
    gated.gate.set()
    await applied
    for _ in range(20):
        await asyncio.sleep(0)
    assert gated.built == 1
    assert await reconciler.aclose() == []


async def test_no_reason_and_no_event_quotes_a_secret() -> None:
    async with World(redact=lambda text: text.replace("hunter-22", "***")) as world:
        world.script("a", fails("cannot log in with hunter-22"))
        world.apply(spec("a"), spec("b", "a"), spec("c", "b"))
        await world.advance(0)
        nodes = world.graph.nodes.values()
        assert all(node.reason is not None and "***" in node.reason.text for node in nodes)
        assert "hunter-22" not in str([node.reason for node in nodes])
        assert "hunter-22" not in str(world.events)

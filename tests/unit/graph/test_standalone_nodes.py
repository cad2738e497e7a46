"""Discovered resources that are connected to no others, on a manual clock."""

import asyncio
from dataclasses import dataclass

import pytest
from tests.support.waiting import run_others
from tests.unit.graph.world import World, fails, full_name, spec, takes

from cogwork.graph.node import NodeState
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.spec import Spec
from cogwork.graph.standalone_nodes import SLICE

MANY = 200


@dataclass
class CountingProvider:
    """Answers for nothing, and counts how often it was asked about one resource."""

    short: str
    count: int = 0

    def offer(self, asked: Spec) -> Offer | Unavailable | None:
        self.count += asked.name.short == self.short
        return None


def far(number: int, settings: object = 0) -> Spec:
    return spec(f"far:s{number}", settings=settings)


async def test_they_are_built_a_few_at_a_time() -> None:
    async with World() as world:
        await world.run(spec("local"))
        world.graph.set_discovered(map(far, range(MANY)))
        at_once, before = 0, len(world.graph.nodes)
        async with asyncio.timeout(10):
            while before <= MANY:
                await run_others()
                at_once = max(at_once, len(world.graph.nodes) - before)
                before = len(world.graph.nodes)
        await world.advance(0)
        assert at_once <= SLICE
        assert {node.state for node in world.graph.nodes.values()} == {NodeState.READY}


async def test_their_changes_do_not_plan_other_resources() -> None:
    async with World() as world:
        counting = CountingProvider("local")
        world.providers.remove("acme")
        world.providers.add("counting", counting)
        world.providers.add("acme", world.suppliers["acme"])
        await world.run(spec("local"))
        plans = counting.count
        for first in range(5):
            world.graph.set_discovered(map(far, range(first, first + 10)))
            await world.advance(1)
        assert {name.name for name in world.graph.nodes} == {
            "local",
            *(f"s{number}" for number in range(4, 14)),
        }
        assert counting.count == plans


async def test_change_of_one_leaves_the_others_alone() -> None:
    async with World() as world:
        world.graph.set_discovered(map(far, range(20)))
        await world.advance(1)
        before = {name: world.thing(name.short) for name in world.graph.nodes}
        world.graph.set_discovered([far(number, settings=number == 3) for number in range(20)])
        await world.advance(1)
        changed = [name for name, thing in before.items() if world.thing(name.short) is not thing]
        assert changed == [full_name("far:s3")]


async def test_slow_close_does_not_delay_the_others() -> None:
    async with World() as world:
        world.script("far:s0", close=takes(20))
        world.graph.set_discovered(map(far, range(MANY)))
        await world.advance(1)
        world.graph.set_discovered([])
        await world.advance(1)
        assert [name.name for name in world.graph.nodes] == ["s0"]
        await world.advance(20)
        assert not world.graph.nodes


async def test_one_that_returns_while_it_is_closed_is_built_again() -> None:
    async with World() as world:
        world.script("far:s0", close=takes(5))
        world.graph.set_discovered([far(0)])
        await world.advance(1)
        world.graph.set_discovered([])
        await world.advance(1)
        world.graph.set_discovered([far(0)])
        await world.advance(5)
        assert world.state("far:s0") is NodeState.READY
        assert len(world.times("built", "far:s0")) == 2


async def test_failed_one_is_built_again_later() -> None:
    async with World() as world:
        world.script("far:s0", [fails(), fails(), takes(0)])
        world.graph.set_discovered([far(0), far(1)])
        await world.advance(0)
        assert (world.state("far:s0"), world.state("far:s1")) == (
            NodeState.UNHEALTHY,
            NodeState.READY,
        )
        await world.advance(5)
        assert world.state("far:s0") is NodeState.READY


async def test_lost_one_is_rebuilt() -> None:
    async with World() as world:
        world.graph.set_discovered([far(0)])
        await world.advance(1)
        before = world.thing("far:s0")
        world.lose("far:s0", "the cable was pulled")
        await world.advance(1)
        assert world.thing("far:s0") is not before


async def test_all_follow_their_provider() -> None:
    async with World() as world:
        world.graph.set_discovered(map(far, range(20)))
        await world.advance(1)
        world.suppliers["acme"].leave()
        await world.advance(1)
        assert {node.state for node in world.graph.nodes.values()} == {NodeState.UNHEALTHY}
        world.suppliers["acme"].come_back()
        await world.advance(1)
        assert {node.state for node in world.graph.nodes.values()} == {NodeState.READY}


async def test_reference_from_the_configuration_keeps_the_object() -> None:
    async with World() as world:
        world.graph.set_discovered([far(0), far(1)])
        await world.advance(1)
        before = world.thing("far:s0")
        await world.run(spec("user", needs="far:s0"))
        assert world.state("user") is NodeState.READY
        await world.run()
        await world.advance(1)
        assert world.thing("far:s0") is before


@pytest.mark.parametrize("is_configured", [True, False])
async def test_names_like_those_of_dependencies_stay_apart(*, is_configured: bool) -> None:
    """A hostile machine may call all its resources as those that the configuration refers to."""
    async with World() as world:
        local = [spec("user", needs="s0"), *([spec("s0")] if is_configured else [])]
        await world.run(*local)
        world.graph.set_discovered(spec(f"far:r{number}:s0") for number in range(MANY))
        await world.advance(1)
        assert len(world.graph.nodes) == MANY + len(local)
        together = len(world.graph._desired)
        assert together == len(local) if is_configured else together < len(local) + 10


async def test_changes_of_a_remote_do_not_count_as_a_reconfiguration() -> None:
    async with World() as world:
        world.script("far:s0", close=takes(5))
        await world.run()
        world.graph.set_discovered([far(0)])
        await world.advance(1)
        world.graph.set_discovered([])
        await world.advance(1)
        assert world.state("far:s0") is NodeState.REMOVING
        assert not world.graph.is_replacing


async def test_closing_the_graph_closes_them() -> None:
    async with World() as world:
        world.graph.set_discovered(map(far, range(MANY)))
        await world.close_graph()
        assert not world.graph.nodes

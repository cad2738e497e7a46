from __future__ import annotations

import asyncio

from tests.unit.robot.bench import Bench, thing

from cogwork.robot.status_view import build_status_view


async def test_building_a_large_view_does_not_block_the_loop(bench: Bench) -> None:
    await bench.apply(*(thing(f"t{number}") for number in range(450)))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.ensure_future(count())
    view = await build_status_view(bench.machine)
    counting.cancel()
    await asyncio.gather(counting, return_exceptions=True)
    assert len(view["resources"]) == 450
    assert turns >= 4


async def test_resource_removed_while_building_the_view(bench: Bench) -> None:
    await bench.apply(*(thing(f"t{number}") for number in range(150)))
    building = asyncio.ensure_future(build_status_view(bench.machine))
    await asyncio.sleep(0)
    await bench.apply(thing("t0"))
    assert {each["name"] for each in (await building)["resources"]} >= {"rdk:component:generic/t0"}

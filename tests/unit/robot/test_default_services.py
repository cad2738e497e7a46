"""Services that a machine provides without configuration."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from tests.unit.robot.bench import (
    MOTION,
    Bench,
    ThingAttributes,
    full_name,
    running_bench,
    thing,
)
from viam.gen.service.motion.v1 import motion_pb2 as motion

from cogwork.graph.name import ModelName, ResourceName
from cogwork.graph.node import NodeState
from cogwork.graph.reconciler import Applied
from cogwork.graph.spec import Spec
from cogwork.robot.status.status_view import build_status_view

MOTION_SERVICE = ResourceName(MOTION, "builtin")
MOVE = "/viam.service.motion.v1.MotionService/Move"
CALL = motion.MoveRequest(name="builtin", component_name="arm")
CONFIGURED = {"name": "builtin", "api": str(MOTION), "model": "planner"}


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    spec = Spec(MOTION_SERVICE, ModelName.parse("planner"), ThingAttributes(), is_default=True)
    async with running_bench({MOTION_SERVICE: lambda: spec}) as bench:
        yield bench


def arrive(bench: Bench) -> Callable[..., Awaitable[None]]:
    async def move(*_: object) -> None:
        bench.history.append(("moved", "builtin"))

    return move


async def listed(bench: Bench) -> list[str]:
    return [each.name for each in (await bench.call_robot("ResourceNames")).resources]


async def status(bench: Bench) -> dict[str, tuple[int, str]]:
    found = (await bench.call_robot("GetMachineStatus")).resources
    return {each.name.name: (each.state, each.error) for each in found}


async def seen_by_people(bench: Bench) -> dict[str, list[str]]:
    """Return the resources of the status page, with their dependencies."""
    shown: dict[str, Any] = await build_status_view(bench.machine, bench.report)
    return {each["name"]: each["depends_on"] for each in shown["resources"]}


async def test_default_service_is_listed_but_not_built(bench: Bench) -> None:
    assert await listed(bench) == []
    outcome = await bench.apply(thing("belt"))
    assert isinstance(outcome, Applied)
    assert (outcome.ready, outcome.unhealthy) == (1, 0)
    assert await listed(bench) == ["belt", "builtin"]
    assert (await status(bench))["builtin"] == (NodeState.READY, "")
    assert ("build", "builtin") not in bench.history


async def test_first_call_builds_it(bench: Bench) -> None:
    await bench.apply(thing("belt"))
    bench.behaviors["builtin"] = arrive(bench)
    for _ in range(2):
        assert (await bench.call(MOVE, CALL)).success
    assert bench.history.count(("build", "builtin")) == 1
    assert bench.history.count(("moved", "builtin")) == 2
    assert await listed(bench) == ["belt", "builtin"]
    assert list(await seen_by_people(bench)) == [str(full_name("belt"))]
    assert isinstance(outcome := await bench.apply(thing("belt"), thing("door")), Applied)
    assert (outcome.ready, outcome.unhealthy) == (2, 0)
    assert bench.history.count(("build", "builtin")) == 1


async def test_dependency_on_it_is_resolved(bench: Bench) -> None:
    await bench.apply(
        thing("short", needs="builtin"), thing("full", needs="rdk:service:motion/builtin")
    )
    assert {name: state for name, (state, _) in (await status(bench)).items()} == dict.fromkeys(
        ("short", "full", "builtin"), NodeState.READY
    )
    assert await seen_by_people(bench) == {
        str(full_name("short")): [],
        str(full_name("full")): [],
    }
    assert bench.machine.dependencies(full_name("short")) == (MOTION_SERVICE,)


async def test_configured_service_replaces_it(bench: Bench) -> None:
    await bench.apply(thing("belt"), services=[CONFIGURED])
    assert await listed(bench) == ["belt", "builtin"]
    assert str(MOTION_SERVICE) in await seen_by_people(bench)
    assert bench.history.count(("build", "builtin")) == 1


async def test_configured_resource_of_another_api_takes_a_short_reference(bench: Bench) -> None:
    """It was not ambiguous before the default service was built, so it is not after that."""
    bench.behaviors["builtin"] = arrive(bench)
    await bench.apply(thing("builtin"))
    await bench.call(MOVE, CALL)
    await bench.apply(thing("builtin"), thing("belt", needs="builtin"))
    assert bench.machine.dependencies(full_name("belt")) == (full_name("builtin"),)
    await bench.apply(thing("builtin"), thing("belt", needs=str(MOTION_SERVICE)))
    assert bench.machine.dependencies(full_name("belt")) == (MOTION_SERVICE,)


async def test_it_is_closed_with_the_machine(bench: Bench) -> None:
    bench.behaviors["builtin"] = arrive(bench)
    await bench.apply(thing("belt"))
    await bench.call(MOVE, CALL)
    assert await bench.machine.aclose() == []
    assert ("close", "builtin") in bench.history


async def test_job_may_call_it(bench: Bench) -> None:
    job = {"name": "go", "schedule": "1s", "resource": "builtin", "method": "DoCommand"}
    bench.behaviors["builtin"] = arrive(bench)
    await bench.apply(thing("belt"), jobs=[job])
    assert bench.machine.diagnostics == ()
    await bench.clock.advance(1.5)
    assert ("moved", "builtin") in bench.history

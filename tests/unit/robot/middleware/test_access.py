"""Calls of a module whose access is limited to its dependencies."""

from __future__ import annotations

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from tests.unit.robot.bench import Bench, thing

from cogwork.graph.name import Api, ModelName
from cogwork.robot.hosts import NoModules
from cogwork.robot.middleware.access import ALLOWED_METHODS

MODULE = "module:acme"


class LimitedModules(NoModules):
    """The module "acme", which provides the model "mutable" and has limited access."""

    def restricted_modules(self) -> frozenset[str]:
        return frozenset({"acme"})

    def provides_model(self, module: str, api: Api, model: ModelName) -> bool:
        return module == "acme" and model.short == "mutable"


@pytest.fixture
async def limited(bench: Bench) -> Bench:
    bench.machine.modules = LimitedModules()
    await bench.apply(
        thing("board"),
        thing("motor", needs="board"),
        thing("own", "mutable", needs="motor"),
        thing("other"),
    )
    return bench


@pytest.mark.parametrize("name", ["own", "motor", "board"])
async def test_limited_module_may_call_its_resources_and_their_dependencies(
    limited: Bench, name: str
) -> None:
    assert await limited.do_command(name, {"a": 1}, peer=MODULE) == {"a": 1}


@pytest.mark.parametrize("name", ["other", "missing"])
async def test_limited_module_may_not_call_other_resources(limited: Bench, name: str) -> None:
    with pytest.raises(GRPCError) as refused:
        await limited.do_command(name, peer=MODULE)
    assert refused.value.status is Status.PERMISSION_DENIED
    assert refused.value.message == (
        f'module "acme" may not call rdk:component:generic/{name}: its "access" is "dependencies"; '
        'add it to the depends_on of a resource of the module, or set "access" to "machine"'
    )


@pytest.mark.parametrize("peer", ["module:another", "ipv4:127.0.0.1:50112", "job:acme", "acme"])
async def test_other_peers_may_call_all_resources(limited: Bench, peer: str) -> None:
    assert await limited.do_command("other", {"a": 1}, peer=peer) == {"a": 1}


async def test_limited_module_may_not_reach_resources_through_a_service(limited: Bench) -> None:
    """A motion service looks up resources that its caller names."""

    async def find_other(_: object) -> None:
        limited.machine.find(next(n for n in limited.machine.nodes if n.name == "other"))

    limited.behaviors["motor"] = find_other
    await limited.do_command("motor")
    with pytest.raises(GRPCError, match="may not call rdk:component:generic/other"):
        await limited.do_command("motor", peer=MODULE)


@pytest.mark.parametrize("method", ["Shutdown", "RestartModule", "GetOperations", "GetSessions"])
async def test_limited_module_may_not_control_the_machine(limited: Bench, method: str) -> None:
    with pytest.raises(GRPCError, match=f"may not call RobotService.{method}") as refused:
        await limited.call_robot(method, peer=MODULE)
    assert refused.value.status is Status.PERMISSION_DENIED
    assert not limited.shutdown_reasons


@pytest.mark.parametrize("method", ["ResourceNames", "GetMachineStatus", "GetVersion", "StopAll"])
async def test_limited_module_may_call_allowed_robot_methods(limited: Bench, method: str) -> None:
    assert method in ALLOWED_METHODS
    await limited.call_robot(method, peer=MODULE)

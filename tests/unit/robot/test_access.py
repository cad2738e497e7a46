"""What a module may call whose access is limited to its dependencies."""

from __future__ import annotations

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from tests.unit.robot.bench import Bench, thing

from cogwork.graph.name import Api, ModelName
from cogwork.robot.access import ALLOWED_METHODS
from cogwork.robot.module_host import NoModules

MODULE = "module:acme"


class Limited(NoModules):
    """The module "acme" brings the model "mutable", and is limited."""

    def restricted_modules(self) -> frozenset[str]:
        return frozenset({"acme"})

    def provides_model(self, module: str, api: Api, model: ModelName) -> bool:
        return module == "acme" and model.short == "mutable"


@pytest.fixture
async def limited(bench: Bench) -> Bench:
    bench.machine.modules = Limited()
    await bench.apply(
        thing("board"),
        thing("motor", needs="board"),
        thing("own", "mutable", needs="motor"),
        thing("other"),
    )
    return bench


@pytest.mark.parametrize("name", ["own", "motor", "board"])
async def test_it_may_call_its_own_and_what_they_depend_on(limited: Bench, name: str) -> None:
    assert await limited.do(name, {"a": 1}, peer=MODULE) == {"a": 1}


@pytest.mark.parametrize("name", ["other", "missing"])
async def test_it_may_not_call_anything_else(limited: Bench, name: str) -> None:
    with pytest.raises(GRPCError) as refused:
        await limited.do(name, peer=MODULE)
    assert refused.value.status is Status.PERMISSION_DENIED
    assert refused.value.message == (
        f'module "acme" may not call rdk:component:generic/{name}: its "access" is "dependencies"; '
        'add it to the depends_on of a resource of the module, or set "access" to "machine"'
    )


@pytest.mark.parametrize("peer", ["module:another", "ipv4:127.0.0.1:50112", "job:acme", "acme"])
async def test_others_may(limited: Bench, peer: str) -> None:
    assert await limited.do("other", {"a": 1}, peer=peer) == {"a": 1}


async def test_it_may_not_use_what_another_service_finds_for_it(limited: Bench) -> None:
    """As a motion service does, which is told what to move with the call."""

    async def find_other(_: object) -> None:
        limited.machine.find(next(n for n in limited.machine.nodes if n.name == "other"))

    limited.deeds["motor"] = find_other
    await limited.do("motor")
    with pytest.raises(GRPCError, match="may not call rdk:component:generic/other"):
        await limited.do("motor", peer=MODULE)


@pytest.mark.parametrize("method", ["Shutdown", "RestartModule", "GetOperations", "GetSessions"])
async def test_it_may_not_rule_the_machine(limited: Bench, method: str) -> None:
    with pytest.raises(GRPCError, match=f"may not call RobotService.{method}") as refused:
        await limited.ask(method, peer=MODULE)
    assert refused.value.status is Status.PERMISSION_DENIED
    assert not limited.asked_to_shut_down


@pytest.mark.parametrize("method", ["ResourceNames", "GetMachineStatus", "GetVersion", "StopAll"])
async def test_it_may_ask_what_it_needs_and_stop_everything(limited: Bench, method: str) -> None:
    assert method in ALLOWED_METHODS
    await limited.ask(method, peer=MODULE)

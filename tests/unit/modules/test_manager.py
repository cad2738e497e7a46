"""What the module manager answers for, and what it leaves to other providers."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from cogwork.core.clock import SystemClock
from cogwork.graph.name import Api, ModelName, ResourceName
from cogwork.graph.provider import Provider, Providers, Unavailable
from cogwork.graph.spec import Spec
from cogwork.logs.rules import LevelRules
from cogwork.modules.context import ModuleContext
from cogwork.modules.manager import ModuleManager
from cogwork.remotes.manager import RemoteManager
from cogwork.remotes.names import REMOTE_MODEL, RemoteName, remote_spec
from cogwork.subprocesses.host import ProgramHost

SENSOR = Api.parse("rdk:component:sensor")
WAITING = {"drivers": Unavailable("package acme/drivers is being downloaded")}


def sensor(model: str) -> Spec:
    return Spec(ResourceName(SENSOR, "scale"), ModelName.parse(model))


@pytest.fixture
def pending(tmp_path: Path) -> ModuleManager:
    """A manager with a module that cannot be started."""
    context = ModuleContext(
        ProgramHost(SystemClock()),
        tmp_path,
        lambda name, _: contextlib.nullcontext(name),
        tmp_path,
        {},
        LevelRules,
        lambda: None,
    )
    manager = ModuleManager(context)
    manager.apply((), waiting=WAITING)
    return manager


def test_module_that_is_not_ready_may_provide_a_custom_model(pending: ModuleManager) -> None:
    answer = pending.offer(sensor("acme:test:scale"))
    assert answer == Unavailable(
        "no module provides model acme:test:scale yet: "
        'module "drivers" waits: package acme/drivers is being downloaded'
    )


def test_module_that_is_not_ready_is_not_blamed_for_an_unknown_builtin_model(
    pending: ModuleManager,
) -> None:
    answer = Providers({"modules": pending}).offer(sensor("fakke"))
    assert isinstance(answer, Unavailable)
    assert answer.reason.startswith('unknown model "fakke" for rdk:component:sensor')


def test_module_that_is_not_ready_does_not_claim_remotes(pending: ModuleManager) -> None:
    name = ResourceName(SENSOR, "scale", "line")
    for spec in (remote_spec("line"), Spec(name, REMOTE_MODEL, RemoteName("line", "scale"))):
        assert pending.offer(spec) is None


@pytest.mark.parametrize("remotes_first", [True, False])
def test_remotes_answer_for_their_resources_in_any_order(
    pending: ModuleManager, *, remotes_first: bool
) -> None:
    remotes = RemoteManager(SystemClock(), lambda: None, lambda _: None, allow_plaintext=False)
    both: dict[str, Provider] = {"modules": pending, "remotes": remotes}
    providers = Providers(dict(sorted(both.items(), reverse=remotes_first)))
    assert providers.offer(remote_spec("line")) == Unavailable("its remote was removed")

"""What the module manager answers for, and what it leaves to other providers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

import pytest

from cogwork.config.schema.module import ModuleConfig
from cogwork.core.clock import SystemClock
from cogwork.graph.name import Api, ModelName, ResourceName
from cogwork.graph.provider import Provider, Providers, Unavailable
from cogwork.graph.spec import Spec
from cogwork.logs.rules import LevelRules
from cogwork.modules.context import ModuleContext
from cogwork.modules.manager import ModuleManager
from cogwork.remotes.manager import RemoteManager
from cogwork.remotes.names import REMOTE_MODEL, RemoteName, remote_spec
from cogwork.robot.hosts import ModuleState
from cogwork.subprocesses.host import ProgramHost

SENSOR = Api.parse("rdk:component:sensor")
WAITING = {"drivers": Unavailable("package acme/drivers is being downloaded")}


def sensor(model: str) -> Spec:
    return Spec(ResourceName(SENSOR, "scale"), ModelName.parse(model))


def make_manager(directory: Path, trusted: Iterable[str] | None = None) -> ModuleManager:
    context = ModuleContext(
        ProgramHost(SystemClock()),
        directory,
        lambda name, _: contextlib.nullcontext(name),
        directory,
        {},
        LevelRules,
        lambda: None,
    )
    return ModuleManager(context, trusted)


@pytest.fixture
def pending(tmp_path: Path) -> ModuleManager:
    """A manager with a module that cannot be started."""
    manager = make_manager(tmp_path)
    manager.apply((), waiting=WAITING)
    return manager


def test_module_that_is_not_ready_may_provide_a_custom_model(pending: ModuleManager) -> None:
    answer = pending.offer(sensor("acme:test:scale"))
    assert answer == Unavailable(
        "no module provides model acme:test:scale yet: "
        'module "drivers" waits: package acme/drivers is being downloaded'
    )


@pytest.mark.parametrize(
    ("module_id", "reason"),
    [
        ("evil:drivers", 'its namespace "evil" is not trusted; add it to the environment'),
        ("", "the module has no module_id; give it one whose namespace is listed in the"),
    ],
)
def test_module_that_is_not_trusted_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, module_id: str, reason: str
) -> None:
    manager = make_manager(tmp_path, trusted=["acme"])
    config = ModuleConfig(name="drivers", executable_path="/bin/drivers", module_id=module_id)
    for _ in range(2):
        manager.apply([config])
    answer = Providers({"modules": manager}).offer(sensor("evil:test:scale"))
    assert isinstance(answer, Unavailable)
    assert not answer.is_temporary
    start = f"the server was started with -untrusted-env, and {reason}"
    assert f'module "drivers" does not run: {start}' in answer.reason
    assert "COGWORK_TRUSTED_NAMESPACES" in answer.reason
    assert "check the spelling" not in answer.reason
    assert caplog.text.count(f"module drivers is not started: {start}") == 1
    (status,) = manager.statuses()
    assert status.state is ModuleState.UNHEALTHY
    assert status.error.startswith(start)
    manager.apply(())
    assert manager.statuses() == []


def test_resource_of_a_disabled_module_says_why_it_does_not_run(pending: ModuleManager) -> None:
    module = ModuleConfig(name="drivers", executable_path="/bin/drivers", disabled=True)
    pending.apply([module])
    assert pending.offer(sensor("acme:test:scale")) == Unavailable(
        "no module provides model acme:test:scale yet: "
        'module "drivers" does not run: it is disabled in the configuration; '
        'remove "disabled" to run it'
    )
    assert not pending.any_configured()


def test_disabled_module_has_no_status(tmp_path: Path) -> None:
    manager = make_manager(tmp_path)
    manager.apply([ModuleConfig(name="drivers", executable_path="/bin/drivers", disabled=True)])
    assert manager.statuses() == []
    assert manager.pending_reason() is None


def test_disabled_module_is_named_only_for_models_that_it_may_provide(tmp_path: Path) -> None:
    manager = make_manager(tmp_path)
    module = ModuleConfig(
        name="drivers", executable_path="/bin/drivers", module_id="acme:drivers", disabled=True
    )
    manager.apply([module], waiting={"maps": Unavailable("its package is missing", True)})
    answer = manager.offer(sensor("other:test:scale"))
    assert answer == Unavailable(
        'no module provides model other:test:scale yet: module "maps" waits: its package is '
        "missing",
        is_temporary=True,
    )
    manager.apply([module])
    assert manager.offer(sensor("other:test:scale")) is None
    answer = manager.offer(sensor("acme:test:scale"))
    assert isinstance(answer, Unavailable)
    assert 'module "drivers" does not run: it is disabled' in answer.reason


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

"""The module manager: runs the configured modules."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor_pool import DescriptorPool

from cogwork.config.schema.module import ModuleConfig
from cogwork.core.errors import NotFound
from cogwork.core.supervised_set import SupervisedSet
from cogwork.graph.name import Api, ModelName
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.spec import Spec
from cogwork.modules.context import ModuleContext
from cogwork.robot.hosts import ModuleModel, ModuleStatus
from cogwork.robot.hosts import ModuleState as State
from cogwork.subprocesses.orphans import adopt_orphans

if TYPE_CHECKING:
    from cogwork.modules.module import Module

_log = logging.getLogger("rdk.modmanager")


_DISABLED = 'it is disabled in the configuration; remove "disabled" to run it'


class ModuleManager:
    """Runs the modules of a machine, and provides their models to the graph."""

    def __init__(self, context: ModuleContext, trusted: Iterable[str] | None = None) -> None:
        """Create a manager without modules.

        `trusted`: namespaces of the module ids that may run; None for all.
        """
        self._context = replace(
            context, notify_changed=self._on_change, get_withheld_variables=lambda: self._withheld
        )
        self._withheld: frozenset[str] = frozenset()
        self._restricted: frozenset[str] = frozenset()
        self._notify_graph = context.notify_changed
        self._module_by_model: dict[tuple[Api, ModelName], Module] = {}
        """The module that provides each model: the first one in the configuration."""
        self._pending: tuple[str, bool] | None = None
        """The reason why some modules are not ready, and whether all of these are still starting.
        None if all modules are ready."""
        self._duplicates: frozenset[str] = frozenset()
        """Warnings about models that several modules provide."""
        self._trusted = None if trusted is None else frozenset(trusted)
        self._modules: SupervisedSet[ModuleConfig, Module] = SupervisedSet(
            "module", partial(_make_module, context=self._context), _comparable, _log
        )
        self._waiting: dict[str, ModuleStatus] = {}
        """Modules that cannot be started yet, because something that they need is missing."""
        self._idle: dict[str, ModuleStatus] = {}
        """Modules that are not started, because they are not trusted."""
        self._disabled: dict[str, str] = {}
        """The namespaces of the disabled modules, by name; empty if a module has no ID. Such a
        module has no status, because nothing is wrong with it."""

    @property
    def by_name(self) -> Mapping[str, Module]:
        return self._modules.by_name

    def apply(
        self,
        configs: Sequence[ModuleConfig],
        withheld: frozenset[str] = frozenset(),
        waiting: Mapping[str, Unavailable] | None = None,
    ) -> None:
        """Start, stop and restart modules to match the configuration. Unchanged modules keep
        running.

        `withheld`: environment variables that modules do not inherit from now on. `waiting`:
        additional modules that cannot be started yet, and the reasons. Disabled modules are not
        started, either.
        """
        enabled = [config for config in configs if not config.disabled]
        self._disabled = {
            config.name: _namespace_of(config) for config in configs if config.disabled
        }
        self._waiting = self._make_statuses(waiting or {}, self._waiting)
        self._withheld = withheld
        self._idle = self._make_statuses(self._find_refusals(enabled), self._idle)
        wanted = {config.name: config for config in enabled if config.name not in self._idle}
        self._restricted = frozenset(
            name for name, config in wanted.items() if config.access == "dependencies"
        )
        self._modules.apply(wanted)
        for module in self._modules:
            module.apply_levels()
        self._on_change()

    def _make_statuses(
        self, reasons: Mapping[str, Unavailable], before: Mapping[str, ModuleStatus]
    ) -> dict[str, ModuleStatus]:
        """Return the statuses of modules that do not run, for these reasons."""
        now = self._context.clock.time()
        return {
            name: ModuleStatus(
                name,
                State.PENDING if why.is_temporary else State.UNHEALTHY,
                before[name].since if name in before else now,
                why.reason,
                failures=0,
                starts=0,
                pid=None,
            )
            for name, why in reasons.items()
        }

    def offer(self, spec: Spec) -> Offer | Unavailable | None:
        """Return the offer of a module; None for built-in models, which no module provides."""
        if spec.model.is_builtin:
            return None
        module = self._module_by_model.get((spec.name.api, spec.model))
        if module is not None:
            return module.offer(spec)
        reasons, soon = self._pending or ("", False)
        disabled = self._format_disabled(spec.model)
        if not reasons and not disabled:
            return None
        reasons = "; ".join(filter(None, (reasons, disabled)))
        return Unavailable(f"no module provides model {spec.model} yet: {reasons}", soon)

    def _format_disabled(self, model: ModelName) -> str:
        """Return which disabled modules may provide a model: modules without an ID may provide any
        model."""
        return "; ".join(
            f'module "{name}" does not run: {_DISABLED}'
            for name, namespace in self._disabled.items()
            if namespace in ("", model.namespace)
        )

    def services(self) -> dict[Api, str]:
        """Return the gRPC services of the APIs that modules provide."""
        found: dict[Api, str] = {}
        for module in self._modules:
            if module.capabilities is not None:
                found.update(module.capabilities.services)
        return found

    def descriptor_pools(self) -> dict[str, DescriptorPool]:
        found: dict[str, DescriptorPool] = {}
        for module in self._modules:
            found.update(module.descriptors)
        return found

    def pending_reason(self) -> str | None:
        return self._pending[0] if self._pending is not None else None

    def any_configured(self) -> bool:
        return bool(self._modules.by_name)

    @property
    def any_stopping(self) -> bool:
        """Whether a removed or replaced module is still running."""
        return bool(self._modules.stopping)

    def restricted_modules(self) -> frozenset[str]:
        return self._restricted

    def provides_model(self, module: str, api: Api, model: ModelName) -> bool:
        provider = self._module_by_model.get((api, model))
        return (
            provider is not None
            and provider.name == module
            and not self._context.is_in_process(api, model)
        )

    def find_provider(self, spec: Spec) -> str | None:
        """Return the name of the module that provides the model of a resource; None if none
        does."""
        module = self._module_by_model.get((spec.name.api, spec.model))
        if module is None or self._context.is_in_process(spec.name.api, spec.model):
            return None
        return module.name

    def models(self) -> list[ModuleModel]:
        return [
            ModuleModel(module.name, api, model, module.config.type == "local")
            for module in self._modules
            if module.capabilities is not None
            for api, model in sorted(module.capabilities.models)
        ]

    def statuses(self) -> list[ModuleStatus]:
        running = (module.status for module in self._modules)
        return [*running, *self._waiting.values(), *self._idle.values()]

    def restart(self, name: str, module_id: str) -> None:
        for module in self._modules:
            if (module.config.module_id == module_id) if module_id else (module.name == name):
                module.restart("requested")
                return
        raise NotFound(f"module not found with id={module_id}, name={name}; {self._format_names()}")

    async def aclose(self) -> list[str]:
        """Stop all modules immediately, without waiting until their resources are closed.

        Return the names of resources and modules that did not end in time.
        """
        modules = tuple(self._modules)
        self._modules.stop_all(lambda module: module.stop(timeout=0.0))
        await asyncio.gather(*self._modules.stopping, return_exceptions=True)
        return [each for module in modules for each in module.unfinished]

    def _on_change(self) -> None:
        """Update the indexes, which plans read for every resource, and notify the graph."""
        self._module_by_model = self._index_models()
        self._pending = self._find_pending()
        self._warn_duplicates()
        self._notify_graph()

    def _index_models(self) -> dict[tuple[Api, ModelName], Module]:
        providers: dict[tuple[Api, ModelName], Module] = {}
        for module in self._modules:
            for each in module.capabilities.models if module.capabilities is not None else ():
                providers.setdefault(each, module)
        return providers

    def _find_pending(self) -> tuple[str, bool] | None:
        pending = [each for each in self._modules if each.state is not State.READY]
        if not pending and not self._waiting and not self._idle:
            return None
        failed = [module.unavailable_reason for module in pending if not module.is_starting]
        starting = [module.unavailable_reason for module in pending if module.is_starting]
        for each in self._waiting.values():
            reasons = starting if each.state is State.PENDING else failed
            reasons.append(f'module "{each.name}" waits: {each.error}')
        failed += [
            f'module "{each.name}" does not run: {each.error}' for each in self._idle.values()
        ]
        if len(starting) > 1:
            # Omit the names: otherwise, every change of one module would change the reason of every
            # waiting resource.
            starting = ["several modules are starting"]
        return "; ".join((*failed, *starting)), not failed

    def _warn_duplicates(self) -> None:
        before, self._duplicates = self._duplicates, frozenset(self._find_duplicates())
        for warning in sorted(self._duplicates - before):
            _log.warning("%s", warning)

    def _find_duplicates(self) -> Iterator[str]:
        for module in self._modules:
            for api, model in module.capabilities.models if module.capabilities is not None else ():
                first = self._module_by_model[api, model]
                if self._context.is_in_process(api, model):
                    yield (
                        f"model {model} of module {module.name} is not used: the server has one of "
                        "that name in its own process; uninstall its package, or rename a model"
                    )
                elif first is not module:
                    yield (
                        f"model {model} is provided by modules {first.name} and {module.name}; "
                        f"using {first.name}, which is first in the configuration"
                    )

    def _find_refusals(self, configs: Iterable[ModuleConfig]) -> dict[str, Unavailable]:
        """Return the modules that are not trusted, with the reasons. Log each of them once."""
        found = {}
        for config in configs:
            namespace = _namespace_of(config)
            if self._trusted is None or (namespace and namespace in self._trusted):
                continue
            why = _describe_refusal(namespace)
            found[config.name] = Unavailable(why)
            if config.name not in self._idle:
                _log.error("module %s is not started: %s", config.name, why)
        return found

    def _format_names(self) -> str:
        names = ", ".join(self._modules.by_name)
        return f"configured modules: {names}" if names else "no modules are configured"


def _make_module(config: ModuleConfig, context: ModuleContext) -> Module:
    """Create a module. The class is imported here, so that machines without modules start
    faster."""
    # Let the server find and end processes that a module leaves behind.
    adopt_orphans()
    importlib.import_module("cogwork.resource.sdk.clean_import")  # before other SDK imports
    from cogwork.modules.module import Module

    return Module(config, context)


def _namespace_of(config: ModuleConfig) -> str:
    return config.module_id.partition(":")[0]


def _describe_refusal(namespace: str) -> str:
    start = "the server was started with -untrusted-env, and "
    if not namespace:
        return (
            f"{start}the module has no module_id; give it one whose namespace is listed in the "
            "environment variable COGWORK_TRUSTED_NAMESPACES, or start the server without the "
            "option"
        )
    return (
        f'{start}its namespace "{namespace}" is not trusted; add it to the environment variable '
        "COGWORK_TRUSTED_NAMESPACES, or start the server without the option"
    )


def read_trusted_namespaces(environment: Mapping[str, str]) -> frozenset[str]:
    """Return the namespaces whose modules may run in an untrusted environment."""
    return frozenset(environment.get("COGWORK_TRUSTED_NAMESPACES", "").replace(",", " ").split())


def _comparable(config: ModuleConfig) -> dict[str, Any]:
    """Return the settings whose change requires a restart: all but cloud status and log level."""
    return config.model_dump(exclude={"status", "log_level"})

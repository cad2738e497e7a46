"""All modules of a machine: those that are configured, at any moment."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor_pool import DescriptorPool

from cogwork.config.module import ModuleConfig
from cogwork.core.errors import NotFound
from cogwork.graph.name import Api, ModelName
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.spec import Spec
from cogwork.modules.ground import Ground
from cogwork.modules.orphans import adopt_orphans
from cogwork.robot.guests import GuestModel, GuestStatus
from cogwork.robot.guests import GuestState as State

if TYPE_CHECKING:
    from cogwork.modules.module import Module

_log = logging.getLogger("rdk.modmanager")


class Modules:
    """A provider of the graph: what the modules bring."""

    def __init__(self, ground: Ground, trusted: Iterable[str] | None = None) -> None:
        """`trusted`: whose modules may run, by the namespace of their ids; None: anybody's."""
        self._ground = replace(ground, changed=self._changed)
        self._tell_graph = ground.changed
        self._bringers: dict[tuple[Api, ModelName], Module] = {}
        """Of each model, the first that brings it."""
        self._awaited: tuple[str, bool] | None = None
        """Why some are not ready that may bring what nobody does yet, and whether it only takes a
        moment; None: all are."""
        self._doubles: frozenset[str] = frozenset()
        """Which models there are twice, in words."""
        self._trusted = None if trusted is None else frozenset(trusted)
        self._modules: dict[str, Module] = {}
        self._leaving: dict[str, asyncio.Task[None]] = {}

    @property
    def all(self) -> Mapping[str, Module]:
        return self._modules

    def apply(self, configs: Sequence[ModuleConfig]) -> None:
        """From now on these. What stays as it is, goes on undisturbed."""
        wanted = {config.name: config for config in configs if self._may_run(config)}
        for name, module in tuple(self._modules.items()):
            if name not in wanted or _deed(wanted[name]) != _deed(module.config):
                self._let_go(name)
        for name, config in wanted.items():
            if name not in self._modules:
                self._take_on(_module(config, self._ground))
            else:
                self._modules[name].config = config
                self._modules[name].speak_up()
        # Of two that bring the same model, the first in the configuration counts.
        self._modules = {name: self._modules[name] for name in wanted}
        self._changed()

    def offer(self, spec: Spec) -> Offer | Unavailable | None:
        module = self._bringers.get((spec.name.api, spec.model))
        if module is not None:
            return module.offer(spec)
        if self._awaited is None:
            return None
        reasons, soon = self._awaited
        return Unavailable(f"nobody provides model {spec.model} yet: {reasons}", soon)

    def services(self) -> dict[Api, str]:
        """By which gRPC service the APIs that they bring are carried."""
        found: dict[Api, str] = {}
        for module in self._modules.values():
            if module.brought is not None:
                found.update(module.brought.services)
        return found

    def descriptions(self) -> dict[str, DescriptorPool]:
        found: dict[str, DescriptorPool] = {}
        for module in self._modules.values():
            found.update(module.described)
        return found

    def awaited(self) -> str | None:
        return self._awaited[0] if self._awaited is not None else None

    def are_in(self) -> bool:
        return bool(self._modules)

    def models(self) -> list[GuestModel]:
        return [
            GuestModel(module.name, api, model, module.config.type == "local")
            for module in self._modules.values()
            if module.brought is not None
            for api, model in sorted(module.brought.models)
        ]

    def statuses(self) -> list[GuestStatus]:
        return [module.status for module in self._modules.values()]

    def restart(self, name: str, module_id: str) -> None:
        for module in self._modules.values():
            if (module.config.module_id == module_id) if module_id else (module.name == name):
                module.restart("somebody asked for it")
                return
        raise NotFound(f"module not found with id={module_id}, name={name}; {self._names()}")

    async def aclose(self) -> list[str]:
        """Stop them all at once; their resources are closed by then, or never will be.

        Returns what did not end by itself in time.
        """
        modules = tuple(self._modules.values())
        for module in modules:
            self._let_go(module.name, patience=0.0)
        await asyncio.gather(*self._leaving.values(), return_exceptions=True)
        return [each for module in modules for each in module.unfinished]

    def _changed(self) -> None:
        """What every resource asks for in every plan is found out here, once for all of them."""
        self._bringers = self._who_brings_what()
        self._awaited = self._who_is_awaited()
        self._warn_of_doubles()
        self._tell_graph()

    def _who_brings_what(self) -> dict[tuple[Api, ModelName], Module]:
        bringers: dict[tuple[Api, ModelName], Module] = {}
        for module in self._modules.values():
            for each in module.brought.models if module.brought is not None else ():
                bringers.setdefault(each, module)
        return bringers

    def _who_is_awaited(self) -> tuple[str, bool] | None:
        awaited = [each for each in self._modules.values() if each.state is not State.READY]
        if not awaited:
            return None
        failed = [module.why_not for module in awaited if not module.is_coming]
        coming = [module.why_not for module in awaited if module.is_coming]
        if len(coming) > 1:
            # Not by name: other words with each that becomes ready would be news to all who wait.
            coming = ["several modules are starting"]
        return "; ".join((*failed, *coming)), not failed

    def _warn_of_doubles(self) -> None:
        before, self._doubles = self._doubles, frozenset(self._found_doubles())
        for words in sorted(self._doubles - before):
            _log.warning("%s", words)

    def _found_doubles(self) -> Iterator[str]:
        for module in self._modules.values():
            for api, model in module.brought.models if module.brought is not None else ():
                first = self._bringers[api, model]
                if self._ground.in_process(api, model):
                    yield (
                        f"model {model} of module {module.name} is not used: the server has one of "
                        "that name in its own process; uninstall its package, or rename one of them"
                    )
                elif first is not module:
                    yield (
                        f"model {model} is brought by module {first.name} and by module "
                        f"{module.name}; that of {first.name} counts, as it is the first in the "
                        "configuration"
                    )

    def _take_on(self, module: Module) -> None:
        # So that what a module leaves behind can be found, and ended.
        adopt_orphans()
        self._modules[module.name] = module
        leaving = self._leaving.get(module.name)
        if leaving is None:
            module.start()
        else:
            leaving.add_done_callback(lambda _: self._start_if_wanted(module))

    def _start_if_wanted(self, module: Module) -> None:
        if self._modules.get(module.name) is module:
            module.start()

    def _let_go(self, name: str, patience: float | None = None) -> None:
        module = self._modules.pop(name)
        if patience is None:
            patience = self._ground.deadlines.empty
        before = self._leaving.get(name)
        task = asyncio.get_running_loop().create_task(self._stopped(module, before, patience))
        self._leaving[name] = task
        task.add_done_callback(lambda done: self._left(name, done))

    async def _stopped(
        self, module: Module, before: asyncio.Task[None] | None, patience: float
    ) -> None:
        if before is not None:
            await asyncio.wait({before})
        await module.stop(patience)

    def _left(self, name: str, task: asyncio.Task[None]) -> None:
        if self._leaving.get(name) is task:
            del self._leaving[name]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("module %s could not be stopped: %s", name, error)

    def _may_run(self, config: ModuleConfig) -> bool:
        if self._trusted is None:
            return True
        namespace = config.module_id.partition(":")[0]
        if namespace and namespace in self._trusted:
            return True
        why = f'its namespace is "{namespace}"' if namespace else "it has no module_id"
        _log.error(
            "module %s is not run: %s, and in an untrusted environment only those run whose "
            "namespace is listed in COGWORK_TRUSTED_NAMESPACES",
            *(config.name, why),
        )
        return False

    def _names(self) -> str:
        return f"there are {', '.join(self._modules)}" if self._modules else "there is none"


def _module(config: ModuleConfig, ground: Ground) -> Module:
    """Imported with the first one: a machine without any starts without the SDK."""
    importlib.import_module("cogwork.resource.sdk")  # ahead of whatever imports the SDK
    from cogwork.modules.module import Module

    return Module(config, ground)


def trusted_namespaces(environment: Mapping[str, str]) -> frozenset[str]:
    """Whose modules may run where others configure the machine."""
    return frozenset(environment.get("COGWORK_TRUSTED_NAMESPACES", "").replace(",", " ").split())


def _deed(config: ModuleConfig) -> dict[str, Any]:
    """All of it but what the cloud says about it, and the level, which is judged apart."""
    return config.model_dump(exclude={"status", "log_level"})

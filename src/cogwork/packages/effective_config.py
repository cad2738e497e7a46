"""The parts of a configuration that can run with the packages that are ready. Pure.

Anything that runs already keeps its former settings until the packages of the new settings are
ready. Anything else waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from cogwork.config.check.checker import CheckResult
from cogwork.config.schema.module import ModuleConfig
from cogwork.config.schema.process import ProcessConfig
from cogwork.config.text.positions import Pointer
from cogwork.graph.name import ResourceName
from cogwork.graph.spec import Spec

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Former:
    """The settings that run when a new configuration arrives."""

    specs: Mapping[ResourceName, Spec] = field(default_factory=dict)
    modules: Mapping[str, ModuleConfig] = field(default_factory=dict)
    processes: Mapping[str, ProcessConfig] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EffectiveConfig:
    """The settings to run now."""

    specs: tuple[Spec, ...] = ()
    modules: tuple[ModuleConfig, ...] = ()
    processes: tuple[ProcessConfig, ...] = ()
    waiting_resources: Mapping[ResourceName, frozenset[str]] = field(default_factory=dict)
    """The missing packages of each resource that waits and has no former settings."""
    waiting_modules: Mapping[str, frozenset[str]] = field(default_factory=dict)
    waiting_processes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    held_names: tuple[str, ...] = ()
    """Resources, modules and processes that keep their former settings."""


def hold_back(
    result: CheckResult,
    former: Former,
    is_ready: Callable[[str], bool],
    find_module: Callable[[Spec], str | None],
) -> EffectiveConfig:
    """Return the settings to run while some packages of a configuration are not ready.

    `find_module`: returns the name of the running module that provides the model of a resource. A
    module and its resources change together, because settings for one version may be wrong for
    another.
    """
    missing = {
        at: absent
        for at, names in result.package_users.items()
        if (absent := frozenset(name for name in names if not is_ready(name)))
    }
    if not missing:
        return EffectiveConfig(
            result.specs, tuple(result.config.modules), tuple(result.config.processes)
        )
    by_name = {module.name: module for module in result.config.modules}
    modules = _hold(by_name, result.module_pointers, missing, former.modules)
    by_id = {process.id: process for process in result.config.processes}
    processes = _hold(by_id, result.process_pointers, missing, former.processes)
    specs, waiting_resources, held_resources = [], {}, []
    for spec in result.specs:
        at = result.resource_pointers.get(spec.name, ())
        absent = missing.get(at) or modules.held.get(find_module(spec) or "", frozenset())
        if absent and spec.name in former.specs:
            specs.append(former.specs[spec.name])
            held_resources.append(str(spec.name))
            continue
        specs.append(spec)
        if absent:
            waiting_resources[spec.name] = absent
    return EffectiveConfig(
        tuple(specs),
        modules.running,
        processes.running,
        waiting_resources,
        modules.waiting,
        processes.waiting,
        (
            *held_resources,
            *(f"module {name}" for name in modules.held),
            *(f"process {name}" for name in processes.held),
        ),
    )


class _Held(NamedTuple, Generic[T]):
    running: tuple[T, ...]
    """The settings to run: the new ones or, if their packages are missing, the former ones."""
    waiting: dict[str, frozenset[str]]
    held: dict[str, frozenset[str]]


def _hold(
    wanted: Mapping[str, T],
    pointers: Sequence[Pointer],
    missing: Mapping[Pointer, frozenset[str]],
    former: Mapping[str, T],
) -> _Held[T]:
    """Decide which settings of modules or processes to run.

    `pointers` are the places of the `wanted` settings in the configuration, in the same order.
    """
    running: list[T] = []
    waiting: dict[str, frozenset[str]] = {}
    held: dict[str, frozenset[str]] = {}
    for (name, config), at in zip(wanted.items(), pointers, strict=True):
        if at not in missing:
            running.append(config)
        elif name in former:
            running.append(former[name])
            held[name] = missing[at]
        else:
            waiting[name] = missing[at]
    return _Held(tuple(running), waiting, held)

"""What of a configuration waits for its packages. Pure: values in, values out.

What already runs keeps its former settings until the packages of the new ones are there. What does
not run yet waits.
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
    """What runs when a configuration arrives."""

    specs: Mapping[ResourceName, Spec] = field(default_factory=dict)
    modules: Mapping[str, ModuleConfig] = field(default_factory=dict)
    processes: Mapping[str, ProcessConfig] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EffectiveConfig:
    """What to run now."""

    specs: tuple[Spec, ...] = ()
    modules: tuple[ModuleConfig, ...] = ()
    processes: tuple[ProcessConfig, ...] = ()
    waiting_resources: Mapping[ResourceName, frozenset[str]] = field(default_factory=dict)
    """The packages without which a resource cannot run, and nothing runs instead."""
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
    """Return what to run of a configuration while some of its packages are not ready.

    `find_module`: returns the name of the module that provides the model of a resource, if it
    runs. A module and its resources change together: settings for one version may mean something
    else to another.
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
    """In the new settings, or in the former ones if their packages are missing."""
    waiting: dict[str, frozenset[str]]
    held: dict[str, frozenset[str]]


def _hold(
    wanted: Mapping[str, T],
    pointers: Sequence[Pointer],
    missing: Mapping[Pointer, frozenset[str]],
    former: Mapping[str, T],
) -> _Held[T]:
    """Decide what to run of modules or processes. `pointers` are in the order of `wanted`."""
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

"""What of a configuration waits for its packages. Pure: values in, values out.

What already runs keeps its former settings until the packages of the new ones are there. What does
not run yet waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cogwork.config.check import CheckResult
from cogwork.config.module import ModuleConfig
from cogwork.config.process import ProcessConfig
from cogwork.graph.name import ResourceName
from cogwork.graph.spec import Spec


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
    modules, waiting_modules, held_modules = [], {}, dict[str | None, frozenset[str]]()
    for module, at in zip(result.config.modules, result.module_pointers, strict=True):
        if at not in missing:
            modules.append(module)
        elif module.name in former.modules:
            modules.append(former.modules[module.name])
            held_modules[module.name] = missing[at]
        else:
            waiting_modules[module.name] = missing[at]
    processes, waiting_processes, held_processes = [], {}, []
    for process, at in zip(result.config.processes, result.process_pointers, strict=True):
        if at not in missing:
            processes.append(process)
        elif process.id in former.processes:
            processes.append(former.processes[process.id])
            held_processes.append(f"process {process.id}")
        else:
            waiting_processes[process.id] = missing[at]
    specs, waiting_resources, held_resources = [], {}, []
    for spec in result.specs:
        at = result.resource_pointers.get(spec.name, ())
        absent = missing.get(at) or held_modules.get(find_module(spec), frozenset())
        if absent and spec.name in former.specs:
            specs.append(former.specs[spec.name])
            held_resources.append(str(spec.name))
            continue
        specs.append(spec)
        if absent:
            waiting_resources[spec.name] = absent
    return EffectiveConfig(
        tuple(specs),
        tuple(modules),
        tuple(processes),
        waiting_resources,
        waiting_modules,
        waiting_processes,
        (*held_resources, *(f"module {name}" for name in held_modules), *held_processes),
    )

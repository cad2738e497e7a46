"""Determines the level of a logger from the rules of the configuration, in order of precedence:

debug mode > `log_level` of a module > `log_configuration` > last matching `log` rule > info
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cogwork.logs.levels import Level
from cogwork.logs.logger_names import (
    JOB_LOGGER_PREFIX,
    MODULE_LOGGER_PREFIX,
    RESOURCE_LOGGER_PREFIX,
    matching_names,
    module_of_logger,
    strip_prefix,
)
from cogwork.logs.pattern import Pattern

LevelOf = Callable[[str, str | None], int]
"""A function that returns the level of a logger. The second argument is the module that logs; None
if no module logs."""


def log_everything(logger: str, module: str | None) -> int:
    del logger, module
    return logging.NOTSET


@dataclass(frozen=True, slots=True)
class LevelRules:
    patterns: tuple[tuple[Pattern, Level], ...] = ()
    """The rules of the `log` section, in the order of the file."""
    resources: Mapping[str, Level] = field(default_factory=dict)
    """The `log_configuration` levels by full resource name."""
    jobs: Mapping[str, Level] = field(default_factory=dict)
    """The `log_configuration` levels by job name."""
    modules: Mapping[str, Level | None] = field(default_factory=dict)
    """The `log_level` of every module by name."""
    module_by_resource: Mapping[str, str] = field(default_factory=dict)
    """Module names by the full names of the resources that they provide."""
    debug: bool = False

    def level_of(self, logger: str, module: str | None = None) -> Level:
        """Return the level of a logger. `module` is the module that logs: `module_by_resource` may
        not contain its resources yet."""
        if self.debug:
            return Level.DEBUG
        resource = strip_prefix(RESOURCE_LOGGER_PREFIX, logger)
        module = module or self._module_of(logger, resource)
        if module is not None and (level := self.modules.get(module)) is not None:
            return level
        if resource is not None and (level := self._resource_level(resource)) is not None:
            return level
        job = strip_prefix(JOB_LOGGER_PREFIX, logger)
        if job is not None and (level := self.jobs.get(job)) is not None:
            return level
        return self._pattern_level(logger, module)

    def launch_level(self, module: str) -> Level:
        """Return the lowest level of all loggers of a module, except the loggers of its
        resources."""
        logger = f"{MODULE_LOGGER_PREFIX}{module}"
        level = self.level_of(logger)
        if self.debug or self.modules.get(module) is not None:
            return level
        # Not all loggers of a module are known, so apply a rule for one of them to the module.
        below = [rule for pattern, rule in self.patterns if pattern.text.startswith(f"{logger}.")]
        return min(level, *below) if below else level

    def overrides_resource_level(self, resource: str) -> bool:
        """Return whether the `log_level` of a module overrides the resource's
        `log_configuration`."""
        module = self.module_by_resource.get(resource, "")
        return resource in self.resources and self.modules.get(module) is not None

    def _module_of(self, logger: str, resource: str | None) -> str | None:
        if resource is None:
            return module_of_logger(logger)
        return self.module_by_resource.get(resource.partition(".")[0])

    def _resource_level(self, resource: str) -> Level | None:
        """Return the level of a resource; the name may also be the name of a child logger."""
        if resource in self.resources:
            return self.resources[resource]
        return self.resources.get(resource.partition(".")[0])

    def _pattern_level(self, logger: str, module: str | None) -> Level:
        if not self.patterns:
            return Level.INFO
        names = tuple(matching_names(logger, module))
        for pattern, level in reversed(self.patterns):
            if any(map(pattern.matches, names)):
                return level
        return Level.INFO

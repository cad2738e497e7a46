"""Determine the level of a logger from the rules of the configuration, in order of precedence:

debug mode  >  `log_level` of a module  >  `log_configuration`  >  last matching `log` rule  >  info
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cogwork.logs.levels import Level
from cogwork.logs.pattern import Pattern

RESOURCE_LOGGER_PREFIX = "rdk.resource_manager."
MODULE_LOGGER_PREFIX = "rdk.modmanager."
JOB_LOGGER_PREFIX = "rdk.job_manager."


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
    """The names of the modules by full name of the modular resource."""
    debug: bool = False

    def level_of(self, logger: str) -> Level:
        if self.debug:
            return Level.DEBUG
        resource = _strip_prefix(RESOURCE_LOGGER_PREFIX, logger)
        module = self._module_of(logger, resource)
        if module is not None and (level := self.modules.get(module)) is not None:
            return level
        if resource is not None and (level := self._resource_level(resource)) is not None:
            return level
        job = _strip_prefix(JOB_LOGGER_PREFIX, logger)
        if job is not None and (level := self.jobs.get(job)) is not None:
            return level
        return self._pattern_level(logger, module)

    def overrides_resource_level(self, resource: str) -> bool:
        """Whether the `log_level` of a module overrides the resource's `log_configuration`."""
        module = self.module_by_resource.get(resource, "")
        return resource in self.resources and self.modules.get(module) is not None

    def _module_of(self, logger: str, resource: str | None) -> str | None:
        if resource is not None:
            return self.module_by_resource.get(resource)
        below = _strip_prefix(MODULE_LOGGER_PREFIX, logger)
        # The output of a module has its own loggers, such as `<module>.StdErr`.
        return below.partition(".")[0] if below is not None else None

    def _resource_level(self, resource: str) -> Level | None:
        """Return the level of the resource, or of the resource that owns this child logger."""
        if resource in self.resources:
            return self.resources[resource]
        return self.resources.get(resource.partition(".")[0])

    def _pattern_level(self, logger: str, module: str | None) -> Level:
        for pattern, level in reversed(self.patterns):
            if pattern.matches(logger) or (module is not None and pattern.text == module):
                return level
        return Level.INFO


def _strip_prefix(prefix: str, logger: str) -> str | None:
    return logger[len(prefix) :] if logger.startswith(prefix) else None

"""Which level a logger has: the rules of the configuration, in the order in which they count.

debug mode  >  a module's log_level  >  log_configuration  >  `log` patterns, the last one  >  info
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cogwork.logs.levels import Level
from cogwork.logs.pattern import Pattern

RESOURCES = "rdk.resource_manager."
MODULES = "rdk.modmanager."
JOBS = "rdk.job_manager."


@dataclass(frozen=True, slots=True)
class Rules:
    patterns: tuple[tuple[Pattern, Level], ...] = ()
    """The `log` section, from top to bottom."""
    resources: Mapping[str, Level] = field(default_factory=dict)
    """By the full name of the resource: its `log_configuration`."""
    jobs: Mapping[str, Level] = field(default_factory=dict)
    """By the name of the job: its `log_configuration`."""
    modules: Mapping[str, Level | None] = field(default_factory=dict)
    """Every module by its name, with its `log_level`."""
    provided: Mapping[str, str] = field(default_factory=dict)
    """By the full name of a modular resource: the module that brings it."""
    debug: bool = False

    def level_of(self, logger: str) -> Level:
        if self.debug:
            return Level.DEBUG
        resource = _under(RESOURCES, logger)
        module = self._module_of(logger, resource)
        if module is not None and (level := self.modules.get(module)) is not None:
            return level
        if resource is not None and (level := self._configured(resource)) is not None:
            return level
        job = _under(JOBS, logger)
        if job is not None and (level := self.jobs.get(job)) is not None:
            return level
        return self._matched(logger, module)

    def overrules(self, resource: str) -> bool:
        """Whether its module's `log_level` makes the `log_configuration` of a resource useless."""
        module = self.provided.get(resource, "")
        return resource in self.resources and self.modules.get(module) is not None

    def _module_of(self, logger: str, resource: str | None) -> str | None:
        if resource is not None:
            return self.provided.get(resource)
        below = _under(MODULES, logger)
        # Its output has loggers of its own: `<module>.StdErr`.
        return below.partition(".")[0] if below is not None else None

    def _configured(self, resource: str) -> Level | None:
        """Its own, or that of the resource whose logger has this one below it."""
        if resource in self.resources:
            return self.resources[resource]
        return self.resources.get(resource.partition(".")[0])

    def _matched(self, logger: str, module: str | None) -> Level:
        for pattern, level in reversed(self.patterns):
            if pattern.matches(logger) or (module is not None and pattern.text == module):
                return level
        return Level.INFO


def _under(prefix: str, logger: str) -> str | None:
    return logger[len(prefix) :] if logger.startswith(prefix) else None

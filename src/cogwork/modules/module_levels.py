"""The log levels of a module and of the resources that it provides."""

from __future__ import annotations

import asyncio
import logging

from cogwork.graph.name import ResourceName
from cogwork.logs.levels import Level
from cogwork.logs.logger_names import RESOURCE_LOGGER_PREFIX
from cogwork.modules.client import ModuleCallError
from cogwork.modules.context import ModuleContext
from cogwork.modules.session import ModuleSession


class ModuleLevels:
    """Applies log levels to a module and its resources.

    A resource can change its level at any time. The level of the module itself is an argument of
    its program, so lowering it requires a restart.
    """

    def __init__(self, module: str, context: ModuleContext, log: logging.Logger) -> None:
        self._module = module
        self._context = context
        self._log = log
        self._start_level: Level | None = None
        """The level that the program was started with."""
        self._changed = asyncio.Event()

    def choose_start_level(self) -> Level:
        """Return the level to start the program with."""
        self._start_level = self._context.get_log_rules().launch_level(self._module)
        return self._start_level

    def level_of(self, name: ResourceName) -> Level:
        """Return the log level of a resource that this module provides or is about to provide."""
        rules = self._context.get_log_rules()
        return rules.level_of(f"{RESOURCE_LOGGER_PREFIX}{name}", self._module)

    def apply(self) -> bool:
        """Apply the current rules to the resources. Return whether the module must restart."""
        started = self._start_level
        if started is None:
            return False
        if self._context.get_log_rules().launch_level(self._module) < started:
            return True
        self._changed.set()
        return False

    async def run(self, session: ModuleSession) -> None:
        """Send changed levels of resources to the module. Run until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await session.lower_levels()
            except ModuleCallError as error:
                self._log.warning(
                    "cannot lower the log levels of module %s: %s", self._module, error
                )

    def on_provided(self, name: ResourceName, is_provided: bool) -> None:
        """Record whether the module provides a resource, so that the module's level applies to
        it."""
        if is_provided:
            self._context.resource_modules[str(name)] = self._module
            self._warn_overruled_level(name)
        elif self._context.resource_modules.get(str(name)) == self._module:
            del self._context.resource_modules[str(name)]

    def _warn_overruled_level(self, name: ResourceName) -> None:
        if self._context.get_log_rules().overrides_resource_level(str(name)):
            self._log.warning(
                "log_configuration of %s has no effect: log_level of module %s takes precedence",
                *(name, self._module),
            )

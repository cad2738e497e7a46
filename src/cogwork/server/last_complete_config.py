"""The last configuration that ran with all of its packages.

If packages of the newest configuration are missing at the start, the machine runs the last complete
configuration.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Final

from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import LoadedConfig, load
from cogwork.config.source.last_good import LastGood
from cogwork.core.error_text import error_text
from cogwork.core.errors import CogworkError
from cogwork.core.workers import run_in_thread
from cogwork.packages.effective_config import Former

_TIMEOUT: Final = 30.0

_log = logging.getLogger("rdk.package_manager")


class LastCompleteConfig:
    def __init__(self, copy: LastGood, context: LoadContext) -> None:
        self._copy = copy
        self._context = context
        self._saved: str | None = None

    async def save(self, loaded: LoadedConfig) -> None:
        if not loaded.result.config.packages or loaded.text in ("", self._saved):
            return
        try:
            await run_in_thread("packages", _TIMEOUT, self._copy.save, loaded.text)
            self._saved = loaded.text
        except (OSError, ValueError, TimeoutError, CogworkError) as error:
            _log.warning("cannot store the last complete configuration: %s", error_text(error))

    async def read(self, newest: LoadedConfig) -> LoadedConfig | None:
        """Return the stored configuration if packages of the newest one are missing."""
        result = newest.result
        if {each.name for each in result.config.packages} <= result.present_packages:
            return None
        try:
            return await run_in_thread("packages", _TIMEOUT, self._load, newest.directory)
        except (OSError, ValueError, TimeoutError, CogworkError) as error:
            _log.warning("cannot load the last complete configuration: %s", error_text(error))
            return None

    def _load(self, directory: Path | None) -> LoadedConfig | None:
        text = self._copy.read()
        context = replace(self._context, directory=directory)
        loaded = load(text, context) if text is not None else None
        return None if loaded is None or loaded.is_refused else loaded


def former_of(loaded: LoadedConfig) -> Former:
    """Return the parts of a configuration whose packages are present."""
    result = loaded.result
    lacking = {
        at for at, names in result.package_users.items() if not names <= result.present_packages
    }
    return Former(
        {
            spec.name: spec
            for spec in result.specs
            if result.resource_pointers.get(spec.name) not in lacking
        },
        {
            module.name: module
            for module, at in zip(result.config.modules, result.module_pointers, strict=True)
            if at not in lacking
        },
        {
            process.id: process
            for process, at in zip(result.config.processes, result.process_pointers, strict=True)
            if at not in lacking
        },
    )

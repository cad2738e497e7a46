"""Applies the parts of a configuration whose packages are ready, and the rest when they become
ready."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from cogwork.config.check.loader import LoadedConfig
from cogwork.core.clock import Clock
from cogwork.graph.provider import Unavailable
from cogwork.graph.reconciler import Applied, Outcome, Superseded
from cogwork.modules.manager import ModuleManager
from cogwork.packages.effective_config import EffectiveConfig, Former, hold_back
from cogwork.packages.gate import PackageGate
from cogwork.packages.manager import PackageManager
from cogwork.processes.manager import ProcessManager
from cogwork.robot.machine import Machine
from cogwork.server.last_complete_config import LastCompleteConfig, former_of

_STOP_TIMEOUT: Final = 300.0
"""Timeout in seconds to wait until modules and processes that use old versions of packages have
ended. Then, the files of these versions are removed."""
_STOP_INTERVAL: Final = 1.0


class ConfigApplier:
    def __init__(
        self,
        machine: Machine,
        modules: ModuleManager,
        processes: ProcessManager,
        packages: PackageManager,
        gate: PackageGate,
        last_complete: LastCompleteConfig,
        clock: Clock,
    ) -> None:
        self._machine = machine
        self._modules = modules
        self._processes = processes
        self._packages = packages
        self._gate = gate
        self._last_complete = last_complete
        self._clock = clock
        self._loaded: LoadedConfig | None = None
        self._former = Former()
        self._effective = EffectiveConfig()
        self._outcome: asyncio.Future[Outcome] | None = None
        """Outcome of the latest configuration."""
        self._cleanup: asyncio.Task[None] | None = None
        self._is_applying = False
        """Whether this object is changing modules, so that it ignores their notifications."""

    async def recall(self, first: LoadedConfig) -> LoadedConfig | None:
        """Load the last complete configuration, as a fallback if packages of the first
        configuration are missing.

        Return that configuration; None if it is missing or not needed.
        """
        found = await self._last_complete.read(first)
        if found is not None:
            self._former = former_of(found)
        return found

    def apply(self, loaded: LoadedConfig) -> asyncio.Future[Outcome]:
        """Apply a configuration. The outcome does not wait for missing packages."""
        config = loaded.result.config
        self._packages.apply(config.packages, loaded.result.present_packages, config.cloud)
        if self._loaded is not None:
            self._former = self._find_former()
        self._loaded = loaded
        self._outcome = asyncio.get_running_loop().create_future()
        self._apply_effective(loaded, is_new=True)
        return self._outcome

    def apply_packages(self) -> None:
        """Apply the parts whose packages are ready now. Called when a package has changed."""
        if self._loaded is not None:
            self._apply_effective(self._loaded)

    def apply_modules(self) -> None:
        """Apply the parts whose modules are ready now. Called when a module has changed."""
        if self._loaded is None or self._is_applying or not self._effective.held_names:
            return
        if self._hold_back(self._loaded) != self._effective:
            self._apply_effective(self._loaded)

    async def aclose(self) -> None:
        """Stop applying configurations."""
        self._loaded = self._outcome = None
        if self._cleanup is not None:
            self._cleanup.cancel()
            await asyncio.gather(self._cleanup, return_exceptions=True)
        await self._packages.aclose()

    def _find_former(self) -> Former:
        return Former(
            {
                name: node.live.spec
                for name, node in self._machine.nodes.items()
                if node.live is not None and not node.spec.is_default
            },
            {name: module.config for name, module in self._modules.by_name.items()},
            self._processes.configs(),
        )

    def _hold_back(self, loaded: LoadedConfig) -> EffectiveConfig:
        return hold_back(
            loaded.result, self._former, self._packages.is_ready, self._modules.find_provider
        )

    def _apply_effective(self, loaded: LoadedConfig, *, is_new: bool = False) -> None:
        before = self._effective
        found = self._effective = self._hold_back(loaded)
        self._gate.waiting = found.waiting_resources
        withheld = loaded.secret_variables
        # Start processes before modules, which may use them.
        waiting = self._explain(found.waiting_processes)
        reasons = {name: why.reason for name, why in waiting.items()}
        self._processes.apply(found.processes, withheld, reasons)
        # Applying modules also makes the graph plan again, with the new reasons.
        self._is_applying = True
        try:
            self._modules.apply(found.modules, withheld, self._explain(found.waiting_modules))
        finally:
            self._is_applying = False
        if is_new or found.specs != before.specs:
            applied = self._machine.apply(
                replace(loaded, result=replace(loaded.result, specs=found.specs))
            )
            outcome = self._outcome
            applied.add_done_callback(lambda done: self._relay(done, outcome))
        elif not found.held_names:
            self._clean_up()

    def _explain(self, waiting: Mapping[str, frozenset[str]]) -> dict[str, Unavailable]:
        """Return the reason why each of these modules or processes waits for its packages."""
        return {
            name: why
            for name, packages in waiting.items()
            if (why := self._packages.describe_missing(packages)) is not None
        }

    def _relay(
        self, applied: asyncio.Future[Outcome], outcome: asyncio.Future[Outcome] | None
    ) -> None:
        """Copy the outcome from `applied` to `outcome`, unless the same configuration was applied
        again meanwhile."""
        if applied.cancelled() or (error := applied.exception()) is not None:
            if outcome is not None and not outcome.done():
                if applied.cancelled():
                    outcome.cancel()
                else:
                    assert error is not None
                    outcome.set_exception(error)
            return
        result = applied.result()
        if isinstance(result, Superseded) and outcome is self._outcome:
            return
        if outcome is not None and not outcome.done():
            outcome.set_result(result)
        if isinstance(result, Applied) and outcome is self._outcome:
            self._clean_up()

    def _clean_up(self) -> None:
        """Remove old versions of packages, if all packages are ready and no part waits for one."""
        if self._loaded is None or self._effective.held_names or not self._packages.all_ready:
            return
        if self._cleanup is None or self._cleanup.done():
            self._cleanup = asyncio.get_running_loop().create_task(
                self._remove_unused(), name="remove unused packages"
            )

    @property
    def _is_stopping(self) -> bool:
        """Whether modules or processes that may use an old version are still running."""
        return self._modules.any_stopping or self._processes.any_stopping

    async def _remove_unused(self) -> None:
        began = self._clock.monotonic()
        while self._is_stopping and self._clock.monotonic() - began < _STOP_TIMEOUT:
            await self._clock.sleep(_STOP_INTERVAL)
        if self._loaded is not None:
            await self._last_complete.save(self._loaded)
        await self._packages.remove_unused()

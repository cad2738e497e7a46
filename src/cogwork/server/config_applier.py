"""Applies a configuration as far as its packages are there, and again when more of them are."""

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
"""Seconds for modules and processes of an older version to end, before its files are removed."""
_STOP_INTERVAL: Final = 1.0


class ConfigApplier:
    def __init__(
        self,
        machine: Machine,
        modules: ModuleManager,
        processes: ProcessManager,
        packages: PackageManager,
        gate: PackageGate,
        settled: LastCompleteConfig,
        clock: Clock,
    ) -> None:
        self._machine = machine
        self._modules = modules
        self._processes = processes
        self._packages = packages
        self._gate = gate
        self._settled = settled
        self._clock = clock
        self._loaded: LoadedConfig | None = None
        self._former = Former()
        self._effective = EffectiveConfig()
        self._outcome: asyncio.Future[Outcome] | None = None
        """Of the newest configuration."""
        self._cleanup: asyncio.Task[None] | None = None
        self._is_applying = False
        """Whether modules change because of us."""

    async def recall(self, first: LoadedConfig) -> LoadedConfig | None:
        """Let the first configuration fall back to the former versions of its packages.

        Return the configuration that they belong to, if there is one.
        """
        found = await self._settled.read(first)
        if found is not None:
            self._former = former_of(found)
        return found

    def apply(self, loaded: LoadedConfig) -> asyncio.Future[Outcome]:
        """Apply a configuration. What waits for a package does not delay the outcome."""
        config = loaded.result.config
        self._packages.apply(config.packages, loaded.result.present_packages, config.cloud)
        if self._loaded is not None:
            self._former = self._find_former()
        self._loaded = loaded
        self._outcome = asyncio.get_running_loop().create_future()
        self._apply_effective(loaded, is_new=True)
        return self._outcome

    def apply_packages(self) -> None:
        """Apply what the packages allow now. Called when one of them has changed."""
        if self._loaded is not None:
            self._apply_effective(self._loaded)

    def apply_modules(self) -> None:
        """Apply what the modules allow now. Called when one of them has changed."""
        if self._loaded is None or self._is_applying or not self._effective.held_names:
            return
        if self._hold_back(self._loaded) != self._effective:
            self._apply_effective(self._loaded)

    async def aclose(self) -> None:
        """Apply nothing more."""
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
                if node.live is not None
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
        # Before modules, which may use what a process provides.
        waiting = self._explain(found.waiting_processes)
        reasons = {name: why.reason for name, why in waiting.items()}
        self._processes.apply(found.processes, withheld, reasons)
        # It also lets the graph plan again, with the new reasons.
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
        """Return why each of these modules or processes waits for its packages."""
        return {
            name: why
            for name, packages in waiting.items()
            if (why := self._packages.describe_missing(packages)) is not None
        }

    def _relay(
        self, applied: asyncio.Future[Outcome], outcome: asyncio.Future[Outcome] | None
    ) -> None:
        """Pass the outcome on, unless the same configuration was applied again meanwhile."""
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
        """Remove older versions, once nothing runs with them and the new ones are there."""
        if self._loaded is None or self._effective.held_names or not self._packages.all_ready:
            return
        if self._cleanup is None or self._cleanup.done():
            self._cleanup = asyncio.get_running_loop().create_task(
                self._remove_unused(), name="remove unused packages"
            )

    @property
    def _is_stopping(self) -> bool:
        """Whether something that may use an older version has not ended yet."""
        return self._modules.any_stopping or self._processes.any_stopping

    async def _remove_unused(self) -> None:
        began = self._clock.monotonic()
        while self._is_stopping and self._clock.monotonic() - began < _STOP_TIMEOUT:
            await self._clock.sleep(_STOP_INTERVAL)
        if self._loaded is not None:
            await self._settled.save(self._loaded)
        await self._packages.remove_unused()

"""Updates the server and the agent to the versions that the source offers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

from cogwork.agent.errors import BadRelease, SourceUnavailable, SwitchFailed
from cogwork.agent.slots.disk import remove_old_downloads
from cogwork.agent.slots.installer import Installer
from cogwork.agent.slots.layout import Layout
from cogwork.agent.slots.minimum_store import MinimumStore
from cogwork.agent.slots.store import StateStore
from cogwork.agent.updates.downgrade import Refusal, find_refusal
from cogwork.agent.updates.download import download
from cogwork.agent.updates.progress import UpdateProgress
from cogwork.agent.updates.source import UpdateSource, UpdateTarget
from cogwork.agent.window.permission import UpdatePermission
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.core.versions.product import Product
from cogwork.wire.messages.update_method import Outcome, UpdateReport

CHECK_INTERVAL: Final = 60.0
DECISION_INTERVAL: Final = 4.0
"""Seconds between two checks whether a pending update may begin."""

Switch = Callable[[str], Awaitable[None]]
"""Function that switches the version of a product. It raises SwitchFailed if the trial fails."""

_log = logging.getLogger("agent.updates")


class Updater:
    def __init__(
        self,
        layout: Layout,
        states: StateStore,
        source: UpdateSource,
        installer: Installer,
        permission: UpdatePermission,
        switches: Mapping[Product, Switch],
        progress: UpdateProgress,
        minimums: MinimumStore,
        clock: Clock,
        interval: float = CHECK_INTERVAL,
    ) -> None:
        self._layout = layout
        self._states = states
        self._source = source
        self._installer = installer
        self._permission = permission
        self._switches = switches
        self._progress = progress
        self._minimums = minimums
        self._clock = clock
        self._interval = interval
        self._pause = min(DECISION_INTERVAL, interval)
        self._waiting: dict[Product, UpdateReport] = {}
        """The last report to the source about each waiting update."""
        self._reported: set[tuple[Product, str]] = set()
        """Failures that were reported to the source."""
        self.has_checked = asyncio.Event()
        """Set once the source has answered a check."""

    async def run(self) -> None:
        """Check for updates and install them until cancelled."""
        while True:
            next_check = self._clock.monotonic() + self._interval
            self._retry_if_asked()
            targets = await self._check()
            while await self._advance(targets) and self._clock.monotonic() < next_check:
                await self._clock.sleep(self._pause)
            await self._clock.sleep(max(self._pause, next_check - self._clock.monotonic()))

    def _retry_if_asked(self) -> None:
        if not self._layout.retry.exists():
            return
        _log.info("a user asked to try the failed versions again")
        for product in Product:
            self._states[product] = self._states[product].forget_failures()
        self._reported.clear()
        self._layout.retry.unlink(missing_ok=True)

    async def _check(self) -> Mapping[Product, UpdateTarget]:
        current = {product: self._layout.current_version(product) for product in Product}
        on_trial = {product for product in Product if self._states[product].trial is not None}
        try:
            targets = await self._source.check(current, on_trial)
        except SourceUnavailable as error:
            self._progress.note_source(str(error))
            return {}
        self.has_checked.set()
        self._progress.note_source(None)
        return targets

    async def _advance(self, targets: Mapping[Product, UpdateTarget]) -> bool:
        """Install the updates that may begin now. Return whether an update waits for permission."""
        waits = False
        # Update the server first, because a new agent may fail.
        for product in (Product.SERVER, Product.AGENT):
            if product in targets:
                waits |= await self._update(product, targets[product])
        return waits

    async def _update(self, product: Product, target: UpdateTarget) -> bool:
        """Take the next steps of an update. Return whether it waits for permission."""
        version = target.version
        if version == self._layout.current_version(product):
            if self._states[product].trial is None:
                self._note_current(product, version)
            else:
                self._progress.note_switching(product, version)
            return False
        if (failure := self._states[product].failed.get(version)) is not None:
            self._progress.note_failed(product, version, failure.reason)
            if (product, version) not in self._reported:
                # The launcher or a former agent has rolled back this version, so report that now.
                await self._fail(product, version, Outcome.ROLLED_BACK, failure.reason)
            return False
        try:
            if (refusal := self._find_refusal(product, target)) is not None:
                await self._refuse(product, version, refusal)
                return not refusal.is_final
            await self._install(product, target)
            if (denial := await self._permission.find_denial()) is not None:
                await self._wait(product, version, denial)
                return True
            self._progress.note_switching(product, version)
            await self._switches[product](version)
        except SwitchFailed as error:
            await self._fail(product, version, Outcome.ROLLED_BACK, str(error))
        except BadRelease as error:
            state = self._states[product]
            self._states[product] = state.reject(version, str(error), self._clock.time())
            await self._fail(product, version, Outcome.FAILED, str(error))
        except (CogworkError, OSError) as error:
            # The version did not cause this error, so do not record it as failed: try again later.
            self._progress.note_failed(product, version, str(error))
        else:
            self._note_current(product, version)
            await self.report_good(product, version)
        return False

    def _note_current(self, product: Product, version: str) -> None:
        if self._is_allowed(product, version):
            # A permission for an older version is valid only once.
            self._layout.allowed(product).unlink()
        self._progress.note_current(product, version)

    async def _install(self, product: Product, target: UpdateTarget) -> None:
        if target.version in self._layout.installed(product):
            return

        def note(step: str) -> None:
            self._progress.note_installing(product, target.version, step)

        note("downloading")
        self._layout.downloads.mkdir(mode=0o700, exist_ok=True)
        remove_old_downloads(self._layout, self._clock.time())
        archive = await asyncio.to_thread(
            download, target.url, self._layout.downloads, target.sha256
        )
        try:
            manifest = await asyncio.to_thread(self._installer.check, archive)
            if (manifest.product, manifest.version) != (product, target.version):
                raise BadRelease(
                    f"{Path(target.url).name} contains {manifest.product} {manifest.version}, not "
                    f"{product} {target.version}"
                )
            await asyncio.to_thread(self._installer.install, archive, note)
        finally:
            archive.unlink(missing_ok=True)

    def _find_refusal(self, product: Product, target: UpdateTarget) -> Refusal | None:
        current = self._layout.current_version(product)
        minimum = self._minimums.find(product)
        is_wanted = target.is_rollback or self._is_allowed(product, target.version)
        return find_refusal(product, target.version, current, minimum, is_wanted=is_wanted)

    def _is_allowed(self, product: Product, version: str) -> bool:
        try:
            return self._layout.allowed(product).read_text().strip() == version
        except (OSError, UnicodeDecodeError):
            return False

    async def _refuse(self, product: Product, version: str, refusal: Refusal) -> None:
        if not refusal.is_final:
            await self._wait(product, version, refusal.reason)
            return
        self._progress.note_refused(product, version, refusal.reason)
        if (product, version) not in self._reported:
            await self._report_failure(product, version, Outcome.FAILED, refusal.reason)

    async def _wait(self, product: Product, version: str, denial: str) -> None:
        since = self._progress.note_waiting(product, version, denial)
        waiting = UpdateReport(product, version, Outcome.WAITING, reason=denial, since=since)
        if waiting != self._waiting.get(product):
            self._waiting[product] = waiting
            await self._report(waiting)

    async def _fail(self, product: Product, version: str, outcome: Outcome, reason: str) -> None:
        self._progress.note_failed(product, version, reason)
        await self._report_failure(product, version, outcome, reason)

    async def _report_failure(
        self, product: Product, version: str, outcome: Outcome, reason: str
    ) -> None:
        self._reported.add((product, version))
        now = self._clock.time()
        await self._report(UpdateReport(product, version, outcome, reason=reason, since=now))

    async def report_good(self, product: Product, version: str) -> None:
        """Report to the source that a version works."""
        now = self._clock.time()
        await self._report(UpdateReport(product, version, Outcome.GOOD, since=now))

    async def _report(self, report: UpdateReport) -> None:
        """Report the result of an update to the source. Log a warning if it cannot be reached."""
        try:
            await self._source.report(report)
        except SourceUnavailable as error:
            _log.warning(
                "cannot report the result of an update to the source of updates: %s", error
            )

"""The directory of packages, which all machines of a user share."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from cogwork.core.error_text import typed_error_text
from cogwork.core.workers import TooMuchWork, run_in_thread
from cogwork.packages.cleanup import UsageFile, find_unused, remove_leftovers, remove_slots
from cogwork.packages.errors import PackageUnavailable
from cogwork.packages.slot import PackageSlot

_DISK_TIMEOUT: Final = 30.0
_CLEANUP_TIMEOUT: Final = 600.0

_log = logging.getLogger("rdk.package_manager")


class PackageStore:
    """Records the packages that this machine uses, and removes those that no machine uses."""

    def __init__(self, directory: Path, config_file: Path) -> None:
        self._directory = directory
        self._usage = UsageFile(directory, config_file)
        self._removing: frozenset[Path] = frozenset()
        self._cleanup_lock = asyncio.Lock()
        self._preparing: asyncio.Task[None] | None = None

    def prepare(self, directories: Collection[Path]) -> None:
        """Record the directories that this machine uses, before they are created. The first call
        also removes leftovers."""
        before = self._preparing

        async def prepare() -> None:
            if before is not None:
                await asyncio.wait({before})
            try:
                await run_in_thread("packages", _DISK_TIMEOUT, self._usage.write, directories)
                if before is None:
                    await run_in_thread(
                        "packages", _DISK_TIMEOUT, remove_leftovers, self._directory, directories
                    )
            except (OSError, TimeoutError, TooMuchWork) as error:
                _log.warning(
                    "cannot prepare the package directory %s: %s",
                    self._directory,
                    typed_error_text(error),
                )

        self._preparing = asyncio.get_running_loop().create_task(prepare(), name="packages")

    async def wait_until_prepared(self) -> None:
        if self._preparing is not None:
            await asyncio.wait({self._preparing})

    def is_removing(self, package: Path) -> bool:
        return package in self._removing

    async def contains(self, package: Path) -> bool:
        """Return whether a package is present. Raise PackageUnavailable if the disk does not
        respond."""
        if self.is_removing(package):
            async with self._cleanup_lock:
                pass
        try:
            return await run_in_thread("packages", _DISK_TIMEOUT, package.is_dir)
        except TimeoutError:
            raise PackageUnavailable(
                f"the disk of {package} did not respond for {_DISK_TIMEOUT:g} s"
            ) from None

    async def remove_unused(self, list_wanted: Callable[[], Collection[Path]]) -> None:
        """Remove the versions that no configuration uses.

        `list_wanted` returns the directories that this machine uses, including those not recorded
        yet.
        """
        async with self._cleanup_lock:
            await self.wait_until_prepared()
            with contextlib.suppress(TimeoutError, TooMuchWork):
                unused = await run_in_thread("packages", _DISK_TIMEOUT, self._find_unused)
                wanted = list_wanted()
                unused = [slot for slot in unused if slot.directory not in wanted]
                self._removing = frozenset(slot.directory for slot in unused)
                for gone in await run_in_thread("packages", _CLEANUP_TIMEOUT, remove_slots, unused):
                    _log.info("removed %s, which is no longer used", gone)
            self._removing = frozenset()

    async def aclose(self) -> None:
        if self._preparing is not None:
            self._preparing.cancel()
            await asyncio.gather(self._preparing, return_exceptions=True)

    def _find_unused(self) -> list[PackageSlot]:
        return find_unused(self._directory, self._usage.read_all())

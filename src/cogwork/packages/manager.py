"""The package manager: downloads the configured packages.

Each missing package has its own task, so that a broken package does not delay the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cogwork.config.check.packages import has_source, locate_package, store_of
from cogwork.config.schema.cloud import CloudConfig
from cogwork.config.schema.machine import PackageConfig
from cogwork.core.backoff import RetryPolicy
from cogwork.core.clock import Clock
from cogwork.core.error_text import typed_error_text
from cogwork.core.errors import CogworkError
from cogwork.core.workers import Workers
from cogwork.graph.provider import Unavailable
from cogwork.packages.archive_locator import ArchiveLocator
from cogwork.packages.errors import BadPackage, PackageUnavailable
from cogwork.packages.package_entry import PackageEntry
from cogwork.packages.package_store import PackageStore
from cogwork.packages.slot import PackageSlot
from cogwork.robot.hosts import PackageState as State
from cogwork.robot.hosts import PackageStatus

if TYPE_CHECKING:
    from cogwork.packages.fetch import Fetch

_AT_ONCE: Final = 8
"""Maximum number of packages that are downloaded at the same time."""
_PROGRESS_INTERVAL: Final = 0.5
_RETRY: Final = RetryPolicy(first=1.0, maximum=60.0)
_RETRY_PRESENCE: Final = RetryPolicy(first=1.0, maximum=10.0)
"""Back-off for packages without a source, whose files may be copied by hand."""
_RETRY_BAD: Final = RetryPolicy(first=10.0, maximum=3600.0)
"""Back-off for invalid archives, which may be large."""

_log = logging.getLogger("rdk.package_manager")


class PackageManager:
    def __init__(
        self,
        home: Path,
        config_file: Path,
        clock: Clock,
        notify_changed: Callable[[], None],
        *,
        allow_plaintext: bool = False,
        redact: Callable[[str], str] = str,
    ) -> None:
        """Create a manager without packages.

        `config_file` identifies this machine among the machines that share the packages.
        `notify_changed` is called when a package becomes ready or fails, or its download
        progresses. `allow_plaintext`: allow sending the login of the machine unencrypted.
        """
        self._home = home
        self._store = PackageStore(store_of(home), config_file)
        self._archives = ArchiveLocator(allow_plaintext=allow_plaintext)
        self._clock = clock
        self._notify_changed = notify_changed
        self._redact = redact
        self._entries: dict[Path, PackageEntry] = {}
        self._directories: dict[str, Path] = {}
        """Directories by package name."""
        self._configs: dict[str, PackageConfig] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._ending: set[asyncio.Task[None]] = set()

    def apply(
        self,
        packages: Sequence[PackageConfig],
        present: Collection[str],
        cloud: CloudConfig | None,
    ) -> None:
        """Download the missing packages. `present`: names of packages that need no download."""
        self._archives.cloud = cloud
        self._configs = {package.name: package for package in packages}
        self._directories = {
            package.name: locate_package(package, self._home) for package in packages
        }
        for directory in self._entries.keys() - set(self._directories.values()):
            self._end(self._entries.pop(directory))
        self._store.prepare(set(self._directories.values()))
        for name, directory in self._directories.items():
            is_present = name in present and not self._store.is_removing(directory)
            self._want(self._configs[name], directory, is_present=is_present)

    def is_ready(self, name: str) -> bool:
        """Return whether a package is ready. Unknown names count as ready, because the check of the
        configuration has already reported them."""
        directory = self._directories.get(name)
        return directory is None or self._entries[directory].state is State.READY

    def describe_missing(self, names: Iterable[str]) -> Unavailable | None:
        """Return the reason why some of the packages are not ready; None if all are ready."""
        missing = [self._describe(name) for name in sorted(names) if not self.is_ready(name)]
        if not missing:
            return None
        # Put failures first, because they need attention.
        missing.sort(key=lambda each: each.is_temporary)
        return Unavailable("; ".join(each.reason for each in missing), missing[0].is_temporary)

    @property
    def all_ready(self) -> bool:
        return all(entry.state is State.READY for entry in self._entries.values())

    def _describe(self, name: str) -> Unavailable:
        entry = self._entries[self._directories[name]]
        version = f" {entry.config.version}" if entry.config.version else ""
        text = f'package "{name}"{version} {entry.describe()}'
        return Unavailable(self._redact(text), is_temporary=entry.state is not State.FAILED)

    def statuses(self) -> list[PackageStatus]:
        return [
            PackageStatus(
                name,
                (config := self._configs[name]).type,
                config.version,
                (entry := self._entries[directory]).state,
                entry.since,
                self._redact(entry.reason),
                entry.done,
                entry.total,
            )
            for name, directory in self._directories.items()
        ]

    async def remove_unused(self) -> None:
        """Remove the versions that no configuration uses."""
        await self._store.remove_unused(lambda: set(self._directories.values()))

    async def aclose(self) -> None:
        for entry in self._entries.values():
            self._end(entry)
        for task in self._ending:
            task.cancel()
        await asyncio.gather(*self._ending, return_exceptions=True)
        await self._store.aclose()
        await self._archives.aclose()

    def _want(self, config: PackageConfig, directory: Path, *, is_present: bool) -> None:
        entry = self._entries.get(directory)
        if entry is None:
            entry = PackageEntry(config, PackageSlot(directory), self._clock.time())
            self._entries[directory] = entry
            if is_present:
                entry.state = State.READY
        elif entry.config.status != config.status:
            # Retry now: the cloud may offer the package by now.
            self._end(entry)
        entry.config = config
        if entry.state is not State.READY and entry.task is None:
            entry.task = asyncio.get_running_loop().create_task(
                self._get(entry), name=f"package {config.name}"
            )

    def _end(self, entry: PackageEntry) -> None:
        task, entry.task = entry.task, None
        if task is not None:
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def _get(self, entry: PackageEntry) -> None:
        """Retry until the package is ready."""
        failures = 0
        while True:
            await self._store.wait_until_prepared()
            retry, proceeded = _RETRY, False
            try:
                async with self._slots:
                    await self._try(entry)
            except _InterruptedDownload as error:
                proceeded, reason = True, str(error)
            except BadPackage as error:
                retry, reason = _RETRY_BAD, str(error)
            except _FilesMissing as error:
                retry, reason = _RETRY_PRESENCE, str(error)
            except CogworkError as error:
                reason = str(error)
            except Exception as error:
                _log.exception("internal error while downloading package %s", entry.config.name)
                retry, reason = _RETRY_BAD, typed_error_text(error)
            else:
                _log.info("package %s is ready in %s", entry.config.name, entry.slot.directory)
                self._set_state(entry, State.READY)
                return
            failures = 1 if proceeded else failures + 1
            if not proceeded:
                self._report_failure(entry, reason, failures)
            await self._clock.sleep(retry.delay(failures))

    def _report_failure(self, entry: PackageEntry, reason: str, failures: int) -> None:
        if failures == 1 or reason != entry.reason:
            _log.warning("cannot get package %s: %s", entry.config.name, self._redact(reason))
        self._set_state(entry, State.FAILED, reason)

    async def _try(self, entry: PackageEntry) -> None:
        """Download a package once. Raise CogworkError."""
        from cogwork.packages.fetch import Fetch

        config, directory = entry.config, entry.slot.directory
        if await self._store.contains(directory):
            return
        if config.folder is not None:
            raise _FilesMissing(f"the folder {directory} does not exist")
        if config.status is not None and config.status.error:
            raise _FilesMissing(f"the cloud says: {config.status.error}")
        if not has_source(config, self._archives.cloud):
            raise _FilesMissing(
                'it has no source; add its "url", join a cloud that has it, or put its files into '
                f"{directory}"
            )
        source = await self._archives.locate(config)
        fetch = Fetch(entry.slot, source, config.package, config.version, config.sha256)
        await self._run(entry, fetch)

    async def _run(self, entry: PackageEntry, fetch: Fetch) -> None:
        """Run a fetch in a thread, and report its progress. Raise CogworkError."""
        workers = Workers(f"package {entry.config.name}")
        work = asyncio.ensure_future(workers.run(fetch.run))
        try:
            while not work.done():
                self._follow(entry, fetch)
                await self._clock.wait({work}, _PROGRESS_INTERVAL)
            self._follow(entry, fetch)
            work.result()
        except PackageUnavailable as error:
            raise (_InterruptedDownload(str(error)) if fetch.received else error) from None
        finally:
            fetch.cancel()
            await asyncio.gather(work, return_exceptions=True)
            workers.close()

    def _follow(self, entry: PackageEntry, fetch: Fetch) -> None:
        state, done, total = fetch.progress
        self._set_state(entry, state, "", done, total)

    def _set_state(
        self,
        entry: PackageEntry,
        state: State,
        reason: str = "",
        done: int | None = None,
        total: int | None = None,
    ) -> None:
        has_changed = entry.update(self._clock.time(), state, reason, done, total)
        if has_changed and self._entries.get(entry.slot.directory) is entry:
            self._notify_changed()


class _FilesMissing(CogworkError):
    """The files of a package are missing, and there is no source to download them from."""


class _InterruptedDownload(CogworkError):
    """A download was interrupted after some progress."""

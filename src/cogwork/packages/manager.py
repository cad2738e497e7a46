"""The package manager: gets the packages that are configured.

Each package that is missing has a task of its own, so that none waits for a broken one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cogwork.config.cloud import CloudConfig
from cogwork.config.packages import has_source, locate_package, store_of
from cogwork.config.schema import PackageConfig
from cogwork.core.backoff import RetryPolicy
from cogwork.core.clock import Clock
from cogwork.core.error_text import typed_error_text
from cogwork.core.errors import CogworkError
from cogwork.core.workers import TooMuchWork, Workers, run_in_thread
from cogwork.graph.provider import Unavailable
from cogwork.packages.cleanup import UsageFile, find_unused, remove_leftovers, remove_slots
from cogwork.packages.errors import BadPackage, PackageUnavailable
from cogwork.packages.sizes import format_size
from cogwork.packages.slot import Slot
from cogwork.robot.package_host import PackageState as State
from cogwork.robot.package_host import PackageStatus

if TYPE_CHECKING:
    from cogwork.packages.cloud_packages import CloudPackages
    from cogwork.packages.fetch import ArchiveSource, Fetch

_AT_ONCE: Final = 8
"""Packages that are downloaded at the same time."""
_PROGRESS_INTERVAL: Final = 0.5
_DISK_TIMEOUT: Final = 30.0
_CLEANUP_TIMEOUT: Final = 600.0
_RETRY: Final = RetryPolicy(first=1.0, maximum=60.0)
_RETRY_PRESENCE: Final = RetryPolicy(first=1.0, maximum=10.0)
"""For packages without a source, whose files may be put into place by hand."""
_RETRY_BAD: Final = RetryPolicy(first=10.0, maximum=3600.0)
"""For archives that are wrong, and large."""
_STEP: Final = 10
"""Percent after which the reason of a waiting resource changes: each change is recorded."""

_log = logging.getLogger("rdk.package_manager")


@dataclass
class _Entry:
    """One directory that is needed, under the names of its packages."""

    config: PackageConfig
    slot: Slot
    since: float
    state: State = State.WAITING
    reason: str = ""
    done: int = 0
    total: int | None = None
    task: asyncio.Task[None] | None = None

    @property
    def step(self) -> tuple[State, str, int]:
        """What others are told when it changes."""
        return self.state, self.reason, _percent(self.done, self.total) // _STEP


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
        """`notify_changed` is called when a package becomes ready or fails, or has proceeded.

        `config_file`: whose packages these are. `allow_plaintext`: the login of the machine may
        travel unencrypted.
        """
        self._home = home
        self._store = store_of(home)
        self._usage = UsageFile(self._store, config_file)
        self._clock = clock
        self._notify_changed = notify_changed
        self._allow_plaintext = allow_plaintext
        self._redact = redact
        self._entries: dict[Path, _Entry] = {}
        self._directories: dict[str, Path] = {}
        """By the names of the packages."""
        self._configs: dict[str, PackageConfig] = {}
        self._cloud: CloudConfig | None = None
        self._connection: tuple[CloudConfig, CloudPackages] | None = None
        self._removing: frozenset[Path] = frozenset()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._cleanup_lock = asyncio.Lock()
        self._ending: set[asyncio.Task[None]] = set()
        self._preparing: asyncio.Task[None] | None = None

    def apply(
        self,
        packages: Sequence[PackageConfig],
        present: Collection[str],
        cloud: CloudConfig | None,
    ) -> None:
        """Get the packages that are missing. `present`: the names of those that are there."""
        self._cloud = cloud
        self._configs = {package.name: package for package in packages}
        self._directories = {
            package.name: locate_package(package, self._home) for package in packages
        }
        for directory in self._entries.keys() - set(self._directories.values()):
            self._end(self._entries.pop(directory))
        self._prepare()
        for name, directory in self._directories.items():
            is_present = name in present and directory not in self._removing
            self._want(self._configs[name], directory, is_present=is_present)

    def is_ready(self, name: str) -> bool:
        """Return whether a package is there. Unknown ones have been reported by the check."""
        directory = self._directories.get(name)
        return directory is None or self._entries[directory].state is State.READY

    def describe_missing(self, names: Iterable[str]) -> Unavailable | None:
        """Return why some of the packages are not ready; None if all are."""
        missing = [self._describe(name) for name in sorted(names) if not self.is_ready(name)]
        if not missing:
            return None
        # Failures come first: they need attention.
        missing.sort(key=lambda each: each.is_temporary)
        return Unavailable("; ".join(each.reason for each in missing), missing[0].is_temporary)

    @property
    def all_ready(self) -> bool:
        return all(entry.state is State.READY for entry in self._entries.values())

    def _describe(self, name: str) -> Unavailable:
        entry = self._entries[self._directories[name]]
        version = f" {entry.config.version}" if entry.config.version else ""
        text = f'package "{name}"{version} {_describe_state(entry)}'
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
        """Remove the versions that no configuration refers to."""
        async with self._cleanup_lock:
            if self._preparing is not None:
                await asyncio.wait({self._preparing})
            with contextlib.suppress(TimeoutError, TooMuchWork):
                unused = await run_in_thread("packages", _DISK_TIMEOUT, self._find_unused)
                wanted = set(self._directories.values())
                unused = [slot for slot in unused if slot.directory not in wanted]
                self._removing = frozenset(slot.directory for slot in unused)
                for gone in await run_in_thread("packages", _CLEANUP_TIMEOUT, remove_slots, unused):
                    _log.info("removed %s, which is not used any more", gone)
            self._removing = frozenset()

    async def aclose(self) -> None:
        for entry in self._entries.values():
            self._end(entry)
        tasks = {*self._ending, *([self._preparing] if self._preparing is not None else [])}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._disconnect()

    def _find_unused(self) -> list[Slot]:
        return find_unused(self._store, self._usage.read_all())

    def _want(self, config: PackageConfig, directory: Path, *, is_present: bool) -> None:
        entry = self._entries.get(directory)
        if entry is None:
            entry = _Entry(config, Slot(directory), self._clock.time())
            self._entries[directory] = entry
            if is_present:
                entry.state = State.READY
        elif entry.config.status != config.status:
            # The cloud may know it now.
            self._end(entry)
        entry.config = config
        if entry.state is not State.READY and entry.task is None:
            entry.task = asyncio.get_running_loop().create_task(
                self._get(entry), name=f"package {config.name}"
            )

    def _end(self, entry: _Entry) -> None:
        task, entry.task = entry.task, None
        if task is not None:
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def _prepare(self) -> None:
        """Record what is used, before anything new appears, and remove what crashes left."""
        before, directories = self._preparing, set(self._directories.values())

        async def prepare() -> None:
            if before is not None:
                await asyncio.wait({before})
            try:
                await run_in_thread("packages", _DISK_TIMEOUT, self._usage.write, directories)
                if before is None:
                    await run_in_thread(
                        "packages", _DISK_TIMEOUT, remove_leftovers, self._store, directories
                    )
            except (OSError, TimeoutError, TooMuchWork) as error:
                _log.warning("cannot prepare %s: %s", self._store, typed_error_text(error))

        self._preparing = asyncio.get_running_loop().create_task(prepare(), name="packages")

    async def _get(self, entry: _Entry) -> None:
        """Try until the package is there."""
        failures = 0
        while True:
            if self._preparing is not None:
                await asyncio.wait({self._preparing})
            retry, proceeded = _RETRY, False
            try:
                async with self._slots:
                    await self._try(entry)
            except _Proceeded as error:
                proceeded, reason = True, str(error)
            except BadPackage as error:
                retry, reason = _RETRY_BAD, str(error)
            except _NotThere as error:
                retry, reason = _RETRY_PRESENCE, str(error)
            except CogworkError as error:
                reason = str(error)
            except Exception as error:
                _log.exception("getting package %s failed", entry.config.name)
                retry, reason = _RETRY_BAD, typed_error_text(error)
            else:
                _log.info("package %s is ready in %s", entry.config.name, entry.slot.directory)
                self._set_state(entry, State.READY)
                return
            failures = 1 if proceeded else failures + 1
            if not proceeded:
                self._report_failure(entry, reason, failures)
            await self._clock.sleep(retry.delay(failures))

    def _report_failure(self, entry: _Entry, reason: str, failures: int) -> None:
        if failures == 1 or reason != entry.reason:
            _log.warning("package %s: %s", entry.config.name, self._redact(reason))
        self._set_state(entry, State.FAILED, reason)

    async def _try(self, entry: _Entry) -> None:
        """Get a package. Raise CogworkError."""
        from cogwork.packages.fetch import Fetch

        config, directory = entry.config, entry.slot.directory
        if await self._is_directory(directory):
            return
        if config.folder is not None:
            raise _NotThere(f"the folder {directory} does not exist")
        if config.status is not None and config.status.error:
            raise _NotThere(f"the cloud says: {config.status.error}")
        if not has_source(config, self._cloud):
            raise _NotThere(
                'there is no place to get it from; add its "url", join a cloud that has it, or put '
                f"its files into {directory}"
            )
        source = await self._find_source(config)
        fetch = Fetch(entry.slot, source, config.package, config.version, config.sha256)
        await self._run(entry, fetch)

    async def _is_directory(self, directory: Path) -> bool:
        if directory in self._removing:
            async with self._cleanup_lock:
                pass
        try:
            return await run_in_thread("packages", _DISK_TIMEOUT, directory.is_dir)
        except TimeoutError:
            raise PackageUnavailable(
                f"the disk of {directory} did not respond for {_DISK_TIMEOUT:g} s"
            ) from None

    async def _find_source(self, config: PackageConfig) -> ArchiveSource:
        from cogwork.packages.fetch import ArchiveSource

        if config.archive is not None:
            return ArchiveSource(file=config.archive)
        if config.url:
            return ArchiveSource(config.url)
        return await (await self._connect()).locate(config)

    async def _connect(self) -> CloudPackages:
        from cogwork.packages.cloud_packages import CloudPackages

        cloud = self._cloud
        if cloud is None:
            raise PackageUnavailable("the machine has left its cloud")
        if self._connection is None or self._connection[0] != cloud:
            connection = CloudPackages(cloud, allow_plaintext=self._allow_plaintext)
            await self._disconnect()
            self._connection = cloud, connection
        return self._connection[1]

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection[1].aclose()

    async def _run(self, entry: _Entry, fetch: Fetch) -> None:
        """Run a fetch in a thread, and follow its progress. Raise CogworkError."""
        workers = Workers(f"package {entry.config.name}")
        work = asyncio.ensure_future(workers.run(fetch.run))
        try:
            while not work.done():
                self._follow(entry, fetch)
                await self._clock.wait({work}, _PROGRESS_INTERVAL)
            self._follow(entry, fetch)
            work.result()
        except PackageUnavailable as error:
            raise (_Proceeded(str(error)) if fetch.received else error) from None
        finally:
            fetch.cancel()
            await asyncio.gather(work, return_exceptions=True)
            workers.close()

    def _follow(self, entry: _Entry, fetch: Fetch) -> None:
        state, done, total = fetch.progress
        self._set_state(entry, state, "", done, total)

    def _set_state(
        self,
        entry: _Entry,
        state: State,
        reason: str = "",
        done: int | None = None,
        total: int | None = None,
    ) -> None:
        before = entry.step
        if entry.state is not state:
            entry.since = self._clock.time()
        entry.state, entry.reason = state, reason
        if done is not None:
            entry.done, entry.total = done, total
        if entry.step != before and self._entries.get(entry.slot.directory) is entry:
            self._notify_changed()


class _NotThere(CogworkError):
    """Files that are missing on this computer."""


class _Proceeded(CogworkError):
    """A download that was interrupted after it had proceeded."""


def _describe_state(entry: _Entry) -> str:
    match entry.state:
        case State.WAITING:
            return "waits for its download"
        case State.DOWNLOADING:
            return f"is being downloaded{_describe_progress(entry)}"
        case State.UNPACKING:
            return f"is being unpacked{_describe_progress(entry)}"
        case State.READY:
            return "is ready"
        case State.FAILED:
            return f"is not available: {entry.reason}"


def _describe_progress(entry: _Entry) -> str:
    if not entry.total:
        return ""
    percent = _percent(entry.done, entry.total) // _STEP * _STEP
    return f": {percent} % of {format_size(entry.total)}"


def _percent(done: int, total: int | None) -> int:
    return 100 * done // total if total else 0

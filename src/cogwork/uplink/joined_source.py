"""A source of configurations that follows the cloud, if the machine's file names one.

The last configuration is stored on disk, so that the machine can start without its cloud.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from pydantic import ValidationError

from cogwork.config.schema.cloud import CloudConfig
from cogwork.config.source.last_good import LastGood
from cogwork.config.source.sources import ConfigCandidate, ConfigSource
from cogwork.core.backoff import Backoff, RetryPolicy
from cogwork.core.clock import Clock
from cogwork.core.error_text import error_text
from cogwork.core.errors import CogworkError
from cogwork.core.workers import TooMuchWork, Workers, await_future, run_in_thread
from cogwork.uplink.errors import CloudUnavailable

_TIMEOUT: Final = 15.0
"""Timeout of a request for the configuration, in seconds."""
_CACHE_TIMEOUT: Final = 10.0
_PARSE_TIMEOUT: Final = 60.0
_CLOUD_KEY: Final = '"cloud"'
_FIRST_TIMEOUT: Final = 2.0
"""Timeout of the first request in seconds, if an earlier configuration is stored."""
_RETRY: Final = RetryPolicy(first=1.0, maximum=10.0)
_SAFETY_INTERVAL: Final = 300.0
"""Seconds between two requests for the configuration while the cloud also reports changes."""


class CloudLink(Protocol):
    """The connection to a cloud. The content of its messages is opaque here."""

    async def start(self) -> None: ...

    @property
    def is_pushed(self) -> bool:
        """Whether the cloud reports changes at the moment."""

    @property
    def change(self) -> asyncio.Future[None]:
        """A future that is done when the cloud has reported a change since the last fetch began."""

    async def fetch(self, timeout: float) -> bytes:
        """Return the current configuration. Raise CloudUnavailable."""

    def render(self, message: bytes, local: dict[str, Any]) -> str:
        """Return the configuration text for a message and the local file. Raise ValueError."""

    async def stop_following(self) -> None:
        """Stop following changes of the cloud, but keep sending the log."""

    async def aclose(self) -> None: ...


Connect = Callable[[CloudConfig], CloudLink]
"""Connects to a cloud. Raises an error with the reason if the cloud cannot be used."""
ParseText = Callable[[str], Any]
"""Parses JSON with comments, after variable substitution. Raises ValueError."""

_log = logging.getLogger("rdk.config")


class JoinedSource:
    def __init__(
        self,
        file: ConfigSource,
        cache: LastGood,
        parse: ParseText,
        connect: Connect,
        clock: Clock,
    ) -> None:
        """`file` yields the machine's own file. `cache` stores the last message of the cloud."""
        self._file = file
        self._cache = cache
        self._parse = parse
        self._connect = connect
        self._clock = clock
        self._following_file: asyncio.Task[ConfigCandidate] | None = None
        self._local: ConfigCandidate | None = None
        self._document: dict[str, Any] = {}
        self._directory: Path | None = None
        self._cloud: CloudConfig | None = None
        self._link: CloudLink | None = None
        self._has_started = False
        """Whether the cloud in the current file has been asked for a first configuration."""
        self._text = ""
        """The text of the last candidate."""
        # One thread, so that a save that hangs is never completed after a later one.
        self._storing = Workers("cloud configuration")
        self._stored: tuple[str, bytes] | None = None
        """The part and the message in the cache, if they are known."""
        self._backoff = Backoff(_RETRY)
        self._reported: set[type[CloudUnavailable]] = set()
        """Kinds of failures that were logged since the last success."""

    async def next(self) -> ConfigCandidate:
        if self._following_file is None:
            await self._read_file(await self._file.next())
            self._follow_file()
        while True:
            if self._local is not None:
                # The file names no cloud, or has a mistake that its check will report.
                local, self._local = self._local, None
                return local
            link, cloud = self._link, self._cloud
            if link is None or cloud is None:
                await self._wait_for_file(None)
            elif not self._has_started:
                return await self._start(link, cloud)
            elif (candidate := await self._poll(link, cloud)) is not None:
                return candidate

    async def aclose(self) -> None:
        """Stop following. Keep the connection for the log until `leave` is called."""
        if self._following_file is not None:
            self._following_file.cancel()
            await asyncio.gather(self._following_file, return_exceptions=True)
        if self._link is not None:
            await self._link.stop_following()
        await self._file.aclose()
        self._storing.close()

    async def leave(self) -> None:
        """Close the connection to the cloud."""
        if self._link is not None:
            await self._link.aclose()

    async def _read_file(self, candidate: ConfigCandidate) -> None:
        """Apply a new version of the machine's file."""
        if self._link is not None:
            await self._link.aclose()
        self._link = self._cloud = None
        self._has_started, self._text = False, ""
        self._document = await _parse_document(candidate, self._parse)
        self._directory = candidate.directory
        cloud = _parse_cloud(self._document)
        if cloud is None or not cloud.app_address:
            self._local = candidate
            return
        try:
            self._link = self._connect(cloud)
        except (CogworkError, ValueError) as error:
            _log.error("cannot connect to the cloud: %s", error)
            self._local = candidate
            return
        self._cloud = cloud
        await self._link.start()

    def _follow_file(self) -> None:
        self._following_file = asyncio.create_task(self._file.next(), name="machine file")

    async def _wait_for_file(
        self, seconds: float | None, change: asyncio.Future[None] | None = None
    ) -> None:
        """Wait until the file or the configuration in the cloud changes, at most this many
        seconds."""
        assert self._following_file is not None  # `next` has already read the file
        waited_for: list[asyncio.Future[Any]] = [self._following_file]
        await self._clock.wait([*waited_for, change] if change is not None else waited_for, seconds)
        if self._following_file.done():
            await self._read_file(self._following_file.result())
            self._follow_file()

    async def _start(self, link: CloudLink, cloud: CloudConfig) -> ConfigCandidate:
        """Return the first configuration: from the cloud, the cache, or the file alone."""
        self._has_started = True
        cached = await self._read_cache(cloud.id)
        has_answered, found = False, None
        try:
            message = await link.fetch(_FIRST_TIMEOUT if cached is not None else _TIMEOUT)
        except CloudUnavailable as error:
            self._report_failure(error)
        else:
            has_answered = True
            found = self._make_candidate(link, cloud, message)
        if found is None and cached is not None:
            self._stored = cloud.id, cached
            found = self._make_candidate(link, cloud, cached)
            if found is not None:
                _log.warning("running the stored configuration from the cloud")
        if found is None:
            _log.error(
                "running only the machine's own file until the cloud %s",
                "sends a configuration that can be read" if has_answered else "answers",
            )
        return found or ConfigCandidate(json.dumps(self._document), directory=self._directory)

    async def _poll(self, link: CloudLink, cloud: CloudConfig) -> ConfigCandidate | None:
        """Wait until a fetch is due. Return the cloud's configuration if it has changed."""
        await self._wait_until_due(link, cloud)
        if link is not self._link:
            return None
        try:
            message = await link.fetch(_TIMEOUT)
        except CloudUnavailable as error:
            self._report_failure(error)
            return None
        if self._backoff.failures:
            _log.info("the cloud answers again")
        self._backoff.reset()
        self._reported.clear()
        return self._make_candidate(link, cloud, message)

    async def _wait_until_due(self, link: CloudLink, cloud: CloudConfig) -> None:
        """Wait until the configuration should be fetched, or the file has changed."""
        began = self._clock.monotonic()
        while True:
            # Wait in short intervals, because the cloud may stop reporting changes at any time.
            await self._wait_for_file(max(self._backoff.delay, cloud.refresh_interval), link.change)
            waited = self._clock.monotonic() - began
            if link is not self._link or link.change.done():
                return
            if not link.is_pushed or self._backoff.failures or waited >= _SAFETY_INTERVAL:
                return

    def _make_candidate(
        self, link: CloudLink, cloud: CloudConfig, message: bytes
    ) -> ConfigCandidate | None:
        """Return a candidate for a message; None if it changes nothing or cannot be used."""
        try:
            text = link.render(message, self._document)
        except ValueError as error:
            _log.error(
                "the configuration from the cloud cannot be read: %s; save it in the cloud again, "
                "or update cogwork-server",
                error,
            )
            return None
        if text == self._text:
            return None
        self._text = text
        store = partial(self._save, cloud.id, message)
        return ConfigCandidate(text, store=store, directory=self._directory)

    async def _read_cache(self, part: str) -> bytes | None:
        try:
            text = await run_in_thread("cloud configuration", _CACHE_TIMEOUT, self._cache.read)
            document = json.loads(text) if text is not None else {}
            if not isinstance(document, dict) or document.get("part") != part:
                return None
            return bytes.fromhex(document["message"])
        except (CogworkError, ValueError, KeyError, TimeoutError) as error:
            _log.error("the stored configuration from the cloud cannot be used: %s", error)
            return None

    async def _save(self, part: str, message: bytes) -> None:
        """Store a message, so that the machine can start without the cloud."""
        if (part, message) == self._stored:
            return
        content = json.dumps({"part": part, "message": message.hex()})
        try:
            async with asyncio.timeout(_CACHE_TIMEOUT):
                await await_future(self._storing.submit(self._cache.save, content))
        except (OSError, TimeoutError, TooMuchWork) as error:
            _log.warning(
                "cannot store the configuration from the cloud: %s; until a later one is stored, "
                "the machine starts with an earlier one if the cloud is unreachable",
                error_text(error),
            )
        else:
            self._stored = part, message

    def _report_failure(self, error: CloudUnavailable) -> None:
        self._backoff.next_delay()
        if type(error) not in self._reported:
            self._reported.add(type(error))
            _log.warning("%s; keeping the current configuration and trying again", error)


async def _parse_document(candidate: ConfigCandidate, parse: ParseText) -> dict[str, Any]:
    """Return the parsed file; empty if it names no cloud or is malformed."""
    if not isinstance(candidate.content, str) or _CLOUD_KEY not in candidate.content.lower():
        return {}
    try:
        found = await run_in_thread("machine file", _PARSE_TIMEOUT, parse, candidate.content)
    except (ValueError, MemoryError, TimeoutError, TooMuchWork):
        return {}
    return found if isinstance(found, dict) else {}


def _parse_cloud(document: dict[str, Any]) -> CloudConfig | None:
    try:
        return CloudConfig.model_validate(document["cloud"]) if document.get("cloud") else None
    except ValidationError:
        return None

"""Fetches, stores and updates the access list that a cloud makes for its machine."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Final

from google.protobuf.wrappers_pb2 import StringValue

from cogwork.auth.access_list import AccessList, encode_access_list, parse_access_list
from cogwork.core.clock import Clock
from cogwork.core.error_text import error_text
from cogwork.core.files import atomic
from cogwork.uplink.cloud_client import CloudClient
from cogwork.uplink.errors import CloudUnavailable, MethodMissing
from cogwork.wire.messages.follow_method import GET_ACCESS

_CHECK_INTERVAL: Final = 60.0
"""Seconds between two checks for expired entries."""
_STORE_INTERVAL: Final = 86_400.0
"""Seconds until a confirmed list is stored again. Long, because every write wears out the flash
memory."""
_ASK_INTERVAL: Final = 1.0
"""Seconds between two requests for the list because of a client that is not on it."""
_MAX_ASK_INTERVAL: Final = 60.0
"""Maximum interval after requests that changed nothing. Any client on the network can cause such
requests."""
_ASK_TIMEOUT: Final = 3.0

_log = logging.getLogger("rdk.auth")


class AccessLink:
    def __init__(
        self,
        file: Path,
        client: CloudClient,
        part: str,
        clock: Clock,
        use: Callable[[AccessList], None],
    ) -> None:
        """`file` stores the list. `use` is called with the valid entries whenever they change."""
        self._file = file
        self._client = client
        self._part = part
        self._clock = clock
        self._use = use
        self._access: AccessList | None = None
        self._stored: AccessList | None = None
        self._used: AccessList | None = None
        self._confirmed_at: float | None = None
        """The monotonic time of the last confirmation by the cloud; None before the first one."""
        self._loaded_at = clock.monotonic()
        self._asked_at = clock.monotonic() - _ASK_INTERVAL
        self._ask_interval = _ASK_INTERVAL
        self._ended: set[str] = set()
        """Principals removed during the current request, because its response may still list
        them."""
        self.clock_offset = 0.0
        """Seconds by which this machine's clock is ahead of the cloud's clock."""
        self._lock = asyncio.Lock()
        self._asking: asyncio.Task[None] | None = None
        self._storing: asyncio.Task[None] | None = None

    @property
    def revision(self) -> str:
        """The revision of the list; empty without a list, or if entries were removed from it."""
        return self._access.revision if self._access is not None else ""

    @property
    def is_known(self) -> bool:
        """Whether the machine has a list from the cloud."""
        return self._access is not None

    async def use_stored(self) -> None:
        """Use the stored list, if it exists."""
        try:
            access = self._parse(await asyncio.to_thread(self._file.read_bytes))
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            _log.error(
                "the access list in %s cannot be used: %s; until the cloud answers, clients with "
                "credentials of the cloud cannot log in",
                *(self._file, error_text(error)),
            )
            return
        self._access = self._stored = access
        self._loaded_at = self._clock.monotonic()
        self._apply()

    async def run(self) -> None:
        """Remove expired entries until cancelled."""
        while True:
            await self._clock.sleep(_CHECK_INTERVAL)
            self._apply()

    async def refresh(self, timeout: float) -> bool:
        """Fetch the list. Return whether it has changed. Raise CloudUnavailable.

        Return False for a cloud of another vendor, which makes no lists and puts logins into the
        configuration.
        """
        async with self._lock:
            began = self._asked_at = self._clock.monotonic()
            self._ended.clear()
            try:
                reply = await self._client.call(
                    GET_ACCESS, StringValue(value=self._part), StringValue, timeout
                )
                access = self._parse(reply.value)
            except MethodMissing:
                return False
            except ValueError as error:
                raise CloudUnavailable(
                    f"cannot use the access list from the cloud: {error}"
                ) from None
            has_changed = access.revision != self.revision
            self._access, self._confirmed_at = access.without(self._ended), began
            self.clock_offset = self._clock.time() - access.issued_at
            self._apply()
            await self._store(self._access)
            return has_changed

    async def ask(self) -> bool:
        """Fetch the list because a client is not on it. Return whether the list has changed.

        All waiting clients share one request, and requests have a minimum interval. The interval
        grows after requests that changed nothing. A client does not wait if the interval has grown,
        because the cloud reports changes anyway.
        """
        before = self._access
        if self._asking is None or self._asking.done():
            wait = self._asked_at + self._ask_interval - self._clock.monotonic()
            if wait > _ASK_INTERVAL:
                return False
            self._asking = asyncio.create_task(self._ask(wait), name="access list")
        await asyncio.shield(self._asking)
        return self._access is not None and self._access.revision != (
            before.revision if before is not None else ""
        )

    async def _ask(self, wait: float) -> None:
        await self._clock.sleep(wait)
        has_changed = False
        with contextlib.suppress(CloudUnavailable):
            has_changed = await self.refresh(_ASK_TIMEOUT)
        longer = min(2 * self._ask_interval, _MAX_ASK_INTERVAL)
        self._ask_interval = _ASK_INTERVAL if has_changed else longer

    async def aclose(self) -> None:
        tasks = [each for each in (self._asking, self._storing) if each is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def end(self, principals: Collection[str]) -> None:
        """Remove the entries of principals whose access has ended."""
        self._ended.update(principals)
        if self._access is not None:
            self._access = self._access.without(principals)
            self._apply()
            if self._storing is None or self._storing.done():
                self._storing = asyncio.create_task(self._store_ended(), name="ended access")

    async def _store_ended(self) -> None:
        """Store the list without the removed entries, in case the machine restarts while the cloud
        is unreachable."""
        async with self._lock:
            stored = None
            while self._access is not None and self._access is not stored:
                stored = self._access
                await self._store(stored)

    def _parse(self, text: str | bytes) -> AccessList:
        """Parse a list. Raise ValueError if it is malformed or of another part."""
        access = parse_access_list(text)
        if access.part != self._part:
            raise ValueError("the list belongs to another part")
        return access

    def _apply(self) -> None:
        if self._access is None:
            return
        found = self._access.at(self._now(self._access))
        if found != self._used:
            if not found.entries and self._access.entries:
                _log.warning(
                    "the cloud has not confirmed the access list for too long; until it does, only "
                    "keys in the machine's own file can log in"
                )
            self._used = found
            self._use(found)

    def _now(self, access: AccessList) -> float:
        """Return the cloud's time, estimated because the machine's clock may be wrong."""
        monotonic = self._clock.monotonic()
        if self._confirmed_at is not None:
            return access.issued_at + monotonic - self._confirmed_at
        return max(self._clock.time(), access.issued_at + monotonic - self._loaded_at)

    async def _store(self, access: AccessList) -> None:
        stored = self._stored
        is_same = stored is not None and access == replace(
            stored, issued_at=access.issued_at, fresh_until=access.fresh_until
        )
        if is_same and stored is not None and access.issued_at - stored.issued_at < _STORE_INTERVAL:
            return
        try:
            await asyncio.to_thread(self._write, encode_access_list(access))
        except OSError as error:
            if is_same:
                return  # the stored list has the same entries; they only expire earlier
            # Delete the stored list: it may contain principals whose access has ended.
            with contextlib.suppress(OSError):
                await asyncio.to_thread(self._file.unlink, missing_ok=True)
            self._stored = None
            _log.warning(
                "cannot store the access list in %s: %s; after a restart, clients with "
                "credentials of the cloud cannot log in until the cloud answers",
                *(self._file, error_text(error)),
            )
        else:
            self._stored = access

    def _write(self, text: str) -> None:
        atomic.make_directory(self._file.parent)
        atomic.write(self._file, text.encode(), 0o600)

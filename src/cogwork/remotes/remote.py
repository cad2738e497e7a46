"""A configured remote: connects, learns its resources, and connects again when it is lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

import grpc.aio
from google.protobuf.descriptor_pool import DescriptorPool

from cogwork.config.schema import RemoteConfig
from cogwork.core.clock import Clock
from cogwork.graph.name import Api
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.public_apis import SERVICE_BY_API
from cogwork.graph.spec import Spec
from cogwork.remotes.dialing import connect, find_login, log_in
from cogwork.remotes.errors import CALL_TIMEOUT, RemoteUnavailable, describe
from cogwork.remotes.names import remote_spec, resource_specs
from cogwork.remotes.session import RemoteSession

_log = logging.getLogger("rdk.remotes")

_MIN_INTERVAL: Final = 0.02
"""Seconds. The intervals of a configuration may be zero."""


@dataclass(frozen=True, slots=True)
class RemoteContext:
    clock: Clock
    on_change: Callable[[], None]
    """Called when its resources change, appear, or can no longer be reached."""
    allow_plaintext: bool = False
    """Whether a login may travel unencrypted."""


class Remote:
    def __init__(self, config: RemoteConfig, context: RemoteContext) -> None:
        self.config = config
        self.fault = "connecting"
        """Why it cannot be used; empty if it can."""
        self.is_connecting = True
        """Whether the first attempt has not ended yet."""
        self._context = context
        self._clock = context.clock
        self.services: Mapping[Api, str] = {}
        """The gRPC services of APIs that this server does not have itself."""
        self.descriptors: Mapping[str, DescriptorPool] = {}
        """Their descriptors, by service."""
        self._names: list[tuple[Api, str]] = []
        self._session: RemoteSession | None = None
        self._sessions = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(
            self._run(), name=f"remote {self.config.name}"
        )

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def specs(self) -> list[Spec]:
        """Return the nodes of the remote and of its resources, also while it is away."""
        name, prefix = self.config.name, self.config.prefix
        return [remote_spec(name), *resource_specs(name, prefix, self._names)]

    def offer(self) -> Offer | Unavailable:
        if self._session is None:
            reason = f"remote {self.config.name} at {self.config.address}: {self.fault}"
            return Unavailable(reason, is_temporary=self.is_connecting)
        return Offer(self._session, self._session.number)

    async def _run(self) -> None:
        while True:
            began = self._clock.monotonic()
            try:
                await self._stay_connected()
            except RemoteUnavailable as error:
                self._lose(str(error))
            except grpc.aio.AioRpcError as error:
                self._lose(describe(error))
            # Not after the loss of a connection, which may be replaced at once.
            next_attempt = began + max(self.config.reconnect_interval, _MIN_INTERVAL)
            await self._clock.sleep(max(0.0, next_attempt - self._clock.monotonic()))

    async def _stay_connected(self) -> None:
        """Connect, and follow the resources until the connection is lost."""
        # Images fill a slow connection for seconds, so heartbeats have one of their own.
        async with self._connect() as control, self._connect() as calls:
            login = await log_in(control, find_login(self.config))
            self._sessions += 1
            session = RemoteSession(self._sessions, control, calls, login, self._clock)
            heartbeat = await session.start()
            try:
                await self._follow(session, heartbeat)
            finally:
                self._session = None

    def _connect(self) -> AbstractAsyncContextManager[grpc.aio.Channel]:
        allow_plaintext = self._context.allow_plaintext
        return connect(self.config, self._clock, allow_plaintext=allow_plaintext)

    async def _follow(self, session: RemoteSession, heartbeat: float | None) -> None:
        """Raise RemoteUnavailable or AioRpcError when the connection is lost."""
        watching: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._list(session))]
        watching.append(asyncio.ensure_future(session.wait_until_lost()))
        watching.append(asyncio.ensure_future(self._renew_calls(session)))
        if heartbeat is not None:
            watching.append(asyncio.ensure_future(session.send_heartbeats(heartbeat)))
        try:
            done, _ = await asyncio.wait(watching, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
            raise RemoteUnavailable("the connection was lost; connecting again")
        finally:
            for each in watching:
                each.cancel()
            await asyncio.gather(*watching, return_exceptions=True)

    async def _renew_calls(self, session: RemoteSession) -> None:
        """Make calls over another connection after an outage that the session survived.

        TCP waits twice as long each time it repeats what is lost, so the former connection may be
        silent for as long again as the network was away.
        """
        renewed: list[AsyncExitStack] = []
        try:
            while True:
                await session.wait_until_late()
                renewed.append(AsyncExitStack())
                session.use_for_calls(await renewed[-1].enter_async_context(self._connect()))
                # What is under way on the former connection may still be answered.
                await self._clock.sleep(CALL_TIMEOUT)
                while len(renewed) > 1:
                    await renewed.pop(0).aclose()
        finally:
            for each in renewed:
                await each.aclose()

    async def _list(self, session: RemoteSession) -> None:
        """Ask for the names of its resources, again and again.

        No method of the public API tells of changes. Asking is cheap: our server keeps the reply
        until the names change, and the same reply is not parsed again. However often the resources
        change, the graph changes only as often as they are listed.
        """
        while True:
            names = await session.list_resources()
            if names != self._names or self._session is not session:
                unknown = {api for api, _ in names} - SERVICE_BY_API.keys()
                if unknown != self.services.keys():
                    self.services, self.descriptors = await session.describe_services(unknown)
                self._names = names
                self._find(session)
            interval = max(self.config.connection_check_interval, _MIN_INTERVAL)
            await self._clock.sleep(max(interval, session.min_list_interval))

    def _find(self, session: RemoteSession) -> None:
        if self._session is not session:
            _log.info("remote %s is connected: %s", self.config.name, self.config.address)
        self._session, self.fault, self.is_connecting = session, "", False
        self._context.on_change()

    def _lose(self, reason: str) -> None:
        if self.fault == reason and not self.is_connecting:
            return  # as after the last attempt
        _log.warning("remote %s cannot be used: %s", self.config.name, reason)
        self.fault, self.is_connecting = reason, False
        self._context.on_change()

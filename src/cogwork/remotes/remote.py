"""A configured remote: connects, lists its resources, and reconnects after a failure."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import grpc.aio
from google.protobuf.descriptor_pool import DescriptorPool
from viam.gen.common.v1 import common_pb2 as common

from cogwork.config.schema.machine import RemoteConfig
from cogwork.core.clock import Clock
from cogwork.graph.name import Api, ResourceName
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.public_apis import SERVICE_BY_API
from cogwork.graph.spec import Spec
from cogwork.remotes.change_limit import ChangeLimit
from cogwork.remotes.connection import RemoteConnection
from cogwork.remotes.errors import RemoteUnavailable, describe
from cogwork.remotes.frames import place_frames
from cogwork.remotes.names import MAX_FOREIGN_APIS, MAX_RESOURCES, ResourceList, remote_spec
from cogwork.remotes.session import RemoteSession
from cogwork.robot.placed_frame import PlacedFrame

_log = logging.getLogger("rdk.remotes")

_MIN_INTERVAL: Final = 0.02
"""Minimum seconds for a configured interval, which may be set to zero."""
_FRAMES_INTERVAL: Final = 5.0
"""Seconds between two reads of the frames, which seldom change unless the resources do."""
_DESCRIBING_COST: Final = 200
"""Fetching the descriptors of APIs counts as this many changes for `ChangeLimit`."""
_LONG_WAIT: Final = 5.0
"""If the resources will be listed again only after at least this many seconds, the status explains
the delay."""

Connect = Callable[[RemoteConfig], Awaitable[RemoteConnection]]
"""A function that connects and logs in. It raises RemoteUnavailable or AioRpcError."""


@dataclass(frozen=True, slots=True)
class RemoteContext:
    clock: Clock
    on_change: Callable[[], None]
    """Function to call when the remote's resources change, become available or become
    unavailable."""
    connect: Connect


class Remote:
    def __init__(self, config: RemoteConfig, context: RemoteContext) -> None:
        self.config = config
        self._spec = remote_spec(config.name)
        self.fault = "connecting"
        """The reason why the remote is unavailable; empty if it is connected."""
        self.is_connecting = True
        """Whether the first attempt to connect is still running."""
        self._context = context
        self._clock = context.clock
        self.services: Mapping[Api, str] = {}
        """The gRPC services of APIs that this server does not implement, by API."""
        self.descriptors: Mapping[str, DescriptorPool] = {}
        """Descriptors of the services in `services`, by the name of the service."""
        self.frames: Sequence[PlacedFrame] = place_frames(config, (), ())
        """Frames of the remote on this machine. They are kept while it is disconnected."""
        self._specs: dict[ResourceName, Spec] = {}
        """The nodes of the remote's resources."""
        self._listed: ResourceList | None = None
        """The latest list of resources, until it is applied."""
        self._changes = ChangeLimit(context.clock)
        self._left_out = 0
        """Number of resources beyond the limits."""
        self._transforms: list[common.Transform] = []
        self._frames_due = 0.0
        self._frames_fault = ""
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
        """Return the nodes of the remote and of its resources, even while it is disconnected."""
        return [self._spec, *self._specs.values()]

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
            # If the connection was up for longer than the reconnect interval, reconnect
            # immediately.
            next_attempt = began + max(self.config.reconnect_interval, _MIN_INTERVAL)
            await self._clock.sleep(max(0.0, next_attempt - self._clock.monotonic()))

    async def _stay_connected(self) -> None:
        """Connect, and keep the resources up to date until the connection is lost."""
        connection = await self._context.connect(self.config)
        self._sessions += 1
        session = RemoteSession(self._sessions, connection, self._clock)
        try:
            heartbeat = await session.start()
            await self._follow(session, connection, heartbeat)
        finally:
            self._session = None
            where = f"remote {self.config.name} at {self.config.address}"
            session.end(f"the connection to {where} was lost; connecting again")
            await connection.aclose()

    async def _follow(
        self, session: RemoteSession, connection: RemoteConnection, heartbeat: float | None
    ) -> None:
        """Keep the resources up to date. Raise RemoteUnavailable or AioRpcError when the connection
        is lost."""
        watching: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._list(session))]
        watching.append(asyncio.ensure_future(connection.wait_until_lost()))
        if heartbeat is not None:
            watching.append(asyncio.ensure_future(session.send_heartbeats(heartbeat)))
            watching.append(asyncio.ensure_future(session.renew_when_late()))
        try:
            done, _ = await asyncio.wait(watching, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
            raise RemoteUnavailable("the connection was lost; connecting again")
        finally:
            for each in watching:
                each.cancel()
            await asyncio.gather(*watching, return_exceptions=True)

    async def _list(self, session: RemoteSession) -> None:
        """List the remote's resources periodically.

        The public API has no notification of changes. Polling is cheap: our server caches the reply
        until the names change, and an unchanged reply is not parsed again. Each listing changes the
        graph at most once, so if many resources change, they are listed less often.
        """
        while True:
            try:
                await self._list_once(session)
            except grpc.aio.AioRpcError as error:
                if self._session is not session or session.is_lost_by(error):
                    raise
            interval = max(self.config.connection_check_interval, _MIN_INTERVAL)
            await self._clock.sleep(
                max(interval, session.min_list_interval, self._changes.wait_time())
            )

    async def _list_once(self, session: RemoteSession) -> None:
        listed = ResourceList(self.config.name, self.config.prefix, self._specs)
        if await session.list_resources(listed.add):
            self._listed = listed
        if self._listed is not None:
            await self._apply_list(session, self._listed)
            self._listed = None
        elif self._clock.monotonic() >= self._frames_due:
            placed = self._transforms
            await self._list_frames(session)
            if self._transforms is not placed and self._place_frames():
                self._context.on_change()
        self._report_limits(session)

    async def _apply_list(self, session: RemoteSession, listed: ResourceList) -> None:
        self._left_out = listed.left_out
        specs = listed.specs
        # Ignore the order: many machines list the same resources in another order each time.
        changes = len(specs.keys() ^ self._specs.keys())
        if not changes and self._session is session:
            return
        unknown = {name.api for name in specs} - SERVICE_BY_API.keys()
        if unknown != self.services.keys():
            changes += _DESCRIBING_COST
            self.services, self.descriptors = await session.describe_services(unknown)
        self._changes.spend(changes)
        placed, self._specs = self._transforms, specs
        await self._list_frames(session)
        # Skip placing if the frames are unchanged, as they often are after a reconnect: placing is
        # slow.
        if changes or self._transforms is not placed:
            self._place_frames()
        self._find(session)

    def _report_limits(self, session: RemoteSession) -> None:
        """Set the fault of the session: the limits that the remote exceeds, or None. Log the fault
        if the session had none before."""
        was_fine, session.fault = session.fault is None, self._describe_limits(session)
        if was_fine and session.fault is not None:
            _log.warning("remote %s has a problem: %s", self.config.name, session.fault)

    def _describe_limits(self, session: RemoteSession) -> str | None:
        if self._left_out:
            more = "at least " if session.has_truncated_list else ""
            return (
                f"{more}{self._left_out:,} of its resources are not available here, because a "
                f"remote is limited to {MAX_RESOURCES:,}, and to {MAX_FOREIGN_APIS} APIs that this "
                "server does not have; connect to that machine itself to use them"
            )
        if self._changes.wait_time() > _LONG_WAIT:
            return (
                "its resources change so often that changes appear here with a delay; check the "
                "modules and remotes of that machine"
            )
        return None

    async def _list_frames(self, session: RemoteSession) -> None:
        """Read the remote's frames. If that fails, keep the previous frames."""
        if self.config.frame is None:
            return
        try:
            listed = await session.list_frames()
            if listed != self._transforms:
                self._transforms = listed
            self._frames_fault = ""
        except grpc.aio.AioRpcError as error:
            self._report_frames(describe(error))
        except RemoteUnavailable as error:
            self._report_frames(str(error))
        interval = max(_FRAMES_INTERVAL, session.min_frames_interval)
        self._frames_due = self._clock.monotonic() + interval

    def _place_frames(self) -> bool:
        """Place the frames on this machine. Return whether they have changed."""
        before = self.frames
        self.frames = place_frames(self.config, self._transforms, self._specs.values())
        return self.frames != before

    def _report_frames(self, fault: str) -> None:
        """Log why the frames cannot be read, unless the reason is the same as before."""
        if fault != self._frames_fault:
            self._frames_fault = fault
            _log.warning("cannot read the frames of remote %s: %s", self.config.name, fault)

    def _find(self, session: RemoteSession) -> None:
        if self._session is not session:
            _log.info("remote %s is connected at %s", self.config.name, self.config.address)
        self._session, self.fault, self.is_connecting = session, "", False
        self._context.on_change()

    def _lose(self, reason: str) -> None:
        if self.fault == reason and not self.is_connecting:
            return  # the reason is already reported
        _log.warning("remote %s cannot be used: %s", self.config.name, reason)
        self.fault, self.is_connecting = reason, False
        self._context.on_change()

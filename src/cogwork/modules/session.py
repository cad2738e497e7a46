"""One session of a module, from the time it is ready until its process ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Callable, Collection

import grpc.aio
from google.protobuf.descriptor_pool import DescriptorPool
from viam.gen.app.v1.robot_pb2 import ComponentConfig

from cogwork.config.schema.machine import ResourceConfig
from cogwork.core.errors import CogworkError
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Builder, Dependencies, Offer, Unavailable
from cogwork.graph.public_apis import API_BY_SERVICE
from cogwork.graph.spec import Spec
from cogwork.logs.levels import Level
from cogwork.modules.client import (
    ModuleCallError,
    ModuleCapabilities,
    ModuleClient,
    ValidationResult,
)
from cogwork.modules.config_proto import resource_to_proto
from cogwork.modules.context import ModuleContext
from cogwork.modules.reply_limits import LIMITS
from cogwork.modules.validation_cache import ValidationCache
from cogwork.resource.sdk.clients import connect_resource
from cogwork.wire.clients.fetched_descriptors import (
    DescriptorBudget,
    NotDescribed,
    fetch_descriptors,
)

_GONE_STATUSES = ("NOT_FOUND", "UNAVAILABLE", "CANCELLED")
"""Statuses which mean that the resource, or the module itself, no longer exists."""
_NO_REPLY_STATUSES = ("DEADLINE_EXCEEDED", "UNAVAILABLE", "CANCELLED")
"""Statuses that do not come from the module, so it may have executed the call."""


_DESCRIBE_TIMEOUT = 60.0
"""Timeout in seconds to fetch the descriptors of all services."""


class ModuleEnded(CogworkError):
    """The session of a module has ended."""

    status = "UNAVAILABLE"


class ModuleSession(Builder):
    """Builds, reconfigures and closes the resources in a module."""

    def __init__(
        self,
        number: int,
        capabilities: ModuleCapabilities,
        channel: grpc.aio.Channel,
        target: str,
        context: ModuleContext,
        level_of: Callable[[ResourceName], Level],
        on_provided: Callable[[ResourceName, bool], None],
        forwarded_headers: Collection[str],
    ) -> None:
        """Create a session with a module that is ready.

        `target`: the address of `channel`. `on_provided` is called with True when a resource is
        built, and with False when it is closed.
        """
        self.capabilities = capabilities
        self.client = ModuleClient(channel)
        self.unresponsive_reason: str | None = None
        """The reason why the module does not respond although its process runs; None if it
        responds."""
        self.drained = asyncio.Event()
        """Set when all resources of the module are closed."""
        self.drained.set()
        self.levels: dict[ResourceName, Level] = {}
        """The log levels that were sent to the module, by resource."""
        self.unclosed: set[ResourceName] = set()
        """Resources that the module did not remove in time."""
        self._number = number
        self._channel = channel
        self._target = target
        self._clock = context.clock
        self._deadlines = context.deadlines
        self._level_of = level_of
        self._on_provided = on_provided
        self._forwarded_headers = forwarded_headers
        self._ended = False
        self._names_by_id: dict[int, ResourceName] = {}
        """Resource names by the `id` of the object in the graph."""
        self._configured: dict[ResourceName, tuple[Spec, Dependencies]] = {}
        """The configuration and dependencies that were last sent to the module, by resource."""
        self._changing: defaultdict[ResourceName, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Locks, held while a resource is changed or removed."""
        self._live_resources: set[ResourceName] = set()
        self._maybe_added: set[ResourceName] = set()
        """Resources whose addition was cancelled or timed out. The module may have added them, or
        may still add them."""
        self._withdrawals: dict[ResourceName, asyncio.Task[None]] = {}
        self._validations = ValidationCache(
            self._validate, context.notify_changed, context.clock, context.retry
        )

    async def fetch_descriptors(self) -> dict[str, DescriptorPool]:
        """Fetch the descriptors of services that are not part of the public API.

        Services without descriptors are still served.
        """
        found: dict[str, DescriptorPool] = {}
        budget = DescriptorBudget(LIMITS.descriptions)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DESCRIBE_TIMEOUT):
                for service in sorted(
                    set(self.capabilities.services.values()) - API_BY_SERVICE.keys()
                ):
                    with contextlib.suppress(NotDescribed):
                        found[service] = await fetch_descriptors(self._channel, service, budget)
        return found

    def offer(self, spec: Spec) -> Offer | Unavailable:
        answer = self._validations.get(spec, lives=spec.name in self._live_resources)
        if isinstance(answer, Unavailable):
            return answer
        return Offer(
            self,
            self._number,
            in_place=True,
            invalidates_holders=True,
            needs=answer.needs,
            wants=answer.wants,
        )

    async def build(self, spec: Spec, dependencies: Dependencies) -> object:
        resource = await connect_resource(
            spec.name.api,
            spec.name.short,
            self._channel,
            self._target,
            lambda: self.unresponsive_reason,
            self._forwarded_headers,
        )
        level = self._level_of(spec.name)
        await self._validations.ensure_validated(spec)
        await self._ensure_removed(spec.name)
        await self._add(spec.name, _make_message(spec, level), dependencies)
        if self._ended:
            raise ModuleEnded("its module exited while the resource was being built")
        self._names_by_id[id(resource)] = spec.name
        self._live_resources.add(spec.name)
        self.levels[spec.name] = level
        self._configured[spec.name] = spec, dependencies
        self._on_provided(spec.name, True)
        self.drained.clear()
        return resource

    async def reconfigure(self, resource: object, spec: Spec, dependencies: Dependencies) -> None:
        del resource  # the resource is identified by its name
        await self._validations.ensure_validated(spec)
        async with self._changing[spec.name]:
            await self._reconfigure(spec, dependencies)

    async def _reconfigure(self, spec: Spec, dependencies: Dependencies) -> None:
        level = self._level_of(spec.name)
        message = _make_message(spec, level)
        try:
            await self.client.reconfigure(message, dependencies, self._deadlines.add)
        except ModuleCallError as error:
            if error.status != "UNIMPLEMENTED":
                raise
            await self.client.remove(spec.name, self._deadlines.remove)
            await self.client.add(message, dependencies, self._deadlines.add)
        self.levels[spec.name] = level
        self._configured[spec.name] = spec, dependencies

    async def lower_levels(self) -> None:
        """Send the log levels of resources that should log more than now. Raise ModuleCallError.

        Resources that log too much need no change, because the server drops surplus lines.
        """
        for name in tuple(self._configured):
            async with self._changing[name]:
                known = self._configured.get(name)
                if known is not None and self._level_of(name) < self.levels[name]:
                    await self._reconfigure(*known)

    async def close(self, resource: object) -> None:
        name = self._names_by_id.get(id(resource))
        if name is None:
            return
        self._live_resources.discard(name)
        self._on_provided(name, False)
        try:
            async with self._changing[name]:
                self.levels.pop(name, None)
                self._configured.pop(name, None)
                if not self._ended:
                    await self._remove(name)
        finally:
            self._changing.pop(name, None)
            self._names_by_id.pop(id(resource), None)
            if not self._names_by_id:
                self.drained.set()

    async def end(self) -> None:
        self._ended = True
        for task in self._withdrawals.values():
            task.cancel()
        await asyncio.gather(*self._withdrawals.values(), return_exceptions=True)
        await self._validations.aclose()

    async def _validate(self, spec: Spec) -> ValidationResult:
        message = _make_message(spec, self._level_of(spec.name))
        return await self.client.validate(message, self._deadlines.validate)

    async def _add(
        self, name: ResourceName, message: ComponentConfig, dependencies: Dependencies
    ) -> None:
        try:
            await self.client.add(message, dependencies, self._deadlines.add)
        except ModuleCallError as error:
            if error.status in _NO_REPLY_STATUSES:
                self._start_withdrawal(name)
            raise
        except asyncio.CancelledError:
            self._start_withdrawal(name)
            raise
        self._maybe_added.discard(name)

    def _start_withdrawal(self, name: ResourceName) -> None:
        """Start to remove a resource whose addition failed: its constructor may still complete
        later."""
        self._maybe_added.add(name)
        if not self._ended:
            task = asyncio.get_running_loop().create_task(self._remove_late_addition(name))
            self._withdrawals[name] = task
            task.add_done_callback(lambda _: self._withdrawals.pop(name, None))

    async def _remove_late_addition(self, name: ResourceName) -> None:
        """Remove the resource; retry until the module replies.

        NOT_FOUND does not rule out that an AddResource completes later.
        """
        while True:
            try:
                await self.client.remove(name, self._deadlines.remove)
            except ModuleCallError as error:
                if error.status == "DEADLINE_EXCEEDED":
                    continue
            else:
                self._maybe_added.discard(name)
            return

    async def _ensure_removed(self, name: ResourceName) -> None:
        """Wait until the leftovers of an earlier addition are removed. Raise ModuleCallError."""
        if name not in self._maybe_added:
            return
        if name not in self._withdrawals:
            self._start_withdrawal(name)
        withdrawal = self._withdrawals.get(name)
        if withdrawal is not None:
            await self._clock.wait({withdrawal}, self._deadlines.remove)
        if withdrawal is not None and not withdrawal.done():
            raise ModuleCallError(
                "UNAVAILABLE",
                "its module is still busy with an earlier attempt to add this resource",
            )

    async def _remove(self, name: ResourceName) -> None:
        try:
            await self.client.remove(name, self._deadlines.remove)
        except ModuleCallError as error:
            if error.status == "DEADLINE_EXCEEDED":
                self.unclosed.add(name)
            # Older releases of the SDK reply with UNKNOWN and this text.
            if error.status not in _GONE_STATUSES and "not found" not in str(error).lower():
                raise


def _make_message(spec: Spec, level: Level) -> ComponentConfig:
    config = spec.settings
    assert isinstance(config, ResourceConfig)
    return resource_to_proto(config, level)

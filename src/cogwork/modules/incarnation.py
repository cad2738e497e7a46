"""One life of a module, from the moment it is ready until its process ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import grpc.aio
from google.protobuf.descriptor_pool import DescriptorPool
from viam.gen.app.v1.robot_pb2 import ComponentConfig

from cogwork.config.schema import ResourceConfig
from cogwork.core.errors import CogworkError
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Builder, Dependencies, Offer, Unavailable
from cogwork.graph.spec import Spec
from cogwork.logs.levels import Level
from cogwork.modules.calls import Brought, ModuleCalls, Needed, Refused
from cogwork.modules.ground import Ground
from cogwork.modules.messages import resource_message
from cogwork.modules.questions import Questions
from cogwork.modules.reflected import NotDescribed, described
from cogwork.resource.clients import resource_elsewhere
from cogwork.resource.services import public_services

_GONE = ("NOT_FOUND", "UNAVAILABLE", "CANCELLED")
"""How a module says that it has no such resource, or is no more itself."""
_UNANSWERED = ("DEADLINE_EXCEEDED", "UNAVAILABLE", "CANCELLED")
"""Refusals that are not the module's own word: it may have done what it was asked."""


class Gone(CogworkError):
    """A life of a module that is over."""

    status = "UNAVAILABLE"


class Incarnation(Builder):
    """Makes, changes and closes the resources that live in the module."""

    def __init__(
        self,
        number: int,
        brought: Brought,
        carrier: grpc.aio.Channel,
        ground: Ground,
        level_of: Callable[[ResourceName], Level],
        provides: Callable[[ResourceName, bool], None],
    ) -> None:
        """`provides` is told of each resource when it is built, and when it is closed."""
        self.brought = brought
        self.calls = ModuleCalls(carrier)
        self.trouble: str | None = None
        """Why it does not answer, while its process lives."""
        self.emptied = asyncio.Event()
        """Set when none of its resources is left."""
        self.emptied.set()
        self.levels: dict[ResourceName, Level] = {}
        """Those that its resources were given."""
        self.unclosed: set[ResourceName] = set()
        """Those that it was told to remove, and did not in time."""
        self._number = number
        self._carrier = carrier
        self._clock = ground.clock
        self._deadlines = ground.deadlines
        self._level_of = level_of
        self._provides = provides
        self._over = False
        self._names: dict[int, ResourceName] = {}
        """By the identity of the object that stands for a resource."""
        self._living: set[ResourceName] = set()
        self._doubtful: set[ResourceName] = set()
        """Those that it may add, or have added, after nobody waits for it any more."""
        self._withdrawing: dict[ResourceName, asyncio.Task[None]] = {}
        self._questions = Questions(self._ask, ground.changed, ground.clock, ground.pauses)

    async def describe(self) -> dict[str, DescriptorPool]:
        """The services that only it knows. What is not described is served all the same."""
        known = {served.service for served in public_services()}
        found: dict[str, DescriptorPool] = {}
        for service in sorted(set(self.brought.services.values()) - known):
            with contextlib.suppress(NotDescribed):
                found[service] = await described(self._carrier, service)
        return found

    def offer(self, spec: Spec) -> Offer | Unavailable:
        answer = self._questions.answer(spec, lives=spec.name in self._living)
        if isinstance(answer, Unavailable):
            return answer
        return Offer(
            self,
            self._number,
            in_place=True,
            renews=True,
            needs=answer.needs,
            wants=answer.wants,
        )

    async def build(self, spec: Spec, dependencies: Dependencies) -> object:
        resource = await resource_elsewhere(
            spec.name.api, spec.name.short, self._carrier, lambda: self.trouble
        )
        level = self._level_of(spec.name)
        await self._questions.make_sure(spec)
        await self._make_sure_it_is_gone(spec.name)
        await self._add(spec.name, _message(spec, level), dependencies)
        if self._over:
            raise Gone("its module ended while it was being built")
        self._names[id(resource)] = spec.name
        self._living.add(spec.name)
        self.levels[spec.name] = level
        self._provides(spec.name, True)
        self.emptied.clear()
        return resource

    async def reconfigure(self, resource: object, spec: Spec, dependencies: Dependencies) -> None:
        del resource  # it is known by its name
        level = self._level_of(spec.name)
        await self._questions.make_sure(spec)
        message = _message(spec, level)
        try:
            await self.calls.reconfigure(message, dependencies, self._deadlines.add)
        except Refused as error:
            if error.status != "UNIMPLEMENTED":
                raise
            await self.calls.remove(spec.name, self._deadlines.remove)
            await self.calls.add(message, dependencies, self._deadlines.add)
        self.levels[spec.name] = level

    async def close(self, resource: object) -> None:
        name = self._names.get(id(resource))
        if name is None:
            return
        self._living.discard(name)
        self._provides(name, False)
        self.levels.pop(name, None)
        try:
            if not self._over:
                await self._remove(name)
        finally:
            self._names.pop(id(resource), None)
            if not self._names:
                self.emptied.set()

    async def end(self) -> None:
        self._over = True
        for task in self._withdrawing.values():
            task.cancel()
        await asyncio.gather(*self._withdrawing.values(), return_exceptions=True)
        await self._questions.aclose()

    async def _ask(self, spec: Spec) -> Needed:
        message = _message(spec, self._level_of(spec.name))
        return await self.calls.validate(message, self._deadlines.validate)

    async def _add(
        self, name: ResourceName, message: ComponentConfig, dependencies: Dependencies
    ) -> None:
        try:
            await self.calls.add(message, dependencies, self._deadlines.add)
        except Refused as error:
            if error.status in _UNANSWERED:
                self._withdraw(name)
            raise
        except asyncio.CancelledError:
            self._withdraw(name)
            raise
        self._doubtful.discard(name)

    def _withdraw(self, name: ResourceName) -> None:
        """A constructor that was given up may return all the same: its result is closed."""
        self._doubtful.add(name)
        if not self._over:
            task = asyncio.get_running_loop().create_task(self._take_back(name))
            self._withdrawing[name] = task
            task.add_done_callback(lambda _: self._withdrawing.pop(name, None))

    async def _take_back(self, name: ResourceName) -> None:
        """Until it has answered. That it knows of none is no promise that none will come."""
        while True:
            try:
                await self.calls.remove(name, self._deadlines.remove)
            except Refused as error:
                if error.status == "DEADLINE_EXCEEDED":
                    continue
            else:
                self._doubtful.discard(name)
            return

    async def _make_sure_it_is_gone(self, name: ResourceName) -> None:
        """Ahead of another attempt."""
        if name not in self._doubtful:
            return
        if name not in self._withdrawing:
            self._withdraw(name)
        withdrawing = self._withdrawing.get(name)
        if withdrawing is not None:
            await self._clock.wait({withdrawing}, self._deadlines.remove)
        if withdrawing is not None and not withdrawing.done():
            raise Refused("UNAVAILABLE", "its module is still busy with an attempt to add it")

    async def _remove(self, name: ResourceName) -> None:
        try:
            await self.calls.remove(name, self._deadlines.remove)
        except Refused as error:
            if error.status == "DEADLINE_EXCEEDED":
                self.unclosed.add(name)
            # Older releases of the SDK answer UNKNOWN with these words.
            if error.status not in _GONE and "not found" not in str(error).lower():
                raise


def _message(spec: Spec, level: Level) -> ComponentConfig:
    config = spec.settings
    assert isinstance(config, ResourceConfig)
    return resource_message(config, level)

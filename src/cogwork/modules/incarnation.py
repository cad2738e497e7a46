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
from cogwork.modules.ground import Deadlines
from cogwork.modules.messages import resource_message
from cogwork.modules.reflected import NotDescribed, described
from cogwork.resource.clients import resource_elsewhere
from cogwork.resource.services import public_services

_GONE = ("NOT_FOUND", "UNAVAILABLE", "CANCELLED")
"""How a module says that it has no such resource, or is no more itself."""


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
        deadlines: Deadlines,
        level_of: Callable[[ResourceName], Level],
        changed: Callable[[], None],
        provides: Callable[[ResourceName, bool], None],
    ) -> None:
        """`provides` is told of each resource when it is built, and when it is closed."""
        self.brought = brought
        self.calls = ModuleCalls(carrier)
        self.trouble: str | None = None
        """Why it does not answer, while its process lives."""
        self.described: dict[str, DescriptorPool] = {}
        """The services that only it knows, as it describes them."""
        self.emptied = asyncio.Event()
        """Set when none of its resources is left."""
        self.emptied.set()
        self._number = number
        self._carrier = carrier
        self._deadlines = deadlines
        self._level_of = level_of
        self._changed = changed
        self._provides = provides
        self.unclosed: list[ResourceName] = []
        """Those that it was told to remove, and did not in time."""
        self._over = False
        self._names: dict[int, ResourceName] = {}
        """By the identity of the object that stands for a resource."""
        self._living: set[ResourceName] = set()
        self._doubtful: set[ResourceName] = set()
        """Those that the module was asked to add, and did not say in time whether it has."""
        self._levels: dict[ResourceName, Level] = {}
        self._checked: dict[ResourceName, tuple[Spec, Needed | str]] = {}
        self._checking: dict[asyncio.Task[None], ResourceName] = {}

    @property
    def levels(self) -> dict[ResourceName, Level]:
        """Those that its resources were given."""
        return self._levels

    async def describe(self) -> None:
        """What is not described is served all the same."""
        known = {served.service for served in public_services()}
        for service in sorted(set(self.brought.services.values()) - known):
            with contextlib.suppress(NotDescribed):
                self.described[service] = await described(self._carrier, service)

    def offer(self, spec: Spec) -> Offer | Unavailable:
        known = self._checked.get(spec.name)
        if known is None or (known[0] is not spec and spec.name not in self._living):
            self._check(spec)
            return Unavailable("its module is asked what it needs", soon=True)
        if isinstance(known[1], str):
            return Unavailable(known[1])
        # Of changed attributes the module is asked when it gets them: what runs stays meanwhile.
        needed = known[1]
        return Offer(
            self,
            self._number,
            in_place=True,
            renews=True,
            needs=needed.needs,
            wants=needed.wants,
        )

    async def build(self, spec: Spec, dependencies: Dependencies) -> object:
        resource = await resource_elsewhere(
            spec.name.api, spec.name.short, self._carrier, lambda: self.trouble
        )
        message = self._message(spec)
        await self._ask_again(spec)
        if spec.name in self._doubtful:
            await self._remove(spec.name)
        self._doubtful.add(spec.name)
        await self.calls.add(message, dependencies, self._deadlines.add)
        self._doubtful.discard(spec.name)
        if self._over:
            raise Gone("its module ended while it was being built")
        self._names[id(resource)] = spec.name
        self._living.add(spec.name)
        self._provides(spec.name, True)
        self.emptied.clear()
        return resource

    async def reconfigure(self, resource: object, spec: Spec, dependencies: Dependencies) -> None:
        del resource  # it is known by its name
        message = self._message(spec)
        await self._ask_again(spec)
        try:
            await self.calls.reconfigure(message, dependencies, self._deadlines.add)
        except Refused as error:
            if error.status != "UNIMPLEMENTED":
                raise
            await self.calls.remove(spec.name, self._deadlines.remove)
            await self.calls.add(message, dependencies, self._deadlines.add)

    async def close(self, resource: object) -> None:
        name = self._names.pop(id(resource), None)
        if not self._names:
            self.emptied.set()
        if name is None:
            return
        self._living.discard(name)
        self._provides(name, False)
        self._levels.pop(name, None)
        if not self._over:
            await self._remove(name)

    async def end(self) -> None:
        self._over = True
        for task in self._checking:
            task.cancel()
        await asyncio.gather(*self._checking, return_exceptions=True)

    async def _remove(self, name: ResourceName) -> None:
        try:
            await self.calls.remove(name, self._deadlines.remove)
        except Refused as error:
            if error.status == "DEADLINE_EXCEEDED":
                self.unclosed.append(name)
            # The SDK answers UNKNOWN with these words.
            if error.status not in _GONE and "not found" not in str(error).lower():
                raise

    def _message(self, spec: Spec) -> ComponentConfig:
        config = spec.settings
        assert isinstance(config, ResourceConfig)
        level = self._level_of(spec.name)
        self._levels[spec.name] = level
        return resource_message(config, level)

    async def _ask_again(self, spec: Spec) -> None:
        """Attributes may have changed since it said what it needs."""
        known = self._checked.get(spec.name)
        if known is not None and known[0] is spec:
            return
        needed = await self.calls.validate(self._message(spec), self._deadlines.validate)
        self._checked[spec.name] = (spec, needed)
        if known is None or known[1] != needed:
            self._changed()
            raise Refused("ABORTED", "what it needs has changed with its attributes; once more")

    def _check(self, spec: Spec) -> None:
        if spec.name in self._checking.values():
            return
        task = asyncio.get_running_loop().create_task(self._find_out(spec))
        self._checking[task] = spec.name
        task.add_done_callback(self._found_out)

    async def _find_out(self, spec: Spec) -> None:
        outcome: Needed | str
        try:
            outcome = await self.calls.validate(self._message(spec), self._deadlines.validate)
        except CogworkError as error:
            outcome = f"its module does not accept it: {error}"
        self._checked[spec.name] = (spec, outcome)

    def _found_out(self, task: asyncio.Task[None]) -> None:
        del self._checking[task]
        # One plan for many answers.
        if not self._checking and not self._over:
            self._changed()

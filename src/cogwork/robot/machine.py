"""A running machine: its configuration, its state, and access to its resources."""

from __future__ import annotations

import asyncio
import enum
import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import DescriptorPool

from cogwork.config.check.diagnostics import Diagnostic
from cogwork.config.check.loader import LoadedConfig
from cogwork.config.schema.machine import JobConfig, MachineConfig
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.graph.desired_specs import DefaultSpecs
from cogwork.graph.events import Observer, log_event
from cogwork.graph.limits import GraphLimits
from cogwork.graph.name import Api, Reference, ResourceName
from cogwork.graph.node import Node
from cogwork.graph.provider import Providers
from cogwork.graph.public_apis import API_BY_SERVICE
from cogwork.graph.reconciler import Applied, Outcome, Reconciler
from cogwork.graph.spec import Spec
from cogwork.resource.machine_access import MachineAccess
from cogwork.robot.frame_system import FrameSystem
from cogwork.robot.hosts import (
    ModuleHost,
    NoModules,
    NoPackages,
    NoProcesses,
    NoRemotes,
    PackageHost,
    ProcessHost,
    RemoteHost,
)
from cogwork.robot.ignored_settings import find_ignored_settings
from cogwork.robot.jobs.job_scheduler import JobCall, JobScheduler
from cogwork.robot.middleware.access import ModuleAccess, module_of
from cogwork.robot.middleware.operations import Operation, Operations, current_operation
from cogwork.robot.motion.claims import MotionClaims
from cogwork.robot.motion.motion_stopper import MotionStopper
from cogwork.robot.motion.moved_resource import find_moved_resource
from cogwork.robot.motion.session_manager import SessionManager
from cogwork.robot.resource_names import ResourceNames
from cogwork.robot.serving_state import ServingState
from cogwork.robot.unavailable import NotAvailable, Stopping, explain_unavailable
from cogwork.wire.table.concurrency_limit import STOP_METHODS

_log = logging.getLogger("rdk")

CLOSE_GRACE = 1.0
"""Seconds that active calls may take to finish before a resource is closed."""


class MachineState(enum.IntEnum):
    """The state of the machine, with the enum numbers of the public API."""

    INITIALIZING = 1
    RUNNING = 2


async def _reject_job(config: JobConfig) -> None:
    raise NotAvailable(f"{config.method} cannot be called: the machine is still starting")


_NO_MODULES = NoModules()
_NO_PROCESSES = NoProcesses()
_NO_PACKAGES = NoPackages()
_NO_REMOTES = NoRemotes()
_NO_DEFAULTS: DefaultSpecs = MappingProxyType({})


class Machine:
    def __init__(
        self,
        providers: Providers,
        clock: Clock,
        *,
        limits: GraphLimits | None = None,
        observe: Observer = log_event,
        redact: Callable[[str], str] = str,
        modules: ModuleHost = _NO_MODULES,
        processes: ProcessHost = _NO_PROCESSES,
        packages: PackageHost = _NO_PACKAGES,
        remotes: RemoteHost = _NO_REMOTES,
        job_call: JobCall = _reject_job,
        defaults: DefaultSpecs = _NO_DEFAULTS,
    ) -> None:
        """Create a machine without resources.

        `job_call` runs a job once. `defaults` are the services that the machine provides unless a
        configuration has services with their names. They are built when they are first needed.
        """
        self.redact = redact
        """Function that removes the configuration's secrets from a text."""
        self.config = MachineConfig.model_construct()
        self.diagnostics: tuple[Diagnostic, ...] = ()
        """Problems found in the configuration."""
        self.state = MachineState.INITIALIZING
        self.serving = ServingState()
        self.applied_at: float | None = None
        """Time when the running configuration was fully applied."""
        self.operations = Operations(clock)
        self.jobs = JobScheduler(clock, job_call, redact=redact)
        self.modules, self.processes = modules, processes
        self.packages, self.remotes = packages, remotes
        self._clock = clock
        self._defaults = defaults
        self._is_configured = False
        """Whether a configuration was applied. Until then, it is unknown whether it has services
        with the names of the default ones."""
        self._ignored_settings: Mapping[ResourceName, list[str]] = {}
        self._is_halted = False
        self._names_before_stop: tuple[ResourceName, ...] = ()
        self._services_before_stop: Mapping[Api, str] = {}
        self._reconciler = Reconciler(
            providers,
            clock,
            limits=limits,
            observe=observe,
            before_close=self._quiesce,
            redact=redact,
            defaults=defaults,
        )
        self._names = ResourceNames(self.nodes)
        self.access = ModuleAccess(self.nodes, self.dependencies, lambda: self.modules)
        self.frames = FrameSystem(lambda: self.config.components, self.find, remotes.frames)
        claims = MotionClaims()
        self.motion = MotionStopper(clock, self.nodes, self.operations, claims, self.resolve)
        self.sessions = SessionManager(
            clock,
            lambda: self.config.network.sessions.heartbeat_window,
            API_BY_SERVICE,
            self.nodes,
            claims,
            lambda names, plans, why: self.motion.stop(names, why, plans=plans),
            self.resolve,
            lambda plan, added: find_moved_resource(plan, added, self.nodes, self.frames),
            lambda name: (node := self.nodes.get(name)) is not None and node.live is not None,
        )

    def bind(self, machine_access: MachineAccess) -> None:
        """Give resources access to the other resources of this machine."""
        machine_access.find = self.find
        machine_access.names = lambda: self.nodes
        machine_access.frames = self.frames
        machine_access.stop_count = self.motion.count_stops
        machine_access.take_over = self.sessions.take_over

    @property
    def nodes(self) -> Mapping[ResourceName, Node]:
        return self._reconciler.nodes

    @property
    def revision(self) -> str:
        """The revision that was last fully applied."""
        return self._reconciler.revision

    def dependencies(self, name: ResourceName) -> tuple[ResourceName | Reference, ...]:
        """Return the dependencies of a resource: first the known resources, then the references to
        unknown ones."""
        return (*self._reconciler.dependencies(name), *self._reconciler.missing_dependencies(name))

    def list_ignored(self, name: ResourceName) -> list[str]:
        """Return which parts of the configuration of a resource are ignored, and why."""
        ignored = list(self._ignored_settings.get(name, []))
        node = self.nodes.get(name)
        if node is not None and node.usable is not None:
            reported: Sequence[str] = getattr(node.usable.resource, "ignored_settings", ())
            ignored += [self.redact(each) for each in reported]
        for wanted in self._reconciler.dropped_dependencies(name):
            why = f'"{wanted.short}" depends on "{name.short}", so "{name.short}" is built without'
            # Skip a reason that the check of the configuration has already found. The check misses
            # some, because it does not know the dependencies that a module adds.
            if not any(why in each for each in ignored):
                ignored.append(f'{why} "{wanted.short}"')
        return ignored

    @property
    def is_reconfiguring(self) -> bool:
        """Whether a running resource is being changed, replaced or removed.

        First builds and retries of failed resources do not count, because they may never succeed.
        """
        return self._reconciler.is_replacing

    def apply(self, loaded: LoadedConfig) -> asyncio.Future[Outcome]:
        outcome = self._reconciler.apply(loaded.result.specs, _revision_of(loaded))
        outcome.add_done_callback(self._on_applied)
        self.config = loaded.result.config
        self._is_configured = True
        self.jobs.stop_outdated(self.config.jobs)
        self.diagnostics = loaded.result.diagnostics
        self._ignored_settings = find_ignored_settings(loaded, self.redact)
        return outcome

    def set_discovered(self, specs: Iterable[Spec]) -> None:
        """Set the resources of other machines. They change when a machine connects or
        disconnects."""
        discovered = list(specs)
        self._names.set_discovered(spec.name for spec in discovered)
        self._reconciler.set_discovered(discovered)

    def begin_stopping(self) -> None:
        """Refuse new calls of clients, except calls that stop something.

        Calls of modules are still accepted: a module may need its dependencies while it closes.
        """
        if not self.serving.is_serving:
            return
        self._names_before_stop = tuple(self.names())
        self._services_before_stop = self.services()
        self.serving.end()

    def names(self) -> Iterable[ResourceName]:
        """Return the names of all resources.

        While the machine stops, return the names from before the stop: clients drop a resource as
        soon as its name is missing.
        """
        if not self.serving.is_serving:
            return self._names_before_stop
        return (*self.nodes, *self.idle_defaults())

    def idle_defaults(self) -> list[ResourceName]:
        """Return the default services that nothing has used yet, so that they are not built."""
        if not self._is_configured:
            return []
        return [name for name in self._defaults if name not in self.nodes]

    @property
    def has_other_processes(self) -> bool:
        """Whether resources may run in another process. Read for every request, so it must be
        fast."""
        return self._names.any_remote or self.modules.any_configured()

    def services(self) -> Mapping[Api, str]:
        """Return the gRPC services of APIs that only modules and remotes provide, by API."""
        if not self.serving.is_serving:
            return self._services_before_stop
        return {**self.remotes.services(), **self.modules.services()}

    def descriptor_pools(self) -> Mapping[str, DescriptorPool]:
        """Return the descriptors of the services that only modules and remotes provide, by
        service."""
        return {**self.remotes.descriptor_pools(), **self.modules.descriptor_pools()}

    def describe(self, path: str) -> MethodDescriptor | None:
        """Return the descriptor of a method that only modules or remotes provide; None if
        unknown."""
        service, _, method = path.lstrip("/").rpartition("/")
        pool: Any = self.descriptor_pools().get(service)
        if pool is None:
            return None
        found: MethodDescriptor | None = pool.FindServiceByName(service).methods_by_name.get(method)
        return found

    def resolve(self, name: ResourceName) -> ResourceName:
        """Return the full name of a resource. The name in a request may omit the remote."""
        return self._names.resolve(name)

    def find(self, name: ResourceName) -> object:
        """Return a resource, and keep it open until the current call ends.

        Raise `unavailable_error` if the resource cannot be used, and NotAllowed if the calling
        module is not allowed to use it.
        """
        name = self.resolve(name)
        operation = current_operation()
        if operation is not None and operation.module is not None:
            self.access.check(operation.module, name)
        is_stop = operation is not None and operation.method.path.endswith(STOP_METHODS)
        if is_stop:
            self.motion.cancel_waiting_calls(name)
        elif operation is not None and not self._may_begin(operation):
            raise Stopping
        if self._is_configured and name in self._defaults:
            self._reconciler.start_default(name)
        node = self.nodes.get(name)
        if node is None or node.usable is None:
            raise self.unavailable_error(name)
        resource = node.usable.resource
        if operation is not None:
            operation.held_resources.append(resource)
            if is_stop:
                self.motion.note_stop(name)
        return resource

    def _may_begin(self, operation: Operation) -> bool:
        return self.serving.is_serving or bool(module_of(operation.stream.peer))

    def unavailable_error(self, name: ResourceName) -> CogworkError:
        """Return the error that explains why a resource cannot be used."""
        if not self.serving.is_serving:
            return Stopping()
        node = self.nodes.get(name)
        return self._names.explain_unknown(name) if node is None else explain_unavailable(node)

    async def halt(self) -> None:
        """End all jobs and stop all motion before the machine closes. Further calls do nothing."""
        if self._is_halted:
            return
        self._is_halted = True
        self.begin_stopping()
        _, running = await asyncio.gather(self.motion.halt(), self.jobs.aclose())
        for name in running:
            _log.error("job %s did not end in time; it may still be running", name)

    async def aclose(self, budget: float = 20.0) -> list[ResourceName]:
        """Stop all motion, then close all resources, dependents first.

        Return the resources that did not close within `budget` seconds.
        """
        await self.halt()
        unfinished = await self._reconciler.aclose(budget)
        await self.motion.aclose()
        return unfinished

    async def _quiesce(self, name: ResourceName, resource: object) -> None:
        await self.operations.quiesce(resource, name, CLOSE_GRACE)
        await self.motion.stop_before_close(name, resource)

    def _on_applied(self, outcome: asyncio.Future[Outcome]) -> None:
        if outcome.cancelled() or outcome.exception() is not None:
            return
        if isinstance(outcome.result(), Applied):
            self.state = MachineState.RUNNING
            self.applied_at = self._clock.time()
            if not self._is_halted:
                self.jobs.apply(self.config.jobs)


def _revision_of(loaded: LoadedConfig) -> str:
    """Return the revision that the configuration sets; if it sets none, a hash of its text."""
    given = loaded.result.config.revision
    return given or hashlib.sha256(loaded.text.encode()).hexdigest()[:12]

"""A running machine: its configuration, its state, and access to its resources."""

from __future__ import annotations

import asyncio
import enum
import hashlib
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from grpclib.const import Status

from cogwork.config.config_report import ConfigReport
from cogwork.config.diagnostics import Diagnostic, Effect, did_you_mean
from cogwork.config.loader import LoadedConfig
from cogwork.config.schema import JobConfig, MachineConfig
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.core.exit_trap import trap_exit
from cogwork.core.sentences import join_names
from cogwork.graph.events import Observer, log_event
from cogwork.graph.limits import GraphLimits
from cogwork.graph.name import Api, Reference, ResourceName
from cogwork.graph.node import Node, State
from cogwork.graph.provider import Providers
from cogwork.graph.public_apis import API_BY_SERVICE
from cogwork.graph.reconciler import Applied, Outcome, Reconciler
from cogwork.graph.spec import Spec
from cogwork.resource.clients import RemoteResource
from cogwork.resource.emergency_stop import EmergencyStop, stop_all
from cogwork.resource.machine_access import MachineAccess
from cogwork.resource.moving_component import find_moving_component
from cogwork.resource.supplemental_transforms import read_supplemental_transforms
from cogwork.robot.access import ModuleAccess, module_of
from cogwork.robot.frame_system import FrameSystem
from cogwork.robot.job_scheduler import JobCall, JobScheduler
from cogwork.robot.module_host import ModuleHost, NoModules
from cogwork.robot.motion_claims import MotionPlan
from cogwork.robot.moving_methods import (
    MOTION_API,
    is_motion_service_move,
    read_component,
    sets_in_motion,
)
from cogwork.robot.operations import Cancelled, Operation, Operations, current_operation
from cogwork.robot.package_host import NoPackages, PackageHost
from cogwork.robot.process_host import NoProcesses, ProcessHost
from cogwork.robot.remote_host import NoRemotes, RemoteHost
from cogwork.robot.server_load import ServerLoad
from cogwork.robot.serving_state import ServingState
from cogwork.robot.session_manager import SessionManager
from cogwork.robot.update_file import UpdateFile
from cogwork.serving.tls_report import TlsReport
from cogwork.wire.concurrency_limit import STOP_METHODS
from cogwork.wire.handlers import Method
from cogwork.wire.status import status_of

if TYPE_CHECKING:
    from viam.gen.common.v1.common_pb2 import Transform

_log = logging.getLogger("rdk")

CLOSE_GRACE = 1.0
"""Seconds that calls in flight get to finish before a resource is closed."""
STOP_TIMEOUT = 10.0
"""Seconds for one resource to stop moving."""
EMERGENCY_STOP_TIMEOUT = 0.5
"""Seconds for everything to stop moving while the event loop is stuck."""
HALT_TIMEOUT = 2.0
"""Seconds for everything to stop moving before the machine begins to close."""
_MAX_IGNORED = 3
"""Ignored settings of a resource that the status shows."""
_MAX_CHOICES = 200
"""Names that an unknown one is compared with."""
_MAX_HINTS = 20
"""Names that an error lists."""
_NON_MOVING_PREFIXES = ("Get", "Is", "List", "Stop")
"""Prefixes of methods that move nothing."""
_MOTION_APIS = (MOTION_API, Api.parse("rdk:service:navigation"))
"""Services whose calls move other resources."""
_NO_PLAN = (Status.NOT_FOUND, Status.UNIMPLEMENTED)
"""What a motion service answers if there is no plan to stop."""


class NotConfigured(CogworkError):
    status = "NOT_FOUND"


class NotAvailable(CogworkError):
    status = "UNAVAILABLE"


class BeingChanged(NotAvailable):
    """A resource cannot be used now, but is being built or replaced."""

    def __init__(self, message: str, name: ResourceName) -> None:
        super().__init__(message)
        self.name = name


class Stopping(NotAvailable):
    """The machine stops: clients keep what they know of it, and connect again later."""

    def __init__(self) -> None:
        super().__init__("the machine is stopping; try again when it has restarted")


class NotStopped(CogworkError):
    """A moving resource could not be stopped."""


class MachineState(enum.IntEnum):
    """The state of the machine, with the numbers of the public API."""

    INITIALIZING = 1
    RUNNING = 2


class MaintenanceDenial(NamedTuple):
    reason: str
    since: float
    """Time of the first of the consecutive checks with this result."""


@runtime_checkable
class Stoppable(Protocol):
    async def stop(self, *, extra: dict[str, Any] | None = None) -> None: ...


async def _reject_job(config: JobConfig) -> None:
    raise NotAvailable(f"{config.method} cannot be called: the machine is still starting")


_NO_MODULES = NoModules()
_NO_PROCESSES = NoProcesses()
_NO_PACKAGES = NoPackages()


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
        job_call: JobCall = _reject_job,
    ) -> None:
        """Create a machine without resources. `job_call` performs a job."""
        self.redact = redact
        """Removes the configuration's secrets from a text."""
        self.operations = Operations(clock)
        self.config = MachineConfig.model_construct()
        self.diagnostics: tuple[Diagnostic, ...] = ()
        """Problems found in the configuration."""
        self.config_report: ConfigReport | None = None
        """The verdict on the newest version of the configuration file, even if it is refused."""
        self.ignored_settings: Mapping[ResourceName, list[str]] = {}
        """Why parts of the configuration of a resource are ignored, such as mistyped attributes."""
        self.state = MachineState.INITIALIZING
        self.serving = ServingState()
        self.applied_at: float | None = None
        """Time at which the running configuration was fully applied."""
        self.maintenance_denial: MaintenanceDenial | None = None
        """The last result of the maintenance check; None if it was not denied."""
        self.tls_report: TlsReport | None = None
        """None without TLS."""
        self.list_cloud_notices: Callable[[], Sequence[str]] = tuple
        """Returns what is wrong with how the machine is connected to its cloud."""
        self.update_file = UpdateFile({})
        self._remote_names: dict[tuple[Api, str], list[ResourceName]] = defaultdict(list)
        """Resources of remotes, by what they are called without their remotes."""
        self._names_before_stop: tuple[ResourceName, ...] = ()
        self._services_before_stop: Mapping[Api, str] = {}
        self._clock = clock
        self.load = ServerLoad(clock)
        self.jobs = JobScheduler(clock, job_call, redact=redact)
        self._stop_tasks: set[asyncio.Future[list[ResourceName]]] = set()
        self._stop_counts = Counter[ResourceName]()
        """How often each resource was stopped, by a call or by the machine."""
        self._reconciler = Reconciler(
            providers,
            clock,
            limits=limits,
            observe=observe,
            before_close=self._quiesce,
            redact=redact,
        )
        self.modules = modules
        self.remotes: RemoteHost = NoRemotes()
        self.processes = processes
        self.packages = packages
        self.access = ModuleAccess(self.nodes, self.dependencies, lambda: self.modules)
        self.frames = FrameSystem(
            lambda: self.config.components, self.find, lambda: self.remotes.frames()
        )
        self.sessions = SessionManager(
            clock,
            lambda: self.config.network.sessions.heartbeat_window,
            API_BY_SERVICE,
            self.nodes,
            lambda names, plans, why: self.stop(names, why, plans=plans),
            self.resolve,
            self._find_moved,
            lambda name: (node := self.nodes.get(name)) is not None and node.live is not None,
        )

    def bind(self, machine_access: MachineAccess) -> None:
        """Give resources access to the other resources of this machine."""
        machine_access.find = self.find
        machine_access.names = lambda: self.nodes
        machine_access.frames = self.frames
        machine_access.stop_count = self._stop_counts.__getitem__
        machine_access.take_over = self.sessions.take_over

    @property
    def nodes(self) -> Mapping[ResourceName, Node]:
        return self._reconciler.nodes

    @property
    def revision(self) -> str:
        """The revision that was last fully applied."""
        return self._reconciler.revision

    def dependencies(self, name: ResourceName) -> tuple[ResourceName | Reference, ...]:
        """Return the dependencies of a resource: first those that are configured, then the rest."""
        return (*self._reconciler.dependencies(name), *self._reconciler.missing_dependencies(name))

    def list_ignored(self, name: ResourceName) -> list[str]:
        """Return which parts of the configuration of a resource are ignored, and why."""
        ignored = list(self.ignored_settings.get(name, []))
        for wanted in self._reconciler.circular_wants(name):
            why = f'"{wanted.short}" depends on "{name.short}", so "{name.short}" is built without'
            # The configuration may say so already; only a module knows its other dependencies.
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
        self.jobs.stop_outdated(self.config.jobs)
        self.diagnostics = loaded.result.diagnostics
        self.ignored_settings = _find_ignored_settings(loaded, self.redact)
        return outcome

    def set_discovered(self, specs: Iterable[Spec]) -> None:
        """Set the resources of other machines, which come and go with them."""
        discovered = list(specs)
        self._remote_names.clear()
        for name in (spec.name for spec in discovered):
            if name.remote:
                self._remote_names[name.api, name.name].append(name)
        self._reconciler.set_discovered(discovered)

    def begin_stopping(self) -> None:
        """Refuse new calls of clients, except those that stop something.

        Modules may call: what they do when they are closed may need their dependencies.
        """
        if not self.serving.is_serving:
            return
        self._names_before_stop = tuple(self.nodes)
        self._services_before_stop = self.services()
        self.serving.end()

    def names(self) -> Iterable[ResourceName]:
        """Return the resources; while the machine stops, those that it had before.

        Clients drop a resource whose name is missing once.
        """
        return self.nodes if self.serving.is_serving else self._names_before_stop

    @property
    def has_other_processes(self) -> bool:
        """Whether resources may run in another process. Checked with every call."""
        return bool(self._remote_names) or self.modules.any_configured()

    def services(self) -> Mapping[Api, str]:
        """Return the gRPC services of APIs that this server does not have itself."""
        if not self.serving.is_serving:
            return self._services_before_stop
        return {**self.remotes.services(), **self.modules.services()}

    def descriptor_pools(self) -> Mapping[str, DescriptorPool]:
        """Return the descriptors of these services, by service."""
        return {**self.remotes.descriptor_pools(), **self.modules.descriptor_pools()}

    def describe(self, path: str) -> MethodDescriptor | None:
        """Return the descriptor of a method of these services; None if it is unknown."""
        service, _, method = path.lstrip("/").rpartition("/")
        pool: Any = self.descriptor_pools().get(service)
        if pool is None:
            return None
        found: MethodDescriptor | None = pool.FindServiceByName(service).methods_by_name.get(method)
        return found

    def resolve(self, name: ResourceName) -> ResourceName:
        """Return the full name of a resource of a remote that a request names without the remote.

        A resource of this machine comes first, and the name must be unique among the remotes.
        """
        if name.remote or name in self.nodes:
            return name
        found = self._remote_names.get((name.api, name.name), ())
        return found[0] if len(found) == 1 else name

    def find(self, name: ResourceName) -> object:
        """Return a resource, which the current call holds until it ends.

        Raise the error of `unavailable_error`, or NotAllowed for a restricted module.
        """
        name = self.resolve(name)
        operation = current_operation()
        if operation is not None and operation.module is not None:
            self.access.check(operation.module, name)
        is_stop = operation is not None and operation.method.path.endswith(STOP_METHODS)
        if is_stop:
            self._cancel_waiting_calls(name)
        elif operation is not None and not self._may_begin(operation):
            raise Stopping
        node = self.nodes.get(name)
        if node is None or node.usable is None:
            raise self.unavailable_error(name)
        resource = node.usable.resource
        if operation is not None:
            operation.held_resources.append(resource)
            if is_stop:
                self._stop_counts[name] += 1
        return resource

    def _may_begin(self, operation: Operation) -> bool:
        return self.serving.is_serving or bool(module_of(operation.stream.peer))

    def unavailable_error(self, name: ResourceName) -> CogworkError:
        """Return the error that explains why a resource cannot be used."""
        if not self.serving.is_serving:
            return Stopping()
        node = self.nodes.get(name)
        if node is None:
            return NotConfigured(
                f"no node found with api {name.api} and name {name.short}; {self._hint(name)}"
            )
        message = f"resource {name} not available; reason={_unavailable_reason(node)}"
        return BeingChanged(message, name) if node.is_changing else NotAvailable(message)

    async def stop_all(self, extra: Mapping[ResourceName, dict[str, Any]]) -> None:
        """Stop everything that moves, and end the calls that move it.

        That includes calls of resources without a stop method, such as the push of a button.
        """
        why = "cancelled, because everything was told to stop"
        await self.stop(self.nodes, why, extra, self.sessions.claims.plans())

    def emergency_stop(self) -> dict[ResourceName, str]:
        """Stop everything that moves without using the event loop, which may be stuck.

        Return the resources that could not be stopped, and why.
        """
        moving = {
            name: node.live.resource
            for name, node in tuple(self.nodes.items())
            if node.live is not None and isinstance(node.live.resource, Stoppable)
        }
        stops = {
            str(name): resource.emergency_stop
            for name, resource in moving.items()
            if isinstance(resource, EmergencyStop)
        }
        failed = stop_all(stops, EMERGENCY_STOP_TIMEOUT)
        return {
            name: failed.get(str(name), "its driver has no emergency_stop")
            for name in moving
            if str(name) in failed or str(name) not in stops
        }

    async def stop(
        self,
        names: Collection[ResourceName],
        why: str,
        extra: Mapping[ResourceName, dict[str, Any]] | None = None,
        plans: Collection[MotionPlan] = (),
    ) -> list[ResourceName]:
        """Stop those of the resources that move, and the plans; end the calls that move them.

        Return the stopped resources. Calls end with `why` as their error.
        """
        # Shielded: the caller may disconnect before everything has stopped.
        return await asyncio.shield(self._create_stop_task(names, why, extra or {}, plans))

    def _create_stop_task(
        self,
        names: Collection[ResourceName],
        why: str,
        extra: Mapping[ResourceName, dict[str, Any]],
        plans: Collection[MotionPlan] = (),
    ) -> asyncio.Future[list[ResourceName]]:
        stopping = asyncio.ensure_future(self._stop(names, why, extra, plans))
        self._stop_tasks.add(stopping)
        stopping.add_done_callback(self._stop_tasks.discard)
        return stopping

    async def _stop(
        self,
        names: Collection[ResourceName],
        why: str,
        extra: Mapping[ResourceName, dict[str, Any]],
        plans: Collection[MotionPlan],
    ) -> list[ResourceName]:
        # Includes resources that are unhealthy or being reconfigured. Those of this machine come
        # first, because another machine may have any number of them.
        live = {
            name: node.live.resource
            for name in sorted(names, key=lambda name: bool(name.remote))
            if (node := self.nodes.get(name)) is not None and node.live is not None
        }
        moving = {name: each for name, each in live.items() if isinstance(each, Stoppable)}
        claims = {name: self.sessions.claims.find(name) for name in moving}
        self._stop_counts.update(moving.keys())
        moved = self._cancel_calls(names, live, moving, plans, why)
        stops: dict[ResourceName | MotionPlan, Coroutine[Any, Any, None]] = {
            **{
                name: self._call_with_timeout(_call_stop(resource, extra.get(name, {})))
                for name, resource in moving.items()
            },
            **{plan: self._stop_plan(plan) for plan in plans},
        }
        results = await asyncio.gather(*stops.values(), return_exceptions=True)
        failed = {
            what: result
            for what, result in zip(stops, results, strict=True)
            if isinstance(result, BaseException)
        }
        for name, claim in claims.items():
            if claim is not None and name not in failed and claim.plan not in failed:
                self.sessions.claims.release(name, claim)
        if failed:
            raise NotStopped("; ".join(starmap(_describe_failed_stop, failed.items())))
        return sorted(moved | moving.keys())

    def _cancel_calls(
        self,
        names: Collection[ResourceName],
        live: Mapping[ResourceName, object],
        moving: Collection[ResourceName],
        plans: Collection[MotionPlan],
        why: str,
    ) -> set[ResourceName]:
        """End the calls that move one of the names, or for a plan, even if they still wait to run.

        Return the resources that they move.
        """
        known = {id(resource): name for name, resource in live.items()}
        moved = set[ResourceName]()
        for operation in self.operations.others():
            used = {known[id(held)] for held in operation.held_resources if id(held) in known}
            requested = self._requested_resource(operation)
            if requested is not None and (
                requested in names or self._requested_plan(operation, requested) in plans
            ):
                used.add(requested)
            waits = (awaited := operation.awaited) is not None and awaited in names
            if awaited is not None and waits:
                used.add(awaited)
            if not used or not _may_move(operation):
                continue
            if waits or self._is_motion_method(operation.method) or not used.isdisjoint(moving):
                operation.end(Cancelled(why))
                moved |= used
        return moved

    def _cancel_waiting_calls(self, name: ResourceName) -> None:
        """End the calls that would move a resource as soon as its change is complete."""
        for operation in self.operations.others():
            if operation.awaited == name and _may_move(operation):
                operation.end(Cancelled("cancelled, because the resource was told to stop"))

    def _is_motion_method(self, method: Method) -> bool:
        """Return whether a method moves something, even a resource without a stop method."""
        api = API_BY_SERVICE.get(method.service)
        return api in _MOTION_APIS or (api is not None and sets_in_motion(method))

    def _requested_resource(self, operation: Operation) -> ResourceName | None:
        api, short = API_BY_SERVICE.get(operation.method.service), operation.requested_name
        if api is None or not short:
            return None
        return self.resolve(ResourceName.from_short(api, short))

    def _requested_plan(self, operation: Operation, service: ResourceName) -> MotionPlan | None:
        if not is_motion_service_move(operation.method):
            return None
        try:
            return MotionPlan(service, read_component(operation.method, operation.stream.request))
        except InvalidRequest:  # it will be refused
            return None

    def _find_moved(self, plan: MotionPlan, transforms: Iterable[Transform]) -> ResourceName:
        """Return the resource that a motion service moves; the service itself if that is unknown.

        Services of modules may move more than that; their plans are stopped, too.
        """
        prefix = f"{plan.service.remote}:" if plan.service.remote else ""
        component = f"{prefix}{plan.component}"
        try:
            extra = read_supplemental_transforms(transforms, self.frames)
            return find_moving_component(component, self.nodes, self.frames, extra)
        except CogworkError:
            same_name = (name for name in self.nodes if name.short == component)
            return next(same_name, plan.service)

    async def _stop_plan(self, plan: MotionPlan) -> None:
        """Stop a plan of a motion service, if it still runs. Raise if that fails."""
        node = self.nodes.get(plan.service)
        service: Any = node.live.resource if node is not None and node.live is not None else None
        if service is None or not hasattr(service, "stop_plan"):
            return
        try:
            await self._call_with_timeout(service.stop_plan(plan.component))
        except Exception as error:
            # Only some of its moves are plans.
            if status_of(error, "the plan")[0] not in _NO_PLAN:
                raise

    async def _call_with_timeout(self, stop: Coroutine[Any, Any, None]) -> None:
        """Wait until something has stopped. Raise if that fails or takes too long."""
        stopping = asyncio.ensure_future(stop)
        try:
            await self._clock.wait([stopping], STOP_TIMEOUT)
        finally:
            stopping.cancel()
        if not stopping.done():
            raise NotStopped(f"it did not stop within {STOP_TIMEOUT:g}s")
        stopping.result()

    async def aclose(self, budget: float = 20.0) -> list[ResourceName]:
        """Stop what moves, then close everything, dependents first.

        Return the resources that did not close within `budget` seconds.
        """
        self.begin_stopping()
        _, running = await asyncio.gather(self._halt_motion(), self.jobs.aclose())
        for name in running:
            _log.error("job %s did not end in time; it may still be running", name)
        unfinished = await self._reconciler.aclose(budget)
        for stopping in self._stop_tasks:
            stopping.cancel()
        await asyncio.gather(*self._stop_tasks, return_exceptions=True)
        return unfinished

    async def _halt_motion(self) -> None:
        """Stop everything that moves, which otherwise would go on until its dependents close."""
        why = "cancelled, because the machine is shutting down"
        stopping = self._create_stop_task(self.nodes, why, {})
        stopping.add_done_callback(_log_halt_failure)
        await self._clock.wait([stopping], HALT_TIMEOUT)
        if not stopping.done():
            _log.warning("some resources still move after %gs; closing them anyway", HALT_TIMEOUT)

    async def _quiesce(self, name: ResourceName, resource: object) -> None:
        await self.operations.quiesce(resource, name, CLOSE_GRACE)
        # Once closed, it could not be stopped any more. Modules stop their own resources.
        if isinstance(resource, Stoppable) and not isinstance(resource, RemoteResource):
            try:
                await self._call_with_timeout(_call_stop(resource, {}))
            except Exception as error:
                _log.warning("could not stop %s before closing it: %s", name, error)

    def _on_applied(self, outcome: asyncio.Future[Outcome]) -> None:
        if outcome.cancelled() or outcome.exception() is not None:
            return
        if isinstance(outcome.result(), Applied):
            self.state = MachineState.RUNNING
            self.applied_at = self._clock.time()
            self.jobs.apply(self.config.jobs)

    def _hint(self, name: ResourceName) -> str:
        if len(remote := self._remote_names.get((name.api, name.name), ())) > 1:
            return f"several remotes have it: write {' or '.join(each.short for each in remote)}"
        same_name = [other for other in self.nodes if other.short == name.short]
        if same_name:
            return f"{same_name[0]} has that name"
        # Those of this machine first: another machine may have any number of them.
        same_api = sorted(
            (bool(each.remote), each.short) for each in self.nodes if each.api == name.api
        )
        choices = [short for _, short in same_api]
        suggestion = did_you_mean(name.short, choices[:_MAX_CHOICES])
        if suggestion is not None:
            return suggestion
        return f"resources of this API: {join_names(choices, _MAX_HINTS) or 'none'}"


def _describe_failed_stop(what: ResourceName | MotionPlan, error: BaseException) -> str:
    if isinstance(what, MotionPlan):
        return (
            f"failed to stop the plan of {what.service.short} for {what.component} "
            f"with error {error}"
        )
    return f"failed to stop component named {what.short} with error {error}"


async def _call_stop(resource: Stoppable, extra: dict[str, Any]) -> None:
    with trap_exit():
        await resource.stop(extra=extra)


def _log_halt_failure(stopping: asyncio.Future[list[ResourceName]]) -> None:
    if not stopping.cancelled() and (error := stopping.exception()) is not None:
        _log.error("closing the machine although something may still move: %s", error)


def _may_move(operation: Operation) -> bool:
    """Return whether an operation may move something: it neither reads nor stops."""
    return not operation.method.path.rpartition("/")[2].startswith(_NON_MOVING_PREFIXES)


def _unavailable_reason(node: Node) -> str:
    if node.reason is not None:
        return node.reason.text
    match node.state:
        case State.REMOVING:
            return "it is being removed"
        case State.READY | State.CONFIGURING:
            return "it is being reconfigured; try again" if node.revision else "it is being built"
        case _:
            return "it is not built yet"


def _find_ignored_settings(
    loaded: LoadedConfig, redact: Callable[[str], str]
) -> dict[ResourceName, list[str]]:
    names = {at: name for name, at in loaded.result.resource_pointers.items()}
    found: dict[ResourceName, list[str]] = {}
    for diagnostic in loaded.result.diagnostics:
        name = names.get(diagnostic.location.pointer[:2])
        if name is not None and diagnostic.effect is Effect.IGNORED:
            hint = f"; {diagnostic.hint}" if diagnostic.hint else ""
            found.setdefault(name, []).append(f"{diagnostic.message}{hint}")
    return {
        name: [
            *map(redact, messages[:_MAX_IGNORED]),
            *([f"{more} more settings"] if (more := len(messages) - _MAX_IGNORED) > 0 else []),
        ]
        for name, messages in found.items()
    }


def _revision_of(loaded: LoadedConfig) -> str:
    """Return the configured revision or, as files rarely have one, a hash of the text."""
    given = loaded.result.config.revision
    return given or hashlib.sha256(loaded.text.encode()).hexdigest()[:12]

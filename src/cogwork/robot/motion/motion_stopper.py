"""Stops moving resources, and ends the calls that move them."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Mapping
from itertools import starmap
from typing import Any, Final, Protocol, runtime_checkable

from grpclib.const import Status

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.core.exit_trap import trap_exit
from cogwork.graph.name import Api, ResourceName
from cogwork.graph.node import Node
from cogwork.graph.public_apis import API_BY_SERVICE
from cogwork.resource.emergency_stop import EmergencyStop, stop_all
from cogwork.resource.sdk.clients import RemoteResource
from cogwork.robot.middleware.operations import Cancelled, Operation, Operations
from cogwork.robot.motion.claims import MotionClaims, MotionPlan
from cogwork.robot.motion.moving_methods import (
    MOTION_API,
    is_motion_service_move,
    read_component,
    sets_in_motion,
)
from cogwork.wire.table.handlers import Method
from cogwork.wire.table.status import status_of

STOP_TIMEOUT: Final = 10.0
"""Timeout in seconds to stop one resource."""
EMERGENCY_STOP_TIMEOUT: Final = 0.5
"""Timeout in seconds to stop all motion while the event loop is blocked."""
HALT_TIMEOUT: Final = 2.0
"""Timeout in seconds to stop all motion before the machine closes."""
_NON_MOVING_PREFIXES: Final = ("Get", "Is", "List", "Stop")
"""Prefixes of methods that cause no motion."""
_MOTION_APIS: Final = (MOTION_API, Api.parse("rdk:service:navigation"))
"""APIs of services whose calls move other resources."""
_NO_PLAN: Final = (Status.NOT_FOUND, Status.UNIMPLEMENTED)
"""Status codes with which a motion service reports that it has no plan to stop."""

_log = logging.getLogger("rdk")

Extra = Mapping[ResourceName, dict[str, Any]]
"""Extra parameters of the stop method, by resource."""


class NotStopped(CogworkError):
    """A moving resource could not be stopped."""


@runtime_checkable
class Stoppable(Protocol):
    async def stop(self, *, extra: dict[str, Any] | None = None) -> None: ...


class MotionStopper:
    def __init__(
        self,
        clock: Clock,
        nodes: Mapping[ResourceName, Node],
        operations: Operations,
        claims: MotionClaims,
        resolve: Callable[[ResourceName], ResourceName],
    ) -> None:
        """Create a stopper. `resolve` returns the full name of a resource in a request."""
        self._clock = clock
        self._nodes = nodes
        self._operations = operations
        self._claims = claims
        self._resolve = resolve
        self._tasks: set[asyncio.Future[list[ResourceName]]] = set()
        self._stop_counts = Counter[ResourceName]()

    async def stop_all(self, extra: Extra) -> None:
        """Stop all motion, and end the calls that cause it.

        This includes calls to resources without a stop method, such as pushing a button.
        """
        why = "cancelled, because everything was told to stop"
        await self.stop(self._nodes, why, extra, self._claims.plans())

    async def stop(
        self,
        names: Collection[ResourceName],
        why: str,
        extra: Extra | None = None,
        plans: Collection[MotionPlan] = (),
    ) -> list[ResourceName]:
        """Stop the moving resources among `names`, and the plans; end the calls that move them.

        Return the stopped resources. `why` becomes the error of the ended calls.
        """
        # Shield the stop: the caller may disconnect before all motion has stopped.
        return await asyncio.shield(self._create_stop_task(names, why, extra or {}, plans))

    def emergency_stop(self) -> dict[ResourceName, str]:
        """Stop all motion without the event loop, which may be blocked.

        Return the error of each resource that could not be stopped.
        """
        moving = {
            name: node.live.resource
            for name, node in tuple(self._nodes.items())
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

    async def halt(self) -> None:
        """Stop all motion before the machine closes.

        Otherwise, a resource would keep moving until its dependents are closed.
        """
        why = "cancelled, because the machine is shutting down"
        stopping = self._create_stop_task(self._nodes, why, {})
        stopping.add_done_callback(_log_halt_failure)
        await self._clock.wait([stopping], HALT_TIMEOUT)
        if not stopping.done():
            _log.warning("some resources still move after %gs; closing them anyway", HALT_TIMEOUT)

    async def stop_before_close(self, name: ResourceName, resource: object) -> None:
        """Stop a resource before it is closed: a closed resource cannot be stopped."""
        # Skip resources in other processes: modules stop their own resources.
        if isinstance(resource, Stoppable) and not isinstance(resource, RemoteResource):
            try:
                await self._call_with_timeout(_call_stop(resource, {}))
            except Exception as error:
                _log.warning("could not stop %s before closing it: %s", name, error)

    def note_stop(self, name: ResourceName) -> None:
        """Record that a client calls the stop method of a resource."""
        self._stop_counts[name] += 1

    def count_stops(self, name: ResourceName) -> int:
        """Return how often a client or the machine has stopped a resource."""
        return self._stop_counts[name]

    def cancel_waiting_calls(self, name: ResourceName) -> None:
        """End the calls that would move a resource once its change is complete."""
        for operation in self._operations.others():
            if operation.awaited == name and _may_move(operation):
                operation.end(Cancelled("cancelled, because the resource was told to stop"))

    async def aclose(self) -> None:
        for stopping in self._tasks:
            stopping.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _create_stop_task(
        self,
        names: Collection[ResourceName],
        why: str,
        extra: Extra,
        plans: Collection[MotionPlan] = (),
    ) -> asyncio.Future[list[ResourceName]]:
        stopping = asyncio.ensure_future(self._stop(names, why, extra, plans))
        self._tasks.add(stopping)
        stopping.add_done_callback(self._tasks.discard)
        return stopping

    async def _stop(
        self,
        names: Collection[ResourceName],
        why: str,
        extra: Extra,
        plans: Collection[MotionPlan],
    ) -> list[ResourceName]:
        # Include resources that are unhealthy or being reconfigured. Stop resources of this machine
        # first, because remotes may have any number of resources.
        live = {
            name: node.live.resource
            for name in sorted(names, key=lambda name: bool(name.remote))
            if (node := self._nodes.get(name)) is not None and node.live is not None
        }
        moving = {name: each for name, each in live.items() if isinstance(each, Stoppable)}
        claims = {name: self._claims.find(name) for name in moving}
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
                self._claims.release(name, claim)
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
        """End the calls, running or waiting, that move one of the resources or belong to one of the
        plans.

        Return the resources that these calls move.
        """
        known = {id(resource): name for name, resource in live.items()}
        moved = set[ResourceName]()
        for operation in self._operations.others():
            used = {known[id(held)] for held in operation.held_resources if id(held) in known}
            requested = self._find_requested(operation)
            if requested is not None and (
                requested in names or _read_plan(operation, requested) in plans
            ):
                used.add(requested)
            waits = (awaited := operation.awaited) is not None and awaited in names
            if awaited is not None and waits:
                used.add(awaited)
            if not used or not _may_move(operation):
                continue
            if waits or _is_motion_method(operation.method) or not used.isdisjoint(moving):
                operation.end(Cancelled(why))
                moved |= used
        return moved

    def _find_requested(self, operation: Operation) -> ResourceName | None:
        api, short = API_BY_SERVICE.get(operation.method.service), operation.requested_name
        if api is None or not short:
            return None
        return self._resolve(ResourceName.from_short(api, short))

    async def _stop_plan(self, plan: MotionPlan) -> None:
        """Stop a plan of a motion service, if it still runs. Raise an error if stopping fails."""
        node = self._nodes.get(plan.service)
        service: Any = node.live.resource if node is not None and node.live is not None else None
        if service is None or not hasattr(service, "stop_plan"):
            return
        try:
            await self._call_with_timeout(service.stop_plan(plan.component))
        except Exception as error:
            # Ignore the error that there is no plan: the service may have moved the component
            # without a plan.
            if status_of(error, "the plan")[0] not in _NO_PLAN:
                raise

    async def _call_with_timeout(self, stop: Coroutine[Any, Any, None]) -> None:
        """Wait until a stop is complete. Raise an error if it fails or times out."""
        stopping = asyncio.ensure_future(stop)
        try:
            await self._clock.wait([stopping], STOP_TIMEOUT)
        finally:
            stopping.cancel()
        if not stopping.done():
            raise NotStopped(f"stopping took longer than {STOP_TIMEOUT:g}s")
        stopping.result()


def _read_plan(operation: Operation, service: ResourceName) -> MotionPlan | None:
    if not is_motion_service_move(operation.method):
        return None
    try:
        return MotionPlan(service, read_component(operation.method, operation.stream.request))
    except InvalidRequest:  # the call will be refused, so it starts no plan
        return None


def _is_motion_method(method: Method) -> bool:
    """Return whether a method causes motion, even if its resource has no stop method."""
    api = API_BY_SERVICE.get(method.service)
    return api in _MOTION_APIS or (api is not None and sets_in_motion(method))


def _may_move(operation: Operation) -> bool:
    """Return whether an operation may cause motion: its method neither reads nor stops."""
    return not operation.method.path.rpartition("/")[2].startswith(_NON_MOVING_PREFIXES)


async def _call_stop(resource: Stoppable, extra: dict[str, Any]) -> None:
    with trap_exit():
        await resource.stop(extra=extra)


def _describe_failed_stop(what: ResourceName | MotionPlan, error: BaseException) -> str:
    if isinstance(what, MotionPlan):
        return (
            f"failed to stop the plan of {what.service.short} for {what.component} "
            f"with error {error}"
        )
    return f"failed to stop component named {what.short} with error {error}"


def _log_halt_failure(stopping: asyncio.Future[list[ResourceName]]) -> None:
    if not stopping.cancelled() and (error := stopping.exception()) is not None:
        _log.error("closing the machine although something may still move: %s", error)

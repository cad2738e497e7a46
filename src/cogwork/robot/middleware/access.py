"""Middleware that restricts what modules may call.

A module whose `access` is `dependencies` may call its own resources, their dependencies, and a few
methods of the machine itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from cogwork.core.errors import CogworkError
from cogwork.graph.name import Reference, ResourceName
from cogwork.graph.node import Node
from cogwork.robot.hosts import ModuleHost
from cogwork.robot.middleware.operations import current_operation
from cogwork.wire.table.handlers import Handler, Method, Stream

_PEER_PREFIX: Final = "module:"
_ROBOT: Final = "viam.robot.v1.RobotService"
ALLOWED_METHODS: Final = frozenset(
    {
        "FrameSystemConfig",
        "GetCloudMetadata",
        "GetMachineStatus",
        "GetModelsFromModules",
        "GetPose",
        "GetVersion",
        "Log",
        "ResourceNames",
        "ResourceRPCSubtypes",
        "SendSessionHeartbeat",
        "StartSession",
        "StopAll",
        "TransformPCD",
        "TransformPose",
    }
)
"""Methods of RobotService that every module may call: methods that describe the machine, methods
that a module needs for its own calls, and StopAll."""

Dependencies = Callable[[ResourceName], tuple[ResourceName | Reference, ...]]


class NotAllowed(CogworkError):
    """A module made a call that its configuration does not allow."""

    status = "PERMISSION_DENIED"


def module_peer(module: str) -> str:
    """Return the name that identifies a module as the peer of a call. Clients are identified by
    their address instead."""
    return f"{_PEER_PREFIX}{module}"


def module_of(peer: str) -> str:
    """Return the name of the calling module; empty if a client calls."""
    return peer.removeprefix(_PEER_PREFIX) if peer.startswith(_PEER_PREFIX) else ""


class ModuleAccess:
    def __init__(
        self,
        nodes: Mapping[ResourceName, Node],
        dependencies: Dependencies,
        modules: Callable[[], ModuleHost],
    ) -> None:
        self._nodes = nodes
        self._dependencies = dependencies
        self._modules = modules

    def wrap(self, method: Method, handle: Handler) -> Handler:
        """Reject forbidden methods of RobotService, and record the module that called each
        operation.

        `check` reads the record when the operation looks up a resource.
        """
        service, _, name = method.path.lstrip("/").rpartition("/")
        is_refused = service == _ROBOT and name not in ALLOWED_METHODS

        async def wrapper(stream: Stream) -> None:
            restricted = self._modules().restricted_modules()
            if restricted and (module := module_of(stream.peer)) in restricted:
                if is_refused:
                    raise _not_allowed_error(module, f"RobotService.{name}")
                operation = current_operation()
                if operation is not None:
                    operation.module = module
            await handle(stream)

        return wrapper

    def check(self, module: str, name: ResourceName) -> None:
        """Raise NotAllowed if the module is not allowed to call the resource."""
        if name not in self._reachable(module):
            raise _not_allowed_error(module, str(name))

    def _reachable(self, module: str) -> set[ResourceName]:
        provides = self._modules().provides_model
        reached: set[ResourceName] = set()
        pending = [
            name
            for name, node in self._nodes.items()
            if provides(module, name.api, node.spec.model)
        ]
        while pending:
            name = pending.pop()
            if name not in reached:
                reached.add(name)
                found = self._dependencies(name)
                pending += [each for each in found if isinstance(each, ResourceName)]
        return reached


def _not_allowed_error(module: str, target: str) -> NotAllowed:
    return NotAllowed(
        f'module "{module}" may not call {target}: its "access" is "dependencies"; add it to the '
        'depends_on of a resource of the module, or set "access" to "machine"'
    )

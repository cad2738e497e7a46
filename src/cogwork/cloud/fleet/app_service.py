"""AppService, which the SDK's fleet client and `cogwork fleet` call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from google.protobuf.message import Message
from viam.gen.app.v1.app_grpc import UnimplementedAppServiceBase

from cogwork.auth.errors import RoleTooLow
from cogwork.cloud.configuration.config_checker import ConfigChecker
from cogwork.cloud.fleet import (
    keys,
    locations,
    machines,
    organizations,
    part_configs,
    parts,
    permissions,
)
from cogwork.cloud.fleet.fragments import (
    fragment_edit,
    fragment_history,
    fragments,
    machine_fragments,
)
from cogwork.cloud.fleet.log_searches import LogSearches
from cogwork.cloud.fleet.part_logs import get_robot_part_logs, tail_robot_part_logs
from cogwork.cloud.fleet.unserved_methods import UNSERVED_METHODS
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.identity.login import ActorLogin
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.operations.operation import CloudOperation
from cogwork.cloud.operations.operation_runner import run_operation
from cogwork.cloud.registry import item_operations, module_operations
from cogwork.cloud.registry.module_operations import upload_module_file
from cogwork.core.errors import Unsupported
from cogwork.wire.table.handlers import Handler, Method, Stream, methods_from_service

APP_SERVICE: Final = "viam.app.v1.AppService"

_LOGS: Final = "GetRobotPartLogs"
_TAIL: Final = "TailRobotPartLogs"
_UPLOAD: Final = "UploadModuleFile"

OPERATIONS: Final[Mapping[str, CloudOperation]] = {
    name: operation
    for each in (
        *(organizations, locations, machines, parts, part_configs, keys, permissions),
        *(fragments, fragment_history, machine_fragments, item_operations, module_operations),
    )
    for name, operation in each.OPERATIONS.items()
}

_Check = Callable[[CloudContext, ConfigChecker, Actor, Any], Awaitable[None]]

_CHECKS: Final[Mapping[str, _Check]] = {
    "UpdateRobotPart": part_configs.check_update,
    "CreateFragment": fragment_edit.check_create,
    "UpdateFragment": fragment_edit.check_update,
    "SetFragmentTag": fragment_edit.check_tag,
}
"""Checks that run before the transaction of an operation, because they are slow."""


def served_methods() -> list[str]:
    """Return the names of the methods that are served."""
    return sorted({*OPERATIONS, _LOGS, _TAIL, _UPLOAD})


class AppService:
    def __init__(self, context: CloudContext, login: ActorLogin, checker: ConfigChecker) -> None:
        self._context = context
        self._login = login
        self._checker = checker
        self._searches = LogSearches(context.logs, context.clock)

    def methods(self) -> list[Method]:
        """Return every method of the API. Unserved methods raise an error with the reason."""
        return [
            replace(method, handle=self._handle(method))
            for method in methods_from_service(UnimplementedAppServiceBase())
        ]

    def _handle(self, method: Method) -> Handler:
        name = method.path.rpartition("/")[2]
        if name == _TAIL:
            return self._tail_logs
        if name == _UPLOAD:
            return self._upload_module_file
        answer, check = self._find_answer(name), _CHECKS.get(name)
        if answer is None:
            return self._refuse(name)

        async def handle(stream: Stream) -> None:
            actor = await self._identify(stream)
            request = await stream.recv_message()
            if check is not None:
                await check(self._context, self._checker, actor, request)
            await stream.send_message(await answer(actor, request))

        return handle

    async def _identify(self, stream: Stream) -> Actor:
        """Return the identity of a caller. Refuse machines, which have other services."""
        actor = await self._login.identify(stream)
        if actor.type is not ActorType.API_KEY:
            raise RoleTooLow(
                f"{actor} cannot use {APP_SERVICE}, which is for people and their programs; log "
                "in with an API key"
            )
        return actor

    async def _tail_logs(self, stream: Stream) -> None:
        actor = await self._identify(stream)
        replies = tail_robot_part_logs(self._context, actor, await stream.recv_message())
        async for reply in replies:
            await self._identify(stream)  # the key may have been deleted meanwhile
            await stream.send_message(reply)

    async def _upload_module_file(self, stream: Stream) -> None:
        actor = await self._identify(stream)
        await stream.send_message(await upload_module_file(self._context, actor, stream))

    def _find_answer(self, name: str) -> Callable[[Actor, Any], Awaitable[Message]] | None:
        if (operation := OPERATIONS.get(name)) is not None:
            return partial(run_operation, self._context, operation)
        if name == _LOGS:
            return partial(get_robot_part_logs, self._context, self._searches)
        return None

    def _refuse(self, name: str) -> Handler:
        async def handle(stream: Stream) -> None:
            await self._identify(stream)
            raise Unsupported(f"{name} is not served: {UNSERVED_METHODS.get(name, 'unknown')}")

        return handle

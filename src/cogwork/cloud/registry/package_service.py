"""PackageService: packages for machines and for upload tools."""

from __future__ import annotations

from typing import Final

from viam.gen.app.packages.v1 import packages_pb2 as pb
from viam.gen.app.packages.v1.packages_grpc import PackageServiceBase

from cogwork.cloud.identity.login import ActorLogin
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.operations.operation import Call, writing
from cogwork.cloud.operations.operation_runner import run_operation
from cogwork.cloud.registry.package_upload import receive_archive
from cogwork.cloud.registry.packages import (
    OPERATIONS,
    add_package,
    check_package,
    require_upload,
)
from cogwork.cloud.storage.records import Transaction
from cogwork.core.errors import InvalidRequest
from cogwork.wire.table.first_message import recv_first_message
from cogwork.wire.table.handlers import Method, Stream, methods_from_service

PACKAGE_SERVICE: Final = "viam.app.packages.v1.PackageService"


class _PackageService(PackageServiceBase):
    def __init__(self, context: CloudContext, login: ActorLogin) -> None:
        self._context = context
        self._login = login

    async def CreatePackage(self, stream: Stream) -> None:  # type: ignore[override]
        context, actor = self._context, await self._login.identify(stream)
        first: pb.CreatePackageRequest = await recv_first_message(stream, "CreatePackage")
        if not first.HasField("info"):
            raise InvalidRequest("the first message must have the info of the package")
        new = check_package(first.info, context.now())
        # Check before receiving the archive. `add_package` checks again afterwards.
        await context.records.read(lambda tx: require_upload(tx, context.make_call(actor), new))
        blob = await receive_archive(context, stream, "contents")

        def add(tx: Transaction, call: Call, _: object) -> pb.CreatePackageResponse:
            row = add_package(tx, call, new, blob)
            return pb.CreatePackageResponse(id=f"{new.organization}/{new.name}", version=row.label)

        await stream.send_message(await run_operation(context, writing(add), actor, first))

    async def GetPackage(self, stream: Stream) -> None:  # type: ignore[override]
        await self._answer("GetPackage", stream)

    async def ListPackages(self, stream: Stream) -> None:  # type: ignore[override]
        await self._answer("ListPackages", stream)

    async def DeletePackage(self, stream: Stream) -> None:  # type: ignore[override]
        await self._answer("DeletePackage", stream)

    async def _answer(self, name: str, stream: Stream) -> None:
        actor = await self._login.identify(stream)
        request = await stream.recv_message()
        await stream.send_message(
            await run_operation(self._context, OPERATIONS[name], actor, request)
        )


def package_methods(context: CloudContext, login: ActorLogin) -> list[Method]:
    return methods_from_service(_PackageService(context, login))

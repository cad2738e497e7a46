"""The download of packages over HTTP.

A machine sends HEAD, and then GET with a range if it continues an interrupted download. It compares
the content with the checksum in the header `x-goog-hash`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from cogwork.auth.errors import InvalidLogin, RoleTooLow, TooManyAttempts, Unauthenticated
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.identity.login import ActorLogin
from cogwork.cloud.identity.membership import can_see
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.registry.blob_response import respond_with_blob
from cogwork.cloud.registry.packages import encode_checksum
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import first, query
from cogwork.cloud.storage.tables import PackageRow
from cogwork.core.errors import CogworkError, NotFound
from cogwork.net.peer import host_of
from cogwork.wire.transports.asgi import CLIENT_KEY, SECURITY_HEADERS

_CREDENTIALS: Final = (
    ("key_id", "key", ActorType.API_KEY),
    ("part_id", "secret", ActorType.PART),
)
"""Pairs of headers with the credentials of a client."""
_STATUS_BY_ERROR: Final[dict[type[CogworkError], int]] = {
    InvalidLogin: 400,
    Unauthenticated: 401,
    RoleTooLow: 403,
    NotFound: 404,
    TooManyAttempts: 429,
}


@dataclass(frozen=True, slots=True)
class _SharedPackage(PackageRow):
    """A package with the data that determine who may download it."""

    organization_id: str
    visibility: int


def package_routes(context: CloudContext, login: ActorLogin) -> list[Route]:
    async def download(request: Request) -> Response:
        try:
            actor = await _identify(login, request)
            package = request.path_params["package"]
            row = await context.records.read(lambda tx: _find_package(tx, actor, package))
            return _respond(context, request, row)
        except CogworkError as error:
            code = _STATUS_BY_ERROR.get(type(error), 503)
            return PlainTextResponse(f"{error}\n", code, headers=SECURITY_HEADERS)

    return [Route("/packages/{package}.tar.gz", download, methods=["GET"])]


async def _identify(login: ActorLogin, request: Request) -> Actor:
    address = host_of(request.scope["state"][CLIENT_KEY].address)
    for entity, secret, kind in _CREDENTIALS:
        if entity in request.headers and secret in request.headers:
            return await login.verify(
                request.headers[entity], kind, request.headers[secret], address
            )
    raise Unauthenticated(
        "send the headers key_id and key of an API key, or part_id and secret of a machine's part"
    )


def _find_package(tx: Transaction, actor: Actor, package: str) -> _SharedPackage:
    row = first(
        query(
            tx,
            _SharedPackage,
            "SELECT package.*, registry_item.organization_id, registry_item.visibility "
            "FROM package JOIN registry_item ON registry_item.id = package.item_id "
            "WHERE package.id = ? AND package.deleted_at IS NULL",
            package,
        )
    )
    if row is None or not can_see(tx, actor, row.organization_id, row.visibility):
        raise NotFound("there is no such package, or it is not shared with you")
    return row


def _respond(context: CloudContext, request: Request, package: PackageRow) -> Response:
    headers = {
        "Content-Type": "application/x-gzip",
        "x-goog-hash": f"crc32c={encode_checksum(package)}",
    }
    return respond_with_blob(context.blobs, request, package.digest, package.size, headers)

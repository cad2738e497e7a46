"""The HTTP interface of the cloud."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from cogwork import __version__
from cogwork.cloud.context import CloudContext
from cogwork.cloud.login import Login
from cogwork.cloud.package_download import package_routes
from cogwork.wire.http1 import Application


def create_app(context: CloudContext, login: Login) -> Application:
    async def root(_: Request) -> Response:
        return PlainTextResponse(f"cogwork-cloud {__version__}\n")

    return Starlette(routes=[Route("/", root), *package_routes(context, login)])

"""The HTTP interface of the cloud."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from cogwork import __version__
from cogwork.cloud.control_plane import ControlPlane
from cogwork.cloud.package_download import package_routes
from cogwork.wire.http1 import Application


def create_app(plane: ControlPlane) -> Application:
    async def root(_: Request) -> Response:
        return PlainTextResponse(f"cogwork-cloud {__version__}\n")

    return Starlette(routes=[Route("/", root), *package_routes(plane.context, plane.login)])

"""The HTTP interface of the cloud: endpoints for machines, and gRPC-web for browsers."""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from cogwork import __version__
from cogwork.cloud.control_plane.control_plane import ControlPlane
from cogwork.cloud.control_plane.health import StoreState
from cogwork.cloud.machine.machine_http import machine_routes
from cogwork.cloud.registry.package_download import package_routes
from cogwork.cloud.updates.release_download import release_routes
from cogwork.wire.transports.asgi import Application
from cogwork.wire.transports.grpcweb import GrpcWebApp, is_grpc_web


def create_app(plane: ControlPlane) -> Application:
    async def root(_: Request) -> Response:
        return PlainTextResponse(f"cogwork-cloud {__version__}\n")

    async def healthz(_: Request) -> Response:
        health = plane.health
        status = 200 if health.state is StoreState.OK else 503
        return JSONResponse(health.as_json(), status, {"Cache-Control": "no-store"})

    routes = [
        Route("/", root),
        Route("/healthz", healthz),
        *machine_routes(plane.context, plane.login),
        *package_routes(plane.context, plane.login),
        *release_routes(plane.context),
    ]
    pages = Starlette(routes=routes)
    calls = GrpcWebApp(plane.table, plane.login.check_call)

    async def dispatch(scope: Any, receive: Any, send: Any) -> None:
        content_type = Headers(scope=scope).get("content-type", "")
        is_call = scope["method"] == "POST" and is_grpc_web(content_type)
        await (calls if is_call else pages)(scope, receive, send)

    return dispatch

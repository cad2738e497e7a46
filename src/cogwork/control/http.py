"""The HTTP interface of a machine: a status page for people, and endpoints for programs.

The load stays low regardless of how many clients poll and how often: a response is computed once
for all clients that wait for it (`coalescing.py`), and everything that grows with the number of
clients has a quota or is throttled.
"""

from __future__ import annotations

import socket
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from cogwork.config.host_names import allowed_host_names
from cogwork.control.browser_guard import BrowserGuard
from cogwork.control.camera_images import CameraImages
from cogwork.control.coalescing import Coalescer
from cogwork.control.history import read_history
from cogwork.control.http_login import HttpLogin
from cogwork.control.logs import parse_query, stream_log_lines
from cogwork.control.page import CONTENT_SECURITY_POLICY
from cogwork.control.quota import MeteredResponse, Quota
from cogwork.control.sliced_response import SlicedResponse
from cogwork.control.status import encode_page, encode_status
from cogwork.control.throttled_app import ThrottledApp
from cogwork.core.clock import Clock
from cogwork.core.loop_throttle import LoopThrottle
from cogwork.logs.ring_buffer import RingBuffer
from cogwork.robot.authentication import Authentication
from cogwork.robot.event_journal import EventJournal
from cogwork.robot.machine import Machine
from cogwork.robot.maintenance import check_maintenance
from cogwork.wire.grpcweb import GrpcWebApp, is_grpc_web
from cogwork.wire.handlers import HandlerTable
from cogwork.wire.http1 import LOCAL_KEY, Application

_MIB = 1 << 20


def create_app(
    machine: Machine,
    clock: Clock,
    ring: RingBuffer,
    journal: EventJournal,
    authentication: Authentication,
    table: HandlerTable,
) -> Application:
    throttle = LoopThrottle()
    followers = Quota("followers of the log", total=64, per_address=8)
    unread_bytes = Quota("unread responses", total=32 * _MIB, per_address=16 * _MIB)
    images = CameraImages(machine, clock)
    pages = Coalescer(lambda: encode_page(machine, clock), clock)
    statuses = Coalescer(lambda: encode_status(machine), clock)
    histories = Coalescer(lambda: read_history(journal), clock)
    maintenance_checks = Coalescer(lambda: check_maintenance(machine, clock), clock)

    def respond(body: bytes, media_type: str, **headers: str) -> MeteredResponse:
        return metered(SlicedResponse(body, media_type=media_type, headers=headers))

    def metered(response: Response) -> MeteredResponse:
        return MeteredResponse(response, unread_bytes, len(response.body), evictable=True)

    async def index(_: Request) -> MeteredResponse:
        policy = {"Content-Security-Policy": CONTENT_SECURITY_POLICY}
        return respond(await pages.get(), "text/html", **policy)

    async def status(_: Request) -> MeteredResponse:
        return respond(await statuses.get(), "application/json")

    async def restart_status(request: Request) -> Response:
        if not _is_local(request.scope):
            return PlainTextResponse("forbidden: only available from the machine itself\n", 403)
        verdict = await maintenance_checks.get()
        return JSONResponse(
            {
                "restart_allowed": verdict.allowed,
                "reason": verdict.reason,
                "does_not_handle_needs_restart": True,
                "module_server_tcp_addr": "",
            }
        )

    async def logs(request: Request) -> Response | MeteredResponse:
        try:
            query = parse_query(request.query_params)
        except ValueError as error:
            return PlainTextResponse(f"{error}\n", 400)
        follow = "follow" in request.query_params and request.method == "GET"
        lines = stream_log_lines(ring, query, clock, throttle, follow=follow)
        response = StreamingResponse(lines, media_type="application/jsonl")
        return MeteredResponse(response, followers) if follow else response

    async def history(request: Request) -> MeteredResponse:
        events = await histories.get()
        return respond(events.encode(request.query_params.get("resource")), "application/json")

    async def camera_image(request: Request) -> MeteredResponse:
        return metered(await images.get_newest(request.path_params["name"]))

    async def not_found(request: Request, _: Exception) -> Response:
        return PlainTextResponse(f"{request.url.path} not found; the status page is at /\n", 404)

    site = Starlette(
        routes=[
            Route("/", index),
            Route("/status.json", status),
            Route("/restart_status", restart_status),
            Route("/logs.jsonl", logs),
            Route("/history.json", history),
            Route("/camera/{name}", camera_image),
        ],
        exception_handlers={404: not_found},
    )
    guard = BrowserGuard(
        _CallDispatcher(GrpcWebApp(table, authentication.check), HttpLogin(site, authentication)),
        lambda: allowed_host_names(machine.config, socket.gethostname()),
        lambda: machine.config.network.allowed_origins,
    )
    return ThrottledApp(guard, throttle)


class _CallDispatcher:
    """Passes calls to one application, and all other requests to another.

    Calls need no login here, because the handler table requires it.
    """

    def __init__(self, calls: Application, site: Application) -> None:
        self._calls = calls
        self._site = site

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        content_type = Headers(scope=scope).get("content-type", "")
        is_call = scope["method"] == "POST" and is_grpc_web(content_type)
        await (self._calls if is_call else self._site)(scope, receive, send)


def _is_local(scope: Any) -> bool:
    """Return whether the client is on this computer, whichever of its addresses it uses."""
    return bool(scope["state"][LOCAL_KEY])

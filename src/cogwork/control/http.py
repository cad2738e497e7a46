"""The HTTP interface of a machine: pages for people, and endpoints for programs.

The load stays low regardless of how many clients poll and how often: a response is computed once
for all clients that wait for it (`coalescing.py`), and everything that grows with the number of
clients has a quota or is throttled.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from cogwork import __version__
from cogwork.auth.identity import Identity
from cogwork.auth.roles import Role
from cogwork.config.config_editor import ConfigEditor
from cogwork.config.host_names import allowed_host_names, machine_name
from cogwork.control.browser_guard import BrowserGuard
from cogwork.control.camera_images import CameraImages
from cogwork.control.coalescing import Coalescer
from cogwork.control.configuration import configuration_routes
from cogwork.control.history import parse_history_query, read_history, read_latest_history
from cogwork.control.http_login import IDENTITY_KEY, HttpLogin
from cogwork.control.logs import parse_query, stream_log_lines
from cogwork.control.page import CONTENT_SECURITY_POLICY
from cogwork.control.quota import MeteredResponse, Quota
from cogwork.control.session_end import session_end_route
from cogwork.control.sliced_response import SlicedResponse
from cogwork.control.static_site import StaticSite
from cogwork.control.status import encode_page, encode_status
from cogwork.control.throttled_app import ThrottledApp
from cogwork.core.clock import Clock
from cogwork.core.loop_throttle import LoopThrottle
from cogwork.logs.ring_buffer import RingBuffer
from cogwork.robot.authentication import Authentication
from cogwork.robot.event_journal import EventJournal
from cogwork.robot.machine import Machine
from cogwork.robot.maintenance import check_maintenance
from cogwork.robot.server_report import ServerReport
from cogwork.wire.asgi import CLIENT_KEY, Application
from cogwork.wire.grpcweb import GrpcWebApp, is_grpc_web
from cogwork.wire.handlers import HandlerTable

_MIB = 1 << 20


def create_app(
    machine: Machine,
    report: ServerReport,
    clock: Clock,
    ring: RingBuffer,
    journal: EventJournal,
    authentication: Authentication,
    table: HandlerTable,
    site: StaticSite,
    editor: ConfigEditor | None = None,
) -> Application:
    """`editor` is None if the configuration is not a file of the machine."""
    throttle = LoopThrottle()
    followers = Quota("followers of the log", total=64, per_address=8)
    unread_bytes = Quota("unread responses", total=32 * _MIB, per_address=16 * _MIB)
    images = CameraImages(machine, clock)
    plain_pages = Coalescer(lambda: encode_page(machine, report, clock, site.problem), clock)
    statuses = Coalescer(lambda: encode_status(machine, report), clock)
    histories = Coalescer(lambda: read_history(journal), clock)
    latest_histories = Coalescer(lambda: read_latest_history(journal), clock)
    maintenance_checks = Coalescer(lambda: check_maintenance(machine, report, clock), clock)

    def respond(body: bytes, media_type: str, **headers: str) -> MeteredResponse:
        return metered(SlicedResponse(body, media_type=media_type, headers=headers))

    def metered(response: Response) -> MeteredResponse:
        return MeteredResponse(response, unread_bytes, len(response.body), evictable=True)

    async def plain_page(_: Request) -> MeteredResponse:
        policy = {"Content-Security-Policy": CONTENT_SECURITY_POLICY}
        return respond(await plain_pages.get(), "text/html", **policy)

    async def status(_: Request) -> MeteredResponse:
        return respond(await statuses.get(), "application/json")

    async def access(request: Request) -> Response:
        identity: Identity | None = request.scope["state"][IDENTITY_KEY]
        return JSONResponse(
            {
                "machine": machine_name(machine.config, socket.gethostname()),
                "version": __version__,
                "time": clock.time(),
                "login": identity is not None,
                "entity": identity.entity if identity is not None else "",
                "role": (identity.role if identity is not None else Role.OWNER).name.lower(),
            }
        )

    async def restart_status(request: Request) -> Response:
        if not _is_local(request.scope):
            return PlainTextResponse("forbidden: only available from the machine itself\n", 403)
        verdict = await maintenance_checks.get()
        return JSONResponse(
            {
                "restart_allowed": verdict.allowed,
                "reason": verdict.reason,
                "version": __version__,
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

    async def history(request: Request) -> Response | MeteredResponse:
        try:
            query = parse_history_query(request.query_params)
        except ValueError as error:
            return PlainTextResponse(f"{error}\n", 400)
        # The last events of one resource may be far back.
        is_recent = query.last is not None and query.resource is None
        events = await (latest_histories if is_recent else histories).get()
        return respond(events.encode(query), "application/json")

    async def camera_image(request: Request) -> MeteredResponse:
        return metered(await images.get_newest(request.path_params["name"]))

    async def not_found(request: Request, _: Exception) -> Response:
        return PlainTextResponse(f"{request.url.path} not found; the control page is at /\n", 404)

    pages = Starlette(
        routes=[
            # Without the built page, this says how to get it.
            Route("/", plain_page),
            Route("/status", plain_page),
            Route("/status.json", status),
            Route("/access.json", access),
            Route("/restart_status", restart_status),
            Route("/logs.jsonl", logs),
            Route("/history.json", history),
            Route("/camera/{name}", camera_image),
            session_end_route(machine.sessions),
            *configuration_routes(editor, lambda: machine.revision, metered),
        ],
        exception_handlers={404: not_found},
    )
    guard = BrowserGuard(
        _Dispatcher(
            GrpcWebApp(table, authentication.check), site, HttpLogin(pages, authentication), metered
        ),
        lambda: allowed_host_names(machine.config, socket.gethostname()),
        lambda: machine.config.network.allowed_origins,
    )
    return ThrottledApp(guard, throttle)


class _Dispatcher:
    """Passes calls to one application, and requests for pages to another.

    Neither calls nor the files of the control page need a login here: the handler table requires
    it, and the files are the same on every machine.
    """

    def __init__(
        self,
        calls: Application,
        site: StaticSite,
        pages: Application,
        metered: Callable[[Response], MeteredResponse],
    ) -> None:
        self._calls = calls
        self._site = site
        self._pages = pages
        self._metered = metered

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = Headers(scope=scope)
        if scope["method"] == "POST" and is_grpc_web(headers.get("content-type", "")):
            await self._calls(scope, receive, send)
        elif scope["method"] in ("GET", "HEAD") and scope["path"] in self._site:
            file = await self._site.read(scope["path"])
            found = file.respond(headers) if file is not None else _make_removed_response()
            await self._metered(found)(scope, receive, send)
        else:
            await self._pages(scope, receive, send)


def _make_removed_response() -> Response:
    return PlainTextResponse("the control page was replaced; restart the server\n", 404)


def _is_local(scope: Any) -> bool:
    """Return whether the client is on this computer, whichever of its addresses it uses."""
    return bool(scope["state"][CLIENT_KEY].is_local)

"""The HTTP interface of a machine: pages for people, and endpoints for programs.

The load stays low for any number of clients and requests. A response is computed once for all
clients that wait for it (`coalescing.py`). Everything that grows with the number of clients has a
quota or is throttled.
"""

from __future__ import annotations

import socket
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from cogwork import __version__
from cogwork.auth.identity import Identity
from cogwork.auth.roles import Role
from cogwork.config.schema.host_names import allowed_host_names, machine_name
from cogwork.config.schema.machine import JobConfig
from cogwork.config.source.config_editor import ConfigEditor
from cogwork.control.browser_guard import BrowserGuard
from cogwork.control.camera_images import CameraImages
from cogwork.control.coalescing import Coalescer
from cogwork.control.configuration import configuration_routes
from cogwork.control.history import parse_history_query, read_history, read_latest_history
from cogwork.control.http_login import IDENTITY_KEY, HttpLogin
from cogwork.control.job_run import job_run_route
from cogwork.control.logs import parse_query, stream_log_lines
from cogwork.control.page import CONTENT_SECURITY_POLICY
from cogwork.control.quota import MeteredResponse, Quota
from cogwork.control.session_end import session_end_route
from cogwork.control.sliced_response import SlicedResponse
from cogwork.control.static_site import StaticSite
from cogwork.control.status import encode_page, encode_status
from cogwork.control.throttled_app import ThrottledApp
from cogwork.core.clock import Clock
from cogwork.core.limits.loop_throttle import LoopThrottle
from cogwork.logs.ring_buffer import RingBuffer
from cogwork.robot.event_journal import EventJournal
from cogwork.robot.jobs.job_call import JobMethod, find_job_method, resolve_name
from cogwork.robot.machine import Machine
from cogwork.robot.middleware.authentication import Authentication
from cogwork.robot.status.maintenance import check_maintenance
from cogwork.robot.status.server_report import ServerReport
from cogwork.wire.table.handlers import HandlerTable
from cogwork.wire.transports.asgi import CLIENT_KEY
from cogwork.wire.transports.grpcweb import GrpcWebApp, is_grpc_web

_MIB = 1 << 20


class MachineApp:
    """The ASGI application of a machine."""

    def __init__(
        self,
        machine: Machine,
        report: ServerReport,
        clock: Clock,
        ring: RingBuffer,
        journal: EventJournal,
        authentication: Authentication,
        table: HandlerTable,
        site: StaticSite,
        editor: ConfigEditor | None = None,
        *,
        has_webrtc: bool = False,
    ) -> None:
        """Create the application.

        `editor` is None if the machine's configuration is not a local file. `has_webrtc`: whether
        browsers can connect over WebRTC.
        """
        self._has_webrtc = has_webrtc
        self._machine = machine
        self._clock = clock
        self._ring = ring
        self._site = site
        self._editor = editor
        self._throttle = LoopThrottle()
        self._followers = Quota("followers of the log", total=64, per_address=8)
        self._unread_bytes = Quota("unread responses", total=32 * _MIB, per_address=16 * _MIB)
        self._images = CameraImages(machine, clock)
        self._plain_pages = Coalescer(
            lambda: encode_page(machine, report, clock, site.problem), clock
        )
        self._statuses = Coalescer(lambda: encode_status(machine, report, clock), clock)
        self._histories = Coalescer(lambda: read_history(journal), clock)
        self._latest_histories = Coalescer(lambda: read_latest_history(journal), clock)
        self._maintenance_checks = Coalescer(
            lambda: check_maintenance(machine, report, clock), clock
        )
        self._table = table
        self._calls = GrpcWebApp(table, authentication.check)
        self._pages = HttpLogin(self._make_pages(), authentication)
        guard = BrowserGuard(
            self._dispatch,
            lambda: allowed_host_names(machine.config, socket.gethostname()),
            lambda: machine.config.network.allowed_origins,
        )
        self._app = ThrottledApp(guard, self._throttle)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)

    async def _dispatch(self, scope: Any, receive: Any, send: Any) -> None:
        """Dispatch a request: a call, a file of the control page, or a route.

        No login is checked for calls here, because the handler table checks it. The files of the
        control page need no login, because they are the same on every machine.
        """
        headers = Headers(scope=scope)
        if scope["method"] == "POST" and is_grpc_web(headers.get("content-type", "")):
            await self._calls(scope, receive, send)
        elif scope["method"] in ("GET", "HEAD") and scope["path"] in self._site:
            file = await self._site.read(scope["path"])
            found = file.respond(headers) if file is not None else _make_removed_response()
            await self._meter(found)(scope, receive, send)
        else:
            await self._pages(scope, receive, send)

    def _make_pages(self) -> Starlette:
        machine = self._machine
        return Starlette(
            routes=[
                # If the control page is missing, this page explains how to install it.
                Route("/", self._plain_page),
                Route("/status", self._plain_page),
                Route("/status.json", self._status),
                Route("/access.json", self._access),
                Route("/restart_status", self._restart_status),
                Route("/logs.jsonl", self._logs),
                Route("/history.json", self._history),
                Route("/camera/{name}", self._camera_image),
                session_end_route(machine.sessions),
                job_run_route(machine.jobs, self._find_job_method),
                *configuration_routes(self._editor, lambda: machine.revision, self._meter),
            ],
            exception_handlers={404: _refuse_path},
        )

    def _find_job_method(self, config: JobConfig) -> JobMethod:
        machine = self._machine
        return find_job_method(
            self._table, lambda text: resolve_name(text, machine.names()), machine, config
        )

    async def _plain_page(self, _: Request) -> MeteredResponse:
        policy = {"Content-Security-Policy": CONTENT_SECURITY_POLICY}
        return self._respond(await self._plain_pages.get(), "text/html", **policy)

    async def _status(self, _: Request) -> MeteredResponse:
        return self._respond(await self._statuses.get(), "application/json")

    async def _access(self, request: Request) -> Response:
        identity: Identity | None = request.scope["state"][IDENTITY_KEY]
        return JSONResponse(
            {
                "machine": machine_name(self._machine.config, socket.gethostname()),
                "version": __version__,
                "time": self._clock.time(),
                "login": identity is not None,
                "entity": identity.label if identity is not None else "",
                "role": (identity.role if identity is not None else Role.OWNER).name.lower(),
                "webrtc": self._has_webrtc,
            }
        )

    async def _restart_status(self, request: Request) -> Response:
        if not _is_local(request.scope):
            return PlainTextResponse("forbidden: only available from the machine itself\n", 403)
        verdict = await self._maintenance_checks.get()
        return JSONResponse(
            {
                "restart_allowed": verdict.allowed,
                "reason": verdict.reason,
                "version": __version__,
                "does_not_handle_needs_restart": True,
                "module_server_tcp_addr": "",
            }
        )

    async def _logs(self, request: Request) -> Response | MeteredResponse:
        try:
            query = parse_query(request.query_params)
        except ValueError as error:
            return PlainTextResponse(f"{error}\n", 400)
        follow = "follow" in request.query_params and request.method == "GET"
        lines = stream_log_lines(self._ring, query, self._clock, self._throttle, follow=follow)
        response = StreamingResponse(lines, media_type="application/jsonl")
        return MeteredResponse(response, self._followers) if follow else response

    async def _history(self, request: Request) -> Response | MeteredResponse:
        try:
            query = parse_history_query(request.query_params)
        except ValueError as error:
            return PlainTextResponse(f"{error}\n", 400)
        # Read all events for one resource: its last events may be far back in the journal.
        is_recent = query.last is not None and query.resource is None
        events = await (self._latest_histories if is_recent else self._histories).get()
        return self._respond(events.encode(query), "application/json")

    async def _camera_image(self, request: Request) -> MeteredResponse:
        return self._meter(await self._images.get_newest(request.path_params["name"]))

    def _respond(self, body: bytes, media_type: str, **headers: str) -> MeteredResponse:
        return self._meter(SlicedResponse(body, media_type=media_type, headers=headers))

    def _meter(self, response: Response) -> MeteredResponse:
        """Limit the size of responses that clients have not read yet."""
        return MeteredResponse(response, self._unread_bytes, len(response.body), evictable=True)


async def _refuse_path(request: Request, _: Exception) -> Response:
    return PlainTextResponse(f"{request.url.path} not found; the control page is at /\n", 404)


def _make_removed_response() -> Response:
    return PlainTextResponse("the control page was replaced; restart the server\n", 404)


def _is_local(scope: Any) -> bool:
    """Return whether the client is on this computer, regardless of the address that it uses."""
    return bool(scope["state"][CLIENT_KEY].is_local)

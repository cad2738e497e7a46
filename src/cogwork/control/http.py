"""The HTTP face of a machine: a plain page, and what programs ask over HTTP."""

from __future__ import annotations

import ipaddress
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from cogwork.control.logs import log_lines, read_query
from cogwork.control.page import page
from cogwork.control.pictures import newest_picture
from cogwork.core.clock import Clock
from cogwork.core.workers import Workers
from cogwork.logs.ring import Ring
from cogwork.robot.machine import Machine
from cogwork.robot.maintenance import permission
from cogwork.robot.story import Story
from cogwork.robot.view import machine_view


def application(machine: Machine, clock: Clock, ring: Ring, story: Story) -> Starlette:
    async def index(_: Request) -> Response:
        return HTMLResponse(page(machine_view(machine), clock.time()))

    async def status(_: Request) -> Response:
        return JSONResponse(machine_view(machine))

    async def restart_status(request: Request) -> Response:
        if not _is_local(request.scope):
            return PlainTextResponse("forbidden: only from the machine itself\n", 403)
        verdict = await permission(machine, clock)
        return JSONResponse(
            {
                "restart_allowed": verdict.allowed,
                "reason": verdict.reason,
                "does_not_handle_needs_restart": True,
                "module_server_tcp_addr": "",
            }
        )

    async def logs(request: Request) -> Response:
        try:
            query = read_query(request.query_params)
        except ValueError as error:
            return PlainTextResponse(f"{error}\n", 400)
        follow = "follow" in request.query_params
        return StreamingResponse(
            log_lines(ring, query, clock, follow=follow), media_type="application/jsonl"
        )

    async def history(request: Request) -> Response:
        thread = Workers("story")
        try:
            told = await thread.run(lambda: story.read(request.query_params.get("resource")))
        finally:
            thread.close()
        return JSONResponse(told)

    async def picture(request: Request) -> Response:
        return await newest_picture(machine, request.path_params["name"])

    async def missing(request: Request, _: Exception) -> Response:
        return PlainTextResponse(f"there is no {request.url.path} here; / shows the machine\n", 404)

    return Starlette(
        routes=[
            Route("/", index),
            Route("/status.json", status),
            Route("/restart_status", restart_status),
            Route("/logs.jsonl", logs),
            Route("/history.json", history),
            Route("/camera/{name}", picture),
        ],
        exception_handlers={404: missing},
    )


def _is_local(scope: Any) -> bool:
    """From this computer, by whichever of its addresses."""
    client, server = scope["client"][0], scope["server"][0]
    return client == server or ipaddress.ip_address(client.partition("%")[0]).is_loopback

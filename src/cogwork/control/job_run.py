"""The HTTP endpoint with which people run a job now. The public API has no such method."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from cogwork.auth.errors import RoleTooLow
from cogwork.auth.identity import Identity
from cogwork.auth.roles import Role
from cogwork.config.schema.machine import JobConfig
from cogwork.control.http_login import IDENTITY_KEY
from cogwork.control.quota import Overloaded, Quota
from cogwork.core.errors import CogworkError, Interrupted, InvalidRequest
from cogwork.robot.jobs.job_call import JobMethod
from cogwork.robot.jobs.job_scheduler import JobCall, JobScheduler, StillRunning
from cogwork.robot.middleware.authentication import check_role
from cogwork.wire.transports.asgi import CLIENT_KEY
from cogwork.wire.transports.http_body import ClientGone, read_body

PATH: Final = "/job/run"
_MAX_BODY_SIZE: Final = 4096
_STATUS_BY_ERROR: Final[dict[type[CogworkError], int]] = {
    RoleTooLow: 403,
    StillRunning: 409,
    Interrupted: 409,
    Overloaded: 503,
}

FindMethod = Callable[[JobConfig], JobMethod]
"""Returns the method that a job calls now. Raises CogworkError if it is not found."""


def job_run_route(jobs: JobScheduler, find_method: FindMethod) -> Route:
    """Return the route. Its reply comes when the run has ended, also if the run failed."""
    waiting = Quota("runs of jobs that clients wait for", total=32, per_address=8)

    async def run_job(request: Request) -> Response:
        state = request.scope["state"]
        identity: Identity | None = state[IDENTITY_KEY]
        address = state[CLIENT_KEY].address
        try:
            name = _read_name(await read_body(request.receive, _MAX_BODY_SIZE))
            call = _check_access(identity, jobs.find(name), find_method)
            with waiting.hold(address):
                outcome = await jobs.run_now(name, str(identity or address), call)
        except ClientGone:
            return Response(status_code=400)
        except CogworkError as error:
            return PlainTextResponse(f"{error}\n", _STATUS_BY_ERROR.get(type(error), 400))
        return JSONResponse({"error": outcome.reason, "seconds": outcome.seconds})

    return Route(PATH, run_job, methods=["POST"])


def _check_access(
    identity: Identity | None, config: JobConfig, find_method: FindMethod
) -> JobCall | None:
    """Return the call of the method whose role was checked. Raise RoleTooLow.

    None if the method is not found. Only an owner may run the job then: the run looks for the
    method again, and may find one that requires an owner.
    """
    target = f'running job "{config.name}"'
    try:
        method = find_method(config)
    except CogworkError as error:
        role, call = Role.OWNER, None
        target += f" while its method is not found ({error})"
    else:
        role, call = method.role, method.call
    if identity is not None:
        check_role(identity, role, target)
    return call


def _read_name(body: bytes) -> str:
    try:
        name = json.loads(body)["name"]
    except (ValueError, TypeError, LookupError, RecursionError):
        name = None
    if not isinstance(name, str):
        raise InvalidRequest('expected {"name": "the name of the job"} as JSON')
    return name

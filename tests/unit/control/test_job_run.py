"""Jobs that people run now, tested without a network."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.applications import Starlette
from tests.unit.control.asgi import AsgiResponse, send_body
from tests.unit.robot.bench import Bench, probe
from tests.unit.robot.conftest import bench

from cogwork.auth.identity import CredentialType, Identity
from cogwork.auth.roles import ROLE_BY_PATH, Role
from cogwork.config.schema.machine import JobConfig
from cogwork.control.browser_guard import BrowserGuard
from cogwork.control.http_login import IDENTITY_KEY
from cogwork.control.job_run import PATH, job_run_route
from cogwork.robot.jobs.job_call import find_job_role, resolve_name

__all__ = ["bench"]

PAGE = {"origin": "http://localhost:8080"}
DAILY = {"schedule": "0 7 * * *", "resource": "a"}
JOBS = [
    {"name": "read", "method": "GetReadings", **DAILY},
    {"name": "order", "method": "DoCommand", **DAILY},
    {"name": "lost", "schedule": "0 7 * * *", "resource": "nothing", "method": "GetReadings"},
]


async def run(bench: Bench, body: Any, role: Role | None = None, **options: Any) -> AsgiResponse:
    nodes = bench.machine.nodes

    def find_role(config: JobConfig) -> Role:
        return find_job_role(
            bench.table, lambda text: resolve_name(text, nodes), bench.machine.modules, config
        )

    routes = Starlette(routes=[job_run_route(bench.machine.jobs, find_role)])

    async def log_in(scope: Any, receive: Any, send: Any) -> None:
        identity = Identity("someone", CredentialType.API_KEY, role) if role is not None else None
        scope["state"][IDENTITY_KEY] = identity
        await routes(scope, receive, send)

    guard = BrowserGuard(log_in, lambda: ["localhost"], list)
    return await send_body(guard, PATH, json.dumps(body).encode(), **{"headers": PAGE} | options)


@pytest.fixture
async def reads(bench: Bench) -> list[str]:
    """The readings of a machine with jobs that run once a day."""
    seen: list[str] = []

    async def read(**_: Any) -> dict[str, int]:
        seen.append("read")
        return {"x": 1}

    bench.behaviors["a"] = read
    await bench.apply(probe("a"), jobs=JOBS)
    return seen


async def test_job_runs_and_its_outcome_is_told(bench: Bench, reads: list[str]) -> None:
    answer = await run(bench, {"name": "read"})
    assert (answer.status, json.loads(answer.body)["error"]) == (200, None)
    assert reads == ["read"]
    record = next(each for each in bench.machine.jobs.statuses() if each.name == "read")
    assert len(record.successes) == 1


async def test_failed_run_tells_its_reason(bench: Bench, reads: list[str]) -> None:
    answer = await run(bench, {"name": "lost"}, Role.OPERATOR)
    assert answer.status == 200
    assert 'there is no resource "nothing"' in json.loads(answer.body)["error"]
    assert reads == []


@pytest.mark.parametrize(
    ("role", "status"), [(Role.VIEWER, 403), (Role.OPERATOR, 200), (Role.OWNER, 200)]
)
async def test_viewers_run_no_jobs(bench: Bench, reads: list[str], role: Role, status: int) -> None:
    answer = await run(bench, {"name": "read"}, role)
    assert answer.status == status
    assert len(reads) == (status == 200)


async def test_job_of_a_method_for_owners_needs_an_owner(
    bench: Bench, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/viam.component.sensor.v1.SensorService/GetReadings"
    monkeypatch.setitem(ROLE_BY_PATH, path, Role.OWNER)
    answer = await run(bench, {"name": "read"}, Role.OPERATOR)
    assert (answer.status, reads) == (403, [])
    assert b"requires the role owner" in answer.body
    assert (await run(bench, {"name": "read"}, Role.OWNER)).status == 200


@pytest.mark.parametrize(
    ("body", "text"),
    [({"name": "reed"}, 'there is no job "reed"; did you mean'), ({"job": 1}, "expected")],
)
async def test_refusals_say_what_to_do(
    bench: Bench, reads: list[str], body: Any, text: str
) -> None:
    answer = await run(bench, body)
    assert answer.status == 400
    assert text in answer.body.decode()
    assert reads == []


@pytest.mark.parametrize("headers", [{}, {"origin": "http://elsewhere"}])
async def test_other_sites_run_no_jobs(
    bench: Bench, reads: list[str], headers: dict[str, str]
) -> None:
    assert (await run(bench, {"name": "read"}, headers=headers)).status == 403
    assert reads == []

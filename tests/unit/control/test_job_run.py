"""Jobs that people run now, tested without a network."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.auth.parts import ADDRESS, SECRETS, make_authenticator
from tests.unit.control.asgi import AsgiResponse, send_body
from tests.unit.robot.bench import (
    MOTION,
    NO_LOGIN,
    NO_SITE,
    Bench,
    ThingAttributes,
    full_name,
    probe,
    running_bench,
    thing,
)
from tests.unit.robot.conftest import bench

from cogwork.auth.roles import ROLE_BY_PATH, Role
from cogwork.control.http import MachineApp
from cogwork.control.job_run import PATH
from cogwork.graph.name import ModelName, ResourceName
from cogwork.graph.spec import Spec
from cogwork.logs.ring_buffer import RingBuffer
from cogwork.robot.event_journal import EventJournal
from cogwork.robot.middleware.authentication import Authentication
from cogwork.robot.middleware.operations import Operations

__all__ = ["bench"]

PAGE = {"origin": "http://localhost:8080"}
DAILY = {"schedule": "0 7 * * *", "resource": "a"}
JOBS = [
    {"name": "read", "method": "GetReadings", **DAILY},
    {"name": "order", "method": "DoCommand", **DAILY},
    {"name": "lost", "schedule": "0 7 * * *", "resource": "nothing", "method": "GetReadings"},
]


@contextlib.contextmanager
def open_app(bench: Bench, authentication: Authentication) -> Iterator[MachineApp]:
    with tempfile.TemporaryDirectory() as directory:
        journal = EventJournal(Path(directory) / "journal.jsonl", bench.clock)
        try:
            yield MachineApp(
                bench.machine,
                bench.report,
                bench.clock,
                RingBuffer(),
                journal,
                authentication,
                bench.table,
                NO_SITE,
            )
        finally:
            journal.close()


async def run(bench: Bench, body: Any, role: Role | None = None, **options: Any) -> AsgiResponse:
    authentication, headers = NO_LOGIN, PAGE
    if role is not None:
        authenticator = make_authenticator(clock=bench.clock)
        authentication = Authentication(Operations(bench.clock))
        authentication.use(authenticator)
        name = role.name.lower()
        token = authenticator.log_in(name, "api-key", SECRETS[name], ADDRESS)
        headers = {**PAGE, "authorization": f"Bearer {token}"}
    with open_app(bench, authentication) as app:
        data = json.dumps(body).encode()
        return await send_body(app, PATH, data, **{"headers": headers} | options)


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
    answer = await run(bench, {"name": "lost"}, Role.OWNER)
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


async def test_job_whose_method_is_not_found_needs_an_owner(bench: Bench, reads: list[str]) -> None:
    answer = await run(bench, {"name": "lost"}, Role.OPERATOR)
    assert answer.status == 403
    assert answer.body.decode() == (
        'running job "lost" while its method is not found (there is no resource "nothing"; add it '
        'to the configuration) requires the role owner; api-key "operator" has the role operator\n'
    )


async def test_run_uses_the_method_that_was_checked(
    bench: Bench, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The resources of the machine may change after the check."""
    commands: list[Any] = []

    async def order(command: Any) -> None:
        commands.append(command)

    bench.behaviors["b"] = order
    await bench.apply(probe("a"), thing("b"), jobs=[{**JOBS[1], "resource": "b"}])
    jobs = bench.machine.jobs

    def list_names() -> list[ResourceName]:
        is_running = any(each.running_since is not None for each in jobs.statuses())
        return [] if is_running else [full_name("b")]

    monkeypatch.setattr(bench.machine, "names", list_names)
    answer = await run(bench, {"name": "order"}, Role.OPERATOR)
    assert (answer.status, json.loads(answer.body)["error"]) == (200, None)
    assert commands == [{}]


async def test_role_for_a_default_service_that_is_not_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = ResourceName(MOTION, "builtin")
    spec = Spec(name, ModelName.parse("planner"), ThingAttributes(), is_default=True)
    job = {**JOBS[0], "resource": "builtin", "method": "ListPlanStatuses"}
    async with running_bench({name: lambda: spec}) as bench:
        await bench.apply(jobs=[job])
        path = "/viam.service.motion.v1.MotionService/ListPlanStatuses"
        with monkeypatch.context() as patch:
            patch.setitem(ROLE_BY_PATH, path, Role.OWNER)
            answer = await run(bench, {"name": "read"}, Role.OPERATOR)
            assert answer.status == 403
            assert answer.body.startswith(b'running job "read" requires the role owner')
        assert (await run(bench, {"name": "read"}, Role.OPERATOR)).status == 200


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

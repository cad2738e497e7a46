"""Permission to interrupt the machine for maintenance: only a fresh `true` allows it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.robot.bench import Behavior, Bench, fail_with, probe, thing, wait_forever

from cogwork.control.status import encode_status
from cogwork.core.errors import InvalidRequest
from cogwork.robot.status.maintenance import (
    DENIAL_AGE,
    TIMEOUT,
    MaintenancePermission,
    check_maintenance,
    evaluate_readings,
)
from cogwork.robot.status.status_view import build_status_view

SAFE = "rdk:component:sensor/safe"
GATE = {"sensor_name": SAFE, "maintenance_allowed_key": "idle"}


def return_readings(value: object) -> Behavior:
    async def read(**_: Any) -> object:
        return value

    return read


async def check_permission(bench: Bench) -> MaintenancePermission:
    task = await bench.start_call(check_maintenance(bench.machine, bench.report, bench.clock))
    assert task.done(), "it waits for something"
    return task.result()


async def test_maintenance_without_a_sensor_is_allowed(bench: Bench) -> None:
    await bench.apply(thing("a"))
    assert await check_permission(bench) == MaintenancePermission(
        True, "no maintenance sensor is configured"
    )


@pytest.mark.parametrize(
    ("readings", "verdict"),
    [
        ({"idle": True}, MaintenancePermission(True, f'"idle" of {SAFE} is true')),
        ({"idle": False}, MaintenancePermission(False, f'"idle" of {SAFE} is false')),
        (
            {"busy": True, "a": 1},
            MaintenancePermission(False, f'{SAFE} has no reading "idle"; its readings: a, busy'),
        ),
        ({}, MaintenancePermission(False, f'{SAFE} has no reading "idle"; its readings: none')),
        *(
            ({"idle": value}, MaintenancePermission(False, f'"idle" of {SAFE} is {shown}'))
            for value, shown in (
                (1, "1; it must be true or false"),
                (0, "0; it must be true or false"),
                ("true", "'true'; it must be true or false"),
                (None, "None; it must be true or false"),
                ([True], "[True]; it must be true or false"),
                (1.0, "1.0; it must be true or false"),
            )
        ),
        *(
            (
                odd,
                MaintenancePermission(
                    False,
                    f"{SAFE} could not be read: get_readings returned {kind} instead of readings",
                ),
            )
            for odd, kind in (
                (None, "NoneType"),
                (["idle"], "list"),
                ("idle", "str"),
                (True, "bool"),
            )
        ),
    ],
)
async def test_sensor_reading_decides(
    bench: Bench, readings: object, verdict: MaintenancePermission
) -> None:
    await bench.apply(probe("safe"), maintenance=GATE)
    bench.behaviors["safe"] = return_readings(readings)
    assert await check_permission(bench) == verdict


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["idle", "Idle", "busy"]) | st.text(), values))
def test_only_true_allows_maintenance(readings: dict[str, Any]) -> None:
    verdict = evaluate_readings(readings, SAFE, "idle")
    assert verdict.allowed == (readings.get("idle") is True)
    assert verdict.reason


async def test_every_check_reads_the_sensor_again(bench: Bench) -> None:
    await bench.apply(probe("safe"), maintenance=GATE)
    for value in (True, False, True):
        bench.behaviors["safe"] = return_readings({"idle": value})
        assert (await check_permission(bench)).allowed is value


async def test_missing_sensor_denies_maintenance(bench: Bench) -> None:
    await bench.apply(thing("a"), maintenance=GATE)
    verdict = await check_permission(bench)
    assert not verdict.allowed
    assert verdict.reason.startswith("no node found with api rdk:component:sensor and name safe")


async def test_unavailable_sensor_denies_maintenance(bench: Bench) -> None:
    bench.scripts["build", "safe"] = fail_with("no such device")
    await bench.apply(probe("safe"), maintenance=GATE)
    assert await check_permission(bench) == MaintenancePermission(
        False, f"resource {SAFE} not available; reason=no such device"
    )


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError("the cable was pulled"), "could not be read: the cable was pulled"),
        (InvalidRequest("not like this"), "could not be read: not like this"),
        (KeyError("idle"), "could not be read: KeyError: 'idle'"),
        (ValueError(), "could not be read: ValueError"),
        (TimeoutError(), "did not answer within 5s"),
        (asyncio.CancelledError(), "could not be read: the call to the sensor was cancelled"),
        (SystemExit(2), "could not be read: it called sys.exit(2)"),
    ],
)
async def test_failing_sensor_denies_maintenance(
    bench: Bench, error: BaseException, reason: str
) -> None:
    async def fail(**_: Any) -> Mapping[str, Any]:
        raise error

    await bench.apply(probe("safe"), maintenance=GATE)
    bench.behaviors["safe"] = fail
    assert await check_permission(bench) == MaintenancePermission(False, f"{SAFE} {reason}")


@pytest.mark.parametrize("stubborn", [False, True])
async def test_unresponsive_sensor_denies_maintenance(bench: Bench, stubborn: bool) -> None:
    released = asyncio.Event()

    async def wait_for_release(**_: Any) -> Mapping[str, Any]:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                if not stubborn:
                    raise
        return {"idle": True}

    await bench.apply(probe("safe"), maintenance=GATE)
    bench.behaviors["safe"] = wait_for_release
    checking = await bench.start_call(check_maintenance(bench.machine, bench.report, bench.clock))
    await bench.clock.advance(TIMEOUT - 0.1)
    assert not checking.done()
    await bench.clock.advance(0.2)
    assert checking.result() == MaintenancePermission(False, f"{SAFE} did not answer within 5s")
    released.set()
    await bench.clock.settle()


async def test_cancelled_check_leaves_no_task(bench: Bench) -> None:
    await bench.apply(probe("safe"), maintenance=GATE)
    bench.behaviors["safe"] = wait_forever
    checking = await bench.start_call(check_maintenance(bench.machine, bench.report, bench.clock))
    checking.cancel()
    await asyncio.gather(checking, return_exceptions=True)
    await bench.clock.settle()
    assert not [task for task in asyncio.all_tasks() if "get_readings" in repr(task)]


@pytest.mark.parametrize(
    "after",
    [
        [thing("slow", label="new")],
        [],
        [thing("slow", "mutable")],
    ],
    ids=["changed", "removed", "other model"],
)
async def test_replacing_a_running_resource_denies_maintenance(
    bench: Bench, after: list[dict[str, Any]]
) -> None:
    await bench.apply(probe("safe"), thing("slow"), maintenance=GATE)
    bench.behaviors["safe"] = return_readings({"idle": True})
    assert (await check_permission(bench)).allowed
    bench.scripts["close", "slow"] = lambda: bench.clock.sleep(5)
    busy = MaintenancePermission(False, "the machine is being reconfigured")
    bench.start_apply({"components": [probe("safe"), *after], "maintenance": GATE})
    # This holds immediately, before anything has started.
    assert await check_maintenance(bench.machine, bench.report, bench.clock) == busy
    await bench.clock.advance(1)
    assert await check_permission(bench) == busy
    await bench.clock.advance(5)
    assert (await check_permission(bench)).allowed


async def test_rebuilt_resource_denies_maintenance_until_it_is_settled(bench: Bench) -> None:
    await bench.apply(probe("safe"), thing("slow"), maintenance=GATE)
    bench.behaviors["safe"] = return_readings({"idle": True})
    bench.scripts["build", "slow"] = wait_forever
    changed = [probe("safe"), thing("slow", label="new")]
    bench.start_apply({"components": changed, "maintenance": GATE})
    await bench.clock.advance(60)
    assert not (await check_permission(bench)).allowed
    await bench.clock.advance(61)
    assert (await check_permission(bench)).allowed


@pytest.mark.parametrize("running", [[], [thing("old")]], ids=["first start", "running"])
async def test_hanging_first_build_does_not_deny_maintenance(
    bench: Bench, running: list[dict[str, Any]]
) -> None:
    """Otherwise a machine with one dead camera could not be updated to fix it."""
    bench.behaviors["safe"] = return_readings({"idle": True})
    if running:
        await bench.apply(probe("safe"), *running, maintenance=GATE)
    bench.scripts["build", "dead"] = wait_forever
    components = [probe("safe"), *running, thing("dead")]
    bench.start_apply({"components": components, "maintenance": GATE})
    await bench.clock.advance(1)
    assert (await check_permission(bench)).allowed


async def test_status_shows_a_denial_and_its_start(bench: Bench) -> None:
    await bench.apply(probe("safe"), maintenance=GATE)
    bench.behaviors["safe"] = return_readings({"idle": True})
    await check_permission(bench)
    assert (await build_status_view(bench.machine, bench.report))["maintenance_denied"] is None
    started = bench.clock.time()
    for value in (False, 5):
        bench.behaviors["safe"] = return_readings({"idle": value})
        verdict = await check_permission(bench)
        assert (await build_status_view(bench.machine, bench.report))["maintenance_denied"] == {
            "reason": verdict.reason,
            "since": started,
        }
        await bench.clock.advance(60)
    bench.behaviors["safe"] = return_readings({"idle": True})
    await check_permission(bench)
    assert (await build_status_view(bench.machine, bench.report))["maintenance_denied"] is None


async def read_denial(bench: Bench, seconds: float = 0.0) -> Any:
    """Return the denial in the status, which takes so many seconds."""
    task = await bench.start_call(encode_status(bench.machine, bench.report, bench.clock))
    await bench.clock.advance(seconds)
    assert task.done(), "it waits for something"
    return json.loads(task.result())["maintenance_denied"]


async def test_status_does_not_show_a_denial_that_no_longer_holds(bench: Bench) -> None:
    """Usually nothing but an update asks for permission, so nothing else corrects the denial."""
    await bench.apply(probe("safe"), maintenance=GATE)
    bench.behaviors["safe"] = return_readings({"idle": False})
    await check_permission(bench)
    started = bench.clock.time()
    bench.behaviors["safe"] = return_readings({"idle": 5})
    await bench.clock.advance(DENIAL_AGE)
    assert await read_denial(bench) == {
        "reason": f'"idle" of {SAFE} is 5; it must be true or false',
        "since": started,
    }
    bench.behaviors["safe"] = return_readings({"idle": True})
    assert await read_denial(bench) is not None  # it was checked just now
    await bench.clock.advance(DENIAL_AGE)
    assert await read_denial(bench) is None


async def test_status_does_not_show_a_denial_of_a_former_configuration(bench: Bench) -> None:
    await bench.apply(probe("safe"), maintenance=GATE)
    bench.behaviors["safe"] = return_readings({"idle": False})
    await check_permission(bench)
    await bench.apply(probe("safe"))
    await bench.clock.advance(DENIAL_AGE)
    assert await read_denial(bench) is None


async def test_status_does_not_wait_for_a_sensor_that_hangs(bench: Bench) -> None:
    await bench.apply(probe("safe"), maintenance=GATE)
    bench.behaviors["safe"] = return_readings({"idle": False})
    await check_permission(bench)
    bench.behaviors["safe"] = wait_forever
    await bench.clock.advance(DENIAL_AGE)
    denial = await read_denial(bench, seconds=1)
    assert denial["reason"] == f'"idle" of {SAFE} is false'


async def test_log_shows_when_a_denial_begins_and_ends(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await bench.apply(probe("safe"), maintenance=GATE)
    for value in (True, False, False, 5, True, True):
        bench.behaviors["safe"] = return_readings({"idle": value})
        await check_permission(bench)
        await bench.clock.advance(60)
    messages = [each.getMessage() for each in caplog.records if each.name == "rdk.maintenance"]
    assert messages == [
        f'maintenance is not allowed: "idle" of {SAFE} is false',
        f'maintenance has been denied for 2m0s; the reason is now: "idle" of {SAFE} is 5; '
        "it must be true or false",
        f'maintenance was denied for 3m0s, and is allowed again, because "idle" of {SAFE} is true',
    ]


async def test_retried_resource_does_not_count_as_reconfiguration(
    bench: Bench,
) -> None:
    """Otherwise a machine with one dead camera could not be updated to fix it."""

    async def fail_slowly() -> None:
        await bench.clock.sleep(10)
        raise RuntimeError("no such device")

    bench.scripts["build", "dead"] = fail_slowly
    bench.start_apply({"components": [probe("safe"), thing("dead")], "maintenance": GATE})
    bench.behaviors["safe"] = return_readings({"idle": True})
    await bench.clock.advance(11)
    for _ in range(10):
        assert (await check_permission(bench)).allowed
        await bench.clock.advance(5)


@pytest.mark.parametrize(
    "section",
    [
        {"sensor_name": "safe", "maintenance_allowed_key": "idle"},
        {"sensor_name": "rdk:component:motor/safe", "maintenance_allowed_key": "idle"},
        {"sensor_name": SAFE, "maintenance_allowed_key": ""},
        {"sensor_name": SAFE},
        {"sensor_name": SAFE, "maintenance_allowed_key": 5},
        [SAFE],
        "yes",
        True,
    ],
)
async def test_invalid_section_denies_maintenance(bench: Bench, section: object) -> None:
    """The author of an invalid section wanted to prevent interruptions."""
    await bench.apply(probe("safe"), maintenance=section)
    bench.behaviors["safe"] = return_readings({"idle": True})
    verdict = await check_permission(bench)
    assert not verdict.allowed
    assert verdict.reason.startswith('"maintenance" in the configuration is invalid: ')
    await bench.apply(probe("safe"), maintenance=GATE)
    assert (await check_permission(bench)).allowed
    await bench.apply(probe("safe"))
    assert (await check_permission(bench)).allowed


async def test_unknown_key_in_the_section_is_ignored(bench: Bench) -> None:
    await bench.apply(probe("safe"), maintenance={**GATE, "colour": "red"})
    bench.behaviors["safe"] = return_readings({"idle": True})
    assert (await check_permission(bench)).allowed

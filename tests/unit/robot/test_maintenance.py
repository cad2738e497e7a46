"""Whether an update may interrupt the machine: only a fresh `true` says yes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.robot.bench import Bench, Deed, failing, for_ever, probe, thing

from cogwork.core.errors import InvalidRequest
from cogwork.robot.maintenance import (
    TIMEOUT,
    MaintenancePermission,
    check_maintenance,
    evaluate_readings,
)

SAFE = "rdk:component:sensor/safe"
GATE = {"sensor_name": SAFE, "maintenance_allowed_key": "idle"}


def reading(value: object) -> Deed:
    async def read(**_: Any) -> object:
        return value

    return read


async def asked(bench: Bench) -> MaintenancePermission:
    task = await bench.begun(check_maintenance(bench.machine, bench.clock))
    assert task.done(), "it waits for something"
    return task.result()


async def test_without_a_sensor_it_is_always_allowed(bench: Bench) -> None:
    await bench.apply(thing("a"))
    assert await asked(bench) == MaintenancePermission(True, "no maintenance sensor is configured")


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
                    False, f"{SAFE} could not be read: it returned {kind} instead of readings"
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
async def test_what_the_sensor_reads_decides(
    bench: Bench, readings: object, verdict: MaintenancePermission
) -> None:
    await bench.apply(probe("safe"), maintenance=GATE)
    bench.deeds["safe"] = reading(readings)
    assert await asked(bench) == verdict


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["idle", "Idle", "busy"]) | st.text(), values))
def test_nothing_but_true_is_a_yes(readings: dict[str, Any]) -> None:
    verdict = evaluate_readings(readings, SAFE, "idle")
    assert verdict.allowed == (readings.get("idle") is True)
    assert verdict.reason


async def test_every_question_is_a_new_reading(bench: Bench) -> None:
    await bench.apply(probe("safe"), maintenance=GATE)
    for value in (True, False, True):
        bench.deeds["safe"] = reading({"idle": value})
        assert (await asked(bench)).allowed is value


async def test_a_sensor_that_is_not_there(bench: Bench) -> None:
    await bench.apply(thing("a"), maintenance=GATE)
    verdict = await asked(bench)
    assert not verdict.allowed
    assert verdict.reason.startswith("no node found with api rdk:component:sensor and name safe")


async def test_a_sensor_that_is_not_ready(bench: Bench) -> None:
    bench.scripts["build", "safe"] = failing("no such device")
    await bench.apply(probe("safe"), maintenance=GATE)
    assert await asked(bench) == MaintenancePermission(
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
        (asyncio.CancelledError(), "could not be read: it was cancelled"),
        (SystemExit(2), "could not be read: it called sys.exit(2)"),
    ],
)
async def test_a_sensor_that_fails(bench: Bench, error: BaseException, reason: str) -> None:
    async def fail(**_: Any) -> Mapping[str, Any]:
        raise error

    await bench.apply(probe("safe"), maintenance=GATE)
    bench.deeds["safe"] = fail
    assert await asked(bench) == MaintenancePermission(False, f"{SAFE} {reason}")


@pytest.mark.parametrize("stubborn", [False, True])
async def test_a_sensor_that_does_not_answer(bench: Bench, stubborn: bool) -> None:
    released = asyncio.Event()

    async def hangs(**_: Any) -> Mapping[str, Any]:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                if not stubborn:
                    raise
        return {"idle": True}

    await bench.apply(probe("safe"), maintenance=GATE)
    bench.deeds["safe"] = hangs
    asking = await bench.begun(check_maintenance(bench.machine, bench.clock))
    await bench.clock.advance(TIMEOUT - 0.1)
    assert not asking.done()
    await bench.clock.advance(0.2)
    assert asking.result() == MaintenancePermission(False, f"{SAFE} did not answer within 5s")
    released.set()
    await bench.clock.settle()


async def test_whoever_no_longer_asks_leaves_nothing_behind(bench: Bench) -> None:
    await bench.apply(probe("safe"), maintenance=GATE)
    bench.deeds["safe"] = for_ever
    asking = await bench.begun(check_maintenance(bench.machine, bench.clock))
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await bench.clock.settle()
    assert not [task for task in asyncio.all_tasks() if "get_readings" in repr(task)]


async def test_not_while_the_machine_is_being_reconfigured(bench: Bench) -> None:
    await bench.apply(probe("safe"), maintenance=GATE)
    bench.deeds["safe"] = reading({"idle": True})
    assert (await asked(bench)).allowed
    bench.scripts["build", "slow"] = lambda: bench.clock.sleep(5)
    busy = MaintenancePermission(False, "the machine is being reconfigured")
    bench.begin({"components": [probe("safe"), thing("slow")], "maintenance": GATE})
    # From the first moment on, when nothing has been started yet.
    assert await check_maintenance(bench.machine, bench.clock) == busy
    await bench.clock.advance(1)
    assert await asked(bench) == busy
    await bench.clock.advance(5)
    assert (await asked(bench)).allowed


async def test_not_while_it_is_initializing(bench: Bench) -> None:
    bench.scripts["build", "slow"] = lambda: bench.clock.sleep(5)
    bench.deeds["safe"] = reading({"idle": True})
    bench.begin({"components": [probe("safe"), thing("slow")], "maintenance": GATE})
    await bench.clock.advance(1)
    assert not (await asked(bench)).allowed
    await bench.clock.advance(5)
    assert (await asked(bench)).allowed


async def test_a_resource_that_is_tried_again_and_again_is_no_reconfiguration(
    bench: Bench,
) -> None:
    """Otherwise a machine with one dead camera could not be updated to be mended."""

    async def slowly_fails() -> None:
        await bench.clock.sleep(10)
        raise RuntimeError("no such device")

    bench.scripts["build", "dead"] = slowly_fails
    bench.begin({"components": [probe("safe"), thing("dead")], "maintenance": GATE})
    bench.deeds["safe"] = reading({"idle": True})
    await bench.clock.advance(11)
    for _ in range(10):
        assert (await asked(bench)).allowed
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
async def test_a_faulty_section_is_no_open_gate(bench: Bench, section: object) -> None:
    """Whoever wrote one wanted the machine not to be interrupted."""
    await bench.apply(probe("safe"), maintenance=section)
    bench.deeds["safe"] = reading({"idle": True})
    verdict = await asked(bench)
    assert not verdict.allowed
    assert verdict.reason.startswith('"maintenance" in the configuration is invalid: ')
    await bench.apply(probe("safe"), maintenance=GATE)
    assert (await asked(bench)).allowed
    await bench.apply(probe("safe"))
    assert (await asked(bench)).allowed


async def test_an_unknown_key_beside_the_others_changes_nothing(bench: Bench) -> None:
    await bench.apply(probe("safe"), maintenance={**GATE, "colour": "red"})
    bench.deeds["safe"] = reading({"idle": True})
    assert (await asked(bench)).allowed

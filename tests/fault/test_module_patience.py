"""Slow, restarted or changed modules: their resources are closed, and failed calls retried."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.conftest import grpc_core as grpc_core  # what it keeps for life
from tests.support.machine.bad_modules import (
    READY,
    SHORT,
    SOON,
    ModuleMachine,
    config,
    ready,
    rogue_module,
    run_module_machine,
    thing,
    unhealthy,
)
from tests.support.waiting import wait_until

from cogwork.core.backoff import RetryPolicy
from cogwork.subprocesses.process import CannotStop, Child

PATIENT = replace(SHORT, start=30.0, add=5.0, remove=3.0)
"""Longer than anything here takes."""
PAUSES = RetryPolicy(0.1, 0.1)
MODEL = "acme:bad:thing"


class RecordedCalls:
    """The calls that a module received, in order."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @property
    def methods(self) -> list[str]:
        return [line.split(" ", 2)[1] for line in self._lines]

    def bodies_of(self, method: str) -> list[str]:
        return [line.split(" ", 2)[2] for line in self._lines if line.split(" ", 2)[1] == method]

    async def wait_for(self, method: str, times: int = 1) -> None:
        await wait_until(lambda: self.methods.count(method) >= times)

    @property
    def _lines(self) -> list[str]:
        return self.file.read_text().splitlines() if self.file.exists() else []


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[ModuleMachine]:
    async with run_module_machine(tmp_path, PATIENT, PAUSES) as machine:
        yield machine


@pytest.fixture
def calls(tmp_path: Path) -> RecordedCalls:
    return RecordedCalls(tmp_path / "notes")


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def apply_module(
    machine: ModuleMachine, directory: Path, words: str, *names: str, **env: str
) -> None:
    module = rogue_module(directory, "bad", words, NOTES=str(directory / "notes"), **env)
    machine.apply(config([module], [thing(name, MODEL) for name in names]))


async def test_restart_closes_resources_before_the_next_start(
    machine: ModuleMachine, tmp_path: Path, calls: RecordedCalls, log: pytest.LogCaptureFixture
) -> None:
    apply_module(machine, tmp_path, "slow(RemoveResource)", "a")
    await machine.wait_until(ready())
    machine.modules.restart("bad", "")
    await calls.wait_for("AddResource", times=2)
    assert "done with RemoveResource" in log.text
    assert [each for each in calls.methods if each != "Check"] == [
        *("Ready", "ValidateConfig", "AddResource", "RemoveResource"),
        *("Ready", "ValidateConfig", "AddResource"),
    ]
    await machine.wait_until(ready())


async def test_removed_module_finishes_closing_its_resources(
    machine: ModuleMachine, tmp_path: Path, calls: RecordedCalls, log: pytest.LogCaptureFixture
) -> None:
    apply_module(machine, tmp_path, "slow(RemoveResource)", "a", "b")
    await machine.wait_until(ready())
    machine.apply(config([], []))
    await calls.wait_for("RemoveResource", times=2)
    await wait_until(lambda: log.text.count("done with RemoveResource") == 2)


async def test_restart_ends_a_hanging_start(machine: ModuleMachine, tmp_path: Path) -> None:
    apply_module(machine, tmp_path, "hang(start)", "a", ONCE=str(tmp_path / "once"))
    await wait_until((tmp_path / "once").exists)
    machine.modules.restart("bad", "")
    seconds = await machine.wait_until(ready())
    assert seconds < SOON
    assert (await machine.module("bad")).consecutive_failures == 0


async def test_unanswered_validation_is_repeated(tmp_path: Path) -> None:
    deadlines, pauses = (
        replace(PATIENT, validate=0.3),
        RetryPolicy(0.5, 0.5),
    )
    async with run_module_machine(tmp_path, deadlines, pauses) as machine:
        apply_module(machine, tmp_path, "stall(ValidateConfig)", "a")
        await machine.wait_until(unhealthy("a", "did not reply to ValidateConfig within 0.3s"))
        await machine.wait_until(ready("a"))


async def test_undecodable_reply_is_reported_and_retried_with_pauses(
    machine: ModuleMachine, tmp_path: Path, calls: RecordedCalls
) -> None:
    apply_module(machine, tmp_path, "garble(ValidateConfig)", "a")
    await machine.wait_until(unhealthy("a", "its reply to ValidateConfig cannot be decoded"))
    began, before = time.monotonic(), len(calls.bodies_of("ValidateConfig"))
    await calls.wait_for("ValidateConfig", times=before + 3)
    asked = len(calls.bodies_of("ValidateConfig")) - before
    assert asked <= (time.monotonic() - began) / PAUSES.first + 1


async def test_resource_added_too_late_is_removed(
    machine: ModuleMachine, tmp_path: Path, calls: RecordedCalls
) -> None:
    apply_module(machine, tmp_path, "slow(AddResource)", "early")
    await calls.wait_for("AddResource")
    apply_module(machine, tmp_path, "slow(AddResource)", "other")
    await machine.wait_until(ready("other"))
    await calls.wait_for("RemoveResource")
    assert ["early" in each for each in calls.bodies_of("RemoveResource")] == [True]


async def test_resource_added_too_late_is_removed_before_the_retry(tmp_path: Path) -> None:
    calls = RecordedCalls(tmp_path / "notes")
    async with run_module_machine(tmp_path, replace(PATIENT, add=0.3), PAUSES) as machine:
        apply_module(machine, tmp_path, "stall(AddResource)", "a")
        await machine.wait_until(
            unhealthy(
                "a",
                "did not reply to AddResource within 0.3s; "
                "set VIAM_RESOURCE_CONFIGURATION_TIMEOUT to wait longer",
            )
        )
        await machine.wait_until(ready("a"))
    assert [each for each in calls.methods if each.endswith("Resource")][:3] == [
        *("AddResource", "RemoveResource", "AddResource"),
    ]


async def test_process_that_cannot_be_stopped_is_reported(
    machine: ModuleMachine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    log: pytest.LogCaptureFixture,
) -> None:
    apply_module(machine, tmp_path, "", "a")
    await machine.wait_until(ready())
    module = machine.modules.by_name["bad"]
    stop = Child.stop

    async def stop_in_vain(child: Child) -> None:
        await stop(child)
        raise CannotStop("process 7 is still there; end it by hand")

    monkeypatch.setattr(Child, "stop", stop_in_vain)
    machine.apply(config([], []))
    await wait_until(lambda: bool(module.unfinished))
    assert module.unfinished == ["module bad"]
    assert "process 7 is still there; end it by hand" in log.text


async def test_crash_reason_is_kept_when_the_process_cannot_be_stopped(
    machine: ModuleMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = Child.stop

    async def stop_in_vain(child: Child) -> None:
        await stop(child)
        raise CannotStop("process 7 is still there; end it by hand")

    monkeypatch.setattr(Child, "stop", stop_in_vain)
    apply_module(machine, tmp_path, "exit(AddResource)", "a")
    await wait_until(lambda: len(machine.events) >= 4)
    reasons = {str(each["reason"]) for each in machine.events if each["state"] == "failed"}
    assert len(reasons) == 1
    assert "exited with code 5" in reasons.pop()


async def test_all_resources_become_ready_after_stalls(
    machine: ModuleMachine, tmp_path: Path
) -> None:
    apply_module(machine, tmp_path, "stall(ValidateConfig) stall(AddResource)", "a", "b", "c")
    await machine.wait_until(ready())
    assert (await machine.module("bad")).state == READY

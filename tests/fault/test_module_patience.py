"""Modules that are slow, are restarted or change their mind: what they have built is closed, and
whatever went wrong once is tried again."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.conftest import grpc_core as grpc_core  # what it keeps for life
from tests.fault.modules import (
    READY,
    SHORT,
    SOON,
    House,
    config,
    housed,
    ready,
    rogue_module,
    thing,
    unhealthy,
)

from cogwork.core.backoff import Backoff
from cogwork.modules.process import CannotStop, Child

PATIENT = replace(SHORT, start=30.0, add=5.0, remove=3.0)
"""Longer than anything here takes."""
PAUSES = Backoff(0.1, 0.1)
MODEL = "acme:bad:thing"


async def become(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 - a file, or a line of the log
            await asyncio.sleep(0.01)


class Notes:
    """What a module was asked, in that order."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @property
    def methods(self) -> list[str]:
        return [line.split(" ", 2)[1] for line in self._lines]

    def about(self, method: str) -> list[str]:
        return [line.split(" ", 2)[2] for line in self._lines if line.split(" ", 2)[1] == method]

    async def until(self, method: str, times: int = 1) -> None:
        await become(lambda: self.methods.count(method) >= times)

    @property
    def _lines(self) -> list[str]:
        return self.file.read_text().splitlines() if self.file.exists() else []


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with housed(tmp_path, PATIENT, PAUSES) as house:
        yield house


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / "notes")


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def apply(house: House, directory: Path, words: str, *names: str, **env: str) -> None:
    module = rogue_module(directory, "bad", words, NOTES=str(directory / "notes"), **env)
    house.apply(config([module], [thing(name, MODEL) for name in names]))


async def test_a_restart_closes_what_was_built_first(
    house: House, tmp_path: Path, notes: Notes, said: pytest.LogCaptureFixture
) -> None:
    apply(house, tmp_path, "slow(RemoveResource)", "a")
    await house.until(ready())
    house.modules.restart("bad", "")
    await notes.until("AddResource", times=2)
    assert "done with RemoveResource" in said.text
    assert [each for each in notes.methods if each != "Check"] == [
        *("Ready", "ValidateConfig", "AddResource", "RemoveResource"),
        *("Ready", "ValidateConfig", "AddResource"),
    ]
    await house.until(ready())


async def test_a_module_that_is_removed_finishes_closing(
    house: House, tmp_path: Path, notes: Notes, said: pytest.LogCaptureFixture
) -> None:
    apply(house, tmp_path, "slow(RemoveResource)", "a", "b")
    await house.until(ready())
    house.apply(config([], []))
    await notes.until("RemoveResource", times=2)
    await become(lambda: said.text.count("done with RemoveResource") == 2)


async def test_a_restart_ends_a_start_that_hangs(house: House, tmp_path: Path) -> None:
    apply(house, tmp_path, "hang(start)", "a", ONCE=str(tmp_path / "once"))
    await become((tmp_path / "once").exists)
    house.modules.restart("bad", "")
    seconds = await house.until(ready())
    assert seconds < SOON
    assert (await house.module("bad")).consecutive_failures == 0


async def test_what_was_not_answered_is_asked_again(tmp_path: Path) -> None:
    deadlines, pauses = (
        replace(PATIENT, validate=0.3),
        Backoff(0.5, 0.5),
    )
    async with housed(tmp_path, deadlines, pauses) as house:
        apply(house, tmp_path, "stall(ValidateConfig)", "a")
        await house.until(unhealthy("a", "did not reply to ValidateConfig within 0.3s"))
        await house.until(ready("a"))


async def test_nonsense_is_told_and_does_not_keep_the_server_busy(
    house: House, tmp_path: Path, notes: Notes
) -> None:
    apply(house, tmp_path, "garble(ValidateConfig)", "a")
    await house.until(unhealthy("a", "its reply to ValidateConfig cannot be decoded"))
    began, before = time.monotonic(), len(notes.about("ValidateConfig"))
    await notes.until("ValidateConfig", times=before + 3)
    asked = len(notes.about("ValidateConfig")) - before
    assert asked <= (time.monotonic() - began) / PAUSES.first + 1


async def test_what_is_added_too_late_is_removed(
    house: House, tmp_path: Path, notes: Notes
) -> None:
    apply(house, tmp_path, "slow(AddResource)", "early")
    await notes.until("AddResource")
    apply(house, tmp_path, "slow(AddResource)", "other")
    await house.until(ready("other"))
    await notes.until("RemoveResource")
    assert ["early" in each for each in notes.about("RemoveResource")] == [True]


async def test_what_is_added_too_late_is_removed_ahead_of_another_attempt(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes")
    async with housed(tmp_path, replace(PATIENT, add=0.3), PAUSES) as house:
        apply(house, tmp_path, "stall(AddResource)", "a")
        await house.until(
            unhealthy(
                "a",
                "did not reply to AddResource within 0.3s; "
                "set VIAM_RESOURCE_CONFIGURATION_TIMEOUT to wait longer",
            )
        )
        await house.until(ready("a"))
    assert [each for each in notes.methods if each.endswith("Resource")][:3] == [
        *("AddResource", "RemoveResource", "AddResource"),
    ]


async def test_a_process_that_cannot_be_ended_is_told(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: pytest.LogCaptureFixture
) -> None:
    apply(house, tmp_path, "", "a")
    await house.until(ready())
    module = house.modules.by_name["bad"]
    stop = Child.stop

    async def stop_in_vain(child: Child) -> None:
        await stop(child)
        raise CannotStop("process 7 is still there; end it by hand")

    monkeypatch.setattr(Child, "stop", stop_in_vain)
    house.apply(config([], []))
    await become(lambda: bool(module.unfinished))
    assert module.unfinished == ["module bad"]
    assert "process 7 is still there; end it by hand" in said.text


async def test_a_crash_keeps_its_reason_where_the_process_cannot_be_ended(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = Child.stop

    async def stop_in_vain(child: Child) -> None:
        await stop(child)
        raise CannotStop("process 7 is still there; end it by hand")

    monkeypatch.setattr(Child, "stop", stop_in_vain)
    apply(house, tmp_path, "exit(AddResource)", "a")
    await become(lambda: len(house.story) >= 4)
    reasons = {str(each["reason"]) for each in house.story if each["state"] == "failed"}
    assert len(reasons) == 1
    assert "exited with code 5" in reasons.pop()


async def test_all_are_ready_in_the_end(house: House, tmp_path: Path) -> None:
    apply(house, tmp_path, "stall(ValidateConfig) stall(AddResource)", "a", "b", "c")
    await house.until(ready())
    assert (await house.module("bad")).state == READY

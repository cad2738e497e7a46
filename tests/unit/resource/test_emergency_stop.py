from __future__ import annotations

import threading

import pytest
from tests.support.waiting import run_others

from cogwork.driver import EmergencyStop
from cogwork.resource.emergency_stop import NeedsLoop, run_without_loop, stop_all

DEADLINE = 60.0


def test_stop_all_stops_the_rest_when_some_fail_or_hang() -> None:
    release, stopped = threading.Event(), threading.Event()

    def fail() -> None:
        raise OSError("the wire is loose")

    def wait() -> None:
        release.wait(DEADLINE)

    try:
        failed = stop_all({"good": stopped.set, "bad": fail, "stuck": wait}, within=0.5)
    finally:
        release.set()
    assert stopped.is_set()
    assert failed == {"bad": "the wire is loose", "stuck": "it did not stop within 0.5s"}


def test_coroutine_without_waits_runs_without_a_loop() -> None:
    async def answer() -> int:
        return 42

    assert run_without_loop(answer()) == 42


def test_coroutine_that_waits_needs_the_loop() -> None:
    async def wait() -> None:
        await run_others()

    with pytest.raises(NeedsLoop):
        run_without_loop(wait())


def test_driver_with_the_method_is_an_emergency_stop() -> None:
    class Driver:
        def emergency_stop(self) -> None: ...

    assert isinstance(Driver(), EmergencyStop)
    assert not isinstance(object(), EmergencyStop)

from __future__ import annotations

import asyncio

import pytest
from tests.support.waiting import run_others
from tests.unit.drivers.gpio.wiring import RecordingBoard

from cogwork.drivers.gpio.pin_link import NoAnswer, PinLink, await_answer, run_all


async def test_pin_that_does_not_answer_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pin ignores the timeout that it is given."""
    monkeypatch.setattr("cogwork.drivers.gpio.pin_link.ANSWER_TIMEOUT", 0.02)
    board = RecordingBoard()
    wire = await PinLink.connect(board, "p")
    board.gates["p"] = asyncio.Event()
    for asking in (wire.set(True), wire.set_pwm(0.5)):
        with pytest.raises(NoAnswer) as error:
            await asyncio.wait_for(asking, 10)
        assert str(error.value) == (
            'pin "p" of board "pins" did not answer within 0.02 s; check the log of its board '
            "or of the module that provides it"
        )
    assert board.writes == []


async def test_timeout_error_of_the_pin_is_passed_on() -> None:
    async def fail() -> None:
        raise TimeoutError("no acknowledgement on the bus")

    with pytest.raises(TimeoutError, match="on the bus"):
        await await_answer("it", fail())


async def test_inverted_link_writes_the_opposite_level() -> None:
    board = RecordingBoard()
    wire = await PinLink.connect(board, "p", inverted=True)
    await wire.set(True)
    await wire.set(False)
    assert board.writes == [("p", 0.0), ("p", 1.0)]


async def test_run_all_writes_every_pin_despite_failures_and_cancellation() -> None:
    """The first failure is raised."""
    board = RecordingBoard()
    wires = [await PinLink.connect(board, name) for name in "xyz"]
    board.broken = "x"
    with pytest.raises(OSError, match="loose"):
        await run_all(wire.set(True) for wire in wires)
    assert [board.level(name) for name in "xyz"] == [0, 1, 1]
    board.gates["z"] = gate = asyncio.Event()
    writing = asyncio.ensure_future(run_all(wire.set(False) for wire in wires))
    for _ in range(2):
        await run_others()
        writing.cancel()
    await run_others()
    assert not writing.done()
    gate.set()
    await asyncio.wait([writing], timeout=10)
    assert writing.cancelled()
    assert [board.level(name) for name in "xyz"] == [0, 0, 0]

from __future__ import annotations

import asyncio

import pytest
from tests.unit.drivers.gpio.wiring import WatchedBoard

from cogwork.drivers.gpio.wire import NoAnswer, Wire, answer


async def test_a_pin_gets_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even one that makes nothing of a timeout that it is given."""
    monkeypatch.setattr("cogwork.drivers.gpio.wire.ANSWER", 0.02)
    board = WatchedBoard()
    wire = await Wire.to(board, "p")
    board.gates["p"] = asyncio.Event()
    for asking in (wire.set(True), wire.pulse(0.5)):
        with pytest.raises(NoAnswer) as error:
            await asyncio.wait_for(asking, 10)
        assert str(error.value) == (
            'pin "p" of board "pins" did not answer within 0.02 s; look at the log of its board, '
            "or of the module that it comes from"
        )
    assert board.told == []


async def test_a_timeout_of_the_pin_s_own_is_told_as_it_is() -> None:
    async def fail() -> None:
        raise TimeoutError("no acknowledgement on the bus")

    with pytest.raises(TimeoutError, match="on the bus"):
        await answer("it", fail())


async def test_a_wire_may_mean_yes_by_low() -> None:
    board = WatchedBoard()
    wire = await Wire.to(board, "p", inverted=True)
    await wire.set(True)
    await wire.set(False)
    assert board.told == [("p", 0.0), ("p", 1.0)]

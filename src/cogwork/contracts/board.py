"""What a board keeps to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.board.client import BoardClient
from viam.proto.component.board import PowerMode, StreamTicksRequest

from cogwork.contracts.bench import Bench
from cogwork.contracts.contract import PATIENCE, Contract

NOBODY = "there-is-no-such-part"


class BoardContract(Contract):
    api = "rdk:component:board"
    client = BoardClient

    pins: ClassVar[Sequence[str]] = ()
    """GPIO pins that may be set high, and that read back what was set."""
    pwm_pins: ClassVar[Sequence[str]] = ()
    """GPIO pins that may be given a duty cycle."""
    readers: ClassVar[Sequence[str]] = ()
    """Analogs that can be read."""
    writers: ClassVar[Sequence[str]] = ()
    """Analogs that may be written."""
    interrupts: ClassVar[Sequence[str]] = ()
    """Digital interrupts."""

    async def test_a_pin_reads_back_what_was_set(self, it: Any) -> None:
        for name in self.pins:
            pin = await it.gpio_pin_by_name(name)
            for high in (True, False):
                await pin.set(high)
                assert await pin.get() is high

    async def test_a_pin_keeps_its_pwm(self, it: Any) -> None:
        for name in self.pwm_pins:
            pin = await it.gpio_pin_by_name(name)
            await pin.set_pwm_frequency(1000)
            assert await pin.get_pwm_frequency() == pytest.approx(1000, rel=0.05)
            await pin.set_pwm(0.25)
            assert await pin.get_pwm() == pytest.approx(0.25, abs=0.05)
            await pin.set_pwm(0)

    @pytest.mark.parametrize("duty_cycle", [1.5, -0.5, float("nan")])
    async def test_a_duty_cycle_is_a_part_of_one(self, it: Any, duty_cycle: float) -> None:
        for name in self.pwm_pins:
            with pytest.raises(GRPCError) as refused:
                await (await it.gpio_pin_by_name(name)).set_pwm(duty_cycle)
            assert refused.value.status is Status.INVALID_ARGUMENT

    async def test_an_analog_reads_within_its_range(self, it: Any) -> None:
        for name in self.readers:
            read = await (await it.analog_by_name(name)).read()
            assert read.min_range <= read.max_range

    async def test_an_analog_can_be_written(self, it: Any) -> None:
        for name in self.writers:
            await (await it.analog_by_name(name)).write(1)

    async def test_an_interrupt_has_counted(self, it: Any) -> None:
        for name in self.interrupts:
            assert await (await it.digital_interrupt_by_name(name)).value() >= 0

    async def test_parts_that_nobody_has_are_not_found(self, it: Any) -> None:
        for asking in (
            (await it.analog_by_name(NOBODY)).read(),
            (await it.analog_by_name(NOBODY)).write(1),
            (await it.digital_interrupt_by_name(NOBODY)).value(),
        ):
            with pytest.raises(GRPCError) as refused:
                await asking
            assert refused.value.status is Status.NOT_FOUND

    async def test_ticks_can_be_listened_to(self, it: Any) -> None:
        """Whoever listens to what is not there is told so; others just wait."""
        async with _ticks(it, NOBODY) as stream:
            with pytest.raises(GRPCError) as refused:
                await asyncio.wait_for(stream.recv_message(), PATIENCE)
            assert refused.value.status is Status.NOT_FOUND
        for name in self.interrupts:
            async with _ticks(it, name):
                assert await (await it.digital_interrupt_by_name(name)).value() >= 0

    async def test_a_stream_of_ticks_ends_with_the_board(self, bench: Bench, it: Any) -> None:
        for name in self.interrupts[:1]:
            async with _ticks(it, name) as stream:
                # Answered after the stream was opened, it shows that the board has heard of it.
                await it.get_geometries()
                await bench.run(*self.beside)
                with pytest.raises(GRPCError) as ended:
                    await asyncio.wait_for(_read_out(stream), PATIENCE)
                assert " " in (ended.value.message or "")

    async def test_a_power_mode_that_nobody_has_is_refused(self, it: Any) -> None:
        with pytest.raises(GRPCError) as refused:
            await it.set_power_mode(PowerMode.POWER_MODE_UNSPECIFIED)
        assert refused.value.status in (Status.INVALID_ARGUMENT, Status.UNIMPLEMENTED)


@contextlib.asynccontextmanager
async def _ticks(it: Any, *interrupts: str) -> AsyncIterator[Any]:
    async with it.client.StreamTicks.open() as stream:
        request = StreamTicksRequest(name=it.name, pin_names=interrupts)
        await stream.send_message(request, end=True)
        try:
            yield stream
        finally:
            with contextlib.suppress(Exception):
                await stream.cancel()


async def _read_out(stream: Any) -> None:
    while await stream.recv_message() is not None:
        pass
    await stream.recv_trailing_metadata()

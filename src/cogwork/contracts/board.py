"""What a board keeps to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
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
    """Analogs that may be written; those that can be read as well read back what was written."""
    levels: ClassVar[Sequence[int]] = (1, 0)
    """What may be written to them."""
    interrupts: ClassVar[Sequence[str]] = ()
    """Digital interrupts."""
    drives: ClassVar[Mapping[str, str]] = {}
    """By the interrupt, the GPIO pin that it is wired to, if there is one that may be set."""

    async def drive(self, it: Any, interrupt: str, high: bool) -> None:
        """Makes the signal of an interrupt in `drives` high or low."""
        await (await it.gpio_pin_by_name(self.drives[interrupt])).set(high)

    async def test_there_is_something_to_judge(self) -> None:
        parts = (self.pins, self.pwm_pins, self.readers, self.writers, self.interrupts)
        assert any(parts), (
            "nothing of the board is judged: name what it has in "
            '"pins", "pwm_pins", "readers", "writers" or "interrupts"'
        )

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
            if read.min_range < read.max_range:
                assert _is_within_its_range(read), f"{name} reads what it has no range for: {read}"

    async def test_an_analog_keeps_what_is_written(self, it: Any) -> None:
        for name in self.writers:
            analog = await it.analog_by_name(name)
            for level in self.levels:
                await analog.write(level)
                if name in self.readers:
                    assert (await analog.read()).value == level

    async def test_an_interrupt_has_counted(self, it: Any) -> None:
        for name in self.interrupts:
            assert await (await it.digital_interrupt_by_name(name)).value() >= 0

    async def test_an_interrupt_counts_and_ticks_with_its_signal(self, it: Any) -> None:
        for name in self.drives:
            interrupt = await it.digital_interrupt_by_name(name)
            await self.drive(it, name, False)
            before = await interrupt.value()
            async with _ticks(it, name) as stream:
                await asyncio.wait_for(stream.recv_initial_metadata(), PATIENCE)
                for high in (True, False):
                    await self.drive(it, name, high)
                    await _hear(stream, name, high)
            assert await interrupt.value() > before, f"{name} ticked, and counted nothing"

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


async def _hear(stream: Any, interrupt: str, high: bool) -> None:
    """Others may come ahead of it: of how the signal was before, or of contacts that bounce."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while tick := await stream.recv_message():
                assert tick.pin_name == interrupt
                if tick.high is high:
                    return
    pytest.fail(f"{interrupt} went {'high' if high else 'low'}, and did not tick")


def _is_within_its_range(read: Any) -> bool:
    """Values are counted in steps, from zero or from the lowest; without a step they are what is
    measured. One step more does no harm."""
    step = read.step_size or 1.0
    low, high = read.min_range - step, read.max_range + step
    return any(low <= start + read.value * step <= high for start in (0.0, read.min_range))


async def _read_out(stream: Any) -> None:
    while await stream.recv_message() is not None:
        pass
    await stream.recv_trailing_metadata()

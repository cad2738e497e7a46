"""The contract of boards."""

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

from cogwork.contracts.contract import TIMEOUT, Contract
from cogwork.contracts.harness import Harness

UNKNOWN_NAME = "there-is-no-such-part"


class BoardContract(Contract):
    api = "rdk:component:board"
    client = BoardClient

    pins: ClassVar[Sequence[str]] = ()
    """GPIO pins that may be set, and that read back the set value."""
    pwm_pins: ClassVar[Sequence[str]] = ()
    """GPIO pins that support PWM."""
    readers: ClassVar[Sequence[str]] = ()
    """Analogs that may be read."""
    writers: ClassVar[Sequence[str]] = ()
    """Analogs that may be written. If an analog is also in `readers`, it must read back the written
    value."""
    levels: ClassVar[Sequence[int]] = (1, 0)
    """Values that may be written to the analogs in `writers`."""
    interrupts: ClassVar[Sequence[str]] = ()
    """Names of the board's digital interrupts."""
    drives: ClassVar[Mapping[str, str]] = {}
    """For each interrupt that is wired to a GPIO pin: the pin that drives the interrupt."""

    async def drive(self, resource: Any, interrupt: str, high: bool) -> None:
        """Set the signal of an interrupt in `drives` high or low."""
        await (await resource.gpio_pin_by_name(self.drives[interrupt])).set(high)

    async def test_names_something_to_test(self) -> None:
        parts = (self.pins, self.pwm_pins, self.readers, self.writers, self.interrupts)
        assert any(parts), (
            "nothing of the board is tested; set at least one of "
            '"pins", "pwm_pins", "readers", "writers" or "interrupts"'
        )

    async def test_pin_reads_back_set_value(self, resource: Any) -> None:
        for name in self.pins:
            pin = await resource.gpio_pin_by_name(name)
            for high in (True, False):
                await pin.set(high)
                assert await pin.get() is high

    async def test_pin_keeps_pwm(self, resource: Any) -> None:
        for name in self.pwm_pins:
            pin = await resource.gpio_pin_by_name(name)
            await pin.set_pwm_frequency(1000)
            assert await pin.get_pwm_frequency() == pytest.approx(1000, rel=0.05)
            await pin.set_pwm(0.25)
            assert await pin.get_pwm() == pytest.approx(0.25, abs=0.05)
            await pin.set_pwm(0)

    @pytest.mark.parametrize("duty_cycle", [1.5, -0.5, float("nan")])
    async def test_refuses_invalid_duty_cycle(self, resource: Any, duty_cycle: float) -> None:
        for name in self.pwm_pins:
            with pytest.raises(GRPCError) as refused:
                await (await resource.gpio_pin_by_name(name)).set_pwm(duty_cycle)
            assert refused.value.status is Status.INVALID_ARGUMENT

    async def test_analog_reads_within_range(self, resource: Any) -> None:
        for name in self.readers:
            read = await (await resource.analog_by_name(name)).read()
            assert read.min_range <= read.max_range
            if read.min_range < read.max_range:
                assert _is_in_range(read), f"{name} returned a value outside its range: {read}"

    async def test_analog_keeps_written_value(self, resource: Any) -> None:
        for name in self.writers:
            analog = await resource.analog_by_name(name)
            for level in self.levels:
                await analog.write(level)
                if name in self.readers:
                    assert (await analog.read()).value == level

    async def test_interrupt_count_is_not_negative(self, resource: Any) -> None:
        for name in self.interrupts:
            assert await (await resource.digital_interrupt_by_name(name)).value() >= 0

    async def test_interrupt_counts_and_ticks(self, resource: Any) -> None:
        for name in self.drives:
            interrupt = await resource.digital_interrupt_by_name(name)
            await self.drive(resource, name, False)
            before = await interrupt.value()
            async with _stream_ticks(resource, name) as stream:
                await asyncio.wait_for(stream.recv_message(), TIMEOUT)  # the stream is open
                for high in (True, False):
                    await self.drive(resource, name, high)
                    await _wait_for_tick(stream, name, high)
            assert await interrupt.value() > before, f"{name} ticked but its count did not change"

    async def test_unknown_parts_are_not_found(self, resource: Any) -> None:
        for asking in (
            (await resource.analog_by_name(UNKNOWN_NAME)).read(),
            (await resource.analog_by_name(UNKNOWN_NAME)).write(1),
            (await resource.digital_interrupt_by_name(UNKNOWN_NAME)).value(),
        ):
            with pytest.raises(GRPCError) as refused:
                await asking
            assert refused.value.status is Status.NOT_FOUND

    async def test_ticks_can_be_streamed(self, resource: Any) -> None:
        """A stream of unknown interrupts must fail; other streams wait for ticks."""
        async with _stream_ticks(resource, UNKNOWN_NAME) as stream:
            with pytest.raises(GRPCError) as refused:
                await asyncio.wait_for(stream.recv_message(), TIMEOUT)
            assert refused.value.status is Status.NOT_FOUND
        for name in self.interrupts:
            async with _stream_ticks(resource, name):
                assert await (await resource.digital_interrupt_by_name(name)).value() >= 0

    async def test_tick_stream_ends_with_board(self, harness: Harness, resource: Any) -> None:
        for name in self.interrupts[:1]:
            async with _stream_ticks(resource, name) as stream:
                # The stream is already open. When this call returns, the board has also registered
                # it.
                await resource.get_geometries()
                await harness.run(*self.other_resources)
                with pytest.raises(GRPCError) as ended:
                    await asyncio.wait_for(_drain(stream), TIMEOUT)
                assert " " in (ended.value.message or "")

    async def test_refuses_unknown_power_mode(self, resource: Any) -> None:
        with pytest.raises(GRPCError) as refused:
            await resource.set_power_mode(PowerMode.POWER_MODE_UNSPECIFIED)
        assert refused.value.status in (Status.INVALID_ARGUMENT, Status.UNIMPLEMENTED)


@contextlib.asynccontextmanager
async def _stream_ticks(resource: Any, *interrupts: str) -> AsyncIterator[Any]:
    async with resource.client.StreamTicks.open() as stream:
        request = StreamTicksRequest(name=resource.name, pin_names=interrupts)
        await stream.send_message(request, end=True)
        try:
            yield stream
        finally:
            with contextlib.suppress(Exception):
                await stream.cancel()


async def _wait_for_tick(stream: Any, interrupt: str, high: bool) -> None:
    """Wait for the tick. Skip earlier ticks, which the previous signal or contact bounce may
    cause."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(TIMEOUT):
            while (tick := await stream.recv_message()) is not None:
                assert tick.pin_name == interrupt
                if tick.high is high:
                    return
    pytest.fail(f"{interrupt} went {'high' if high else 'low'} but did not tick")


def _is_in_range(read: Any) -> bool:
    """Whether the value is in range, with a tolerance of one step.

    With a step size, the value counts steps from zero or from the minimum; without one, it is a
    physical value such as volts.
    """
    step = read.step_size or 1.0
    low, high = read.min_range - step, read.max_range + step
    return any(low <= start + read.value * step <= high for start in (0.0, read.min_range))


async def _drain(stream: Any) -> None:
    while await stream.recv_message() is not None:
        pass
    await stream.recv_trailing_metadata()

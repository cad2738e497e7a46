"""The serial port is a pseudo terminal: its other end is the device; closing it unplugs it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import termios
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import serial
from grpclib.const import Status
from pydantic import ValidationError
from tests.support.machine.served import Serve, refused
from tests.support.waiting import poll, run_others, wait_until
from viam.components.sensor.client import SensorClient

from cogwork.core.clock import ManualClock
from cogwork.drivers.sensor.attributes import SerialSensorAttributes
from cogwork.drivers.sensor.serial import NoReadings, SerialSensor
from cogwork.drivers.sensor.serial_port import PortFault, explain_error
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:sensor/s")


class Device:
    """A device that has the same path each time it is plugged in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ends: list[int] = []

    def plug_in(self) -> None:
        ours, theirs = os.openpty()
        self.path.unlink(missing_ok=True)
        self.path.symlink_to(os.ttyname(theirs))
        os.set_blocking(ours, False)
        self._ends = [ours, theirs]

    def unplug(self) -> None:
        self.path.unlink(missing_ok=True)
        for end in self._ends:
            os.close(end)
        self._ends = []

    def send(self, data: bytes) -> None:
        assert os.write(self._ends[0], data) == len(data)

    async def send_all(self, data: bytes) -> None:
        def has_sent() -> bool:
            nonlocal data
            with contextlib.suppress(BlockingIOError):
                data = data[os.write(self._ends[0], data) :]
            return not data

        await wait_until(has_sent, every=0.001)

    def receive(self) -> bytes:
        try:
            return os.read(self._ends[0], 1000)
        except BlockingIOError:
            return b""


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Device]:
    device = Device(tmp_path / "tty")
    device.plug_in()
    yield device
    device.unplug()


@pytest.fixture
async def sensor(device: Device, clock: ManualClock) -> AsyncIterator[SerialSensor]:
    attributes = SerialSensorAttributes(port=str(device.path), baud_rate=115200)
    sensor = await SerialSensor.new(NAME, attributes, {}, clock)
    yield sensor
    await sensor.close()


@pytest.fixture
async def client(sensor: SerialSensor, serve: Serve) -> AsyncIterator[SensorClient]:
    async with serve(sensor) as channel:
        client = SensorClient("s", channel)
        await wait_for_status(client, is_open=True)
        yield client


def read_fault(sensor: SerialSensor) -> str | None:
    return sensor.fault


async def wait_for_status(client: SensorClient, **wanted: object) -> None:
    async def has_status() -> bool:
        status = await client.get_status()
        return all(status[key] == value for key, value in wanted.items())

    await poll(has_status)


async def test_newest_line_is_the_reading(client: SensorClient, device: Device) -> None:
    device.send(b'{"t": 1}\r\n{"t": 2}\n{"t": 3, "deep": {"a": [true, null]}}\n{"t": 4')
    await wait_for_status(client, lines=3)
    assert await client.get_readings() == {"t": 3, "deep": {"a": [True, None]}}
    device.send(b"5}\n")
    await wait_for_status(client, lines=4)
    assert await client.get_readings() == {"t": 45}


async def test_first_reading_waits_for_a_line(client: SensorClient, device: Device) -> None:
    asking = asyncio.ensure_future(client.get_readings())
    await client.get_status()
    assert not asking.done()
    device.send(b'{"t": 1}\n')
    assert await asyncio.wait_for(asking, 10) == {"t": 1}


async def test_silent_device_is_reported(
    client: SensorClient, sensor: SerialSensor, device: Device, clock: ManualClock
) -> None:
    asking = asyncio.ensure_future(sensor.get_readings())
    await clock.advance(3)
    with pytest.raises(NoReadings) as error:
        await asking
    assert str(error.value) == f"{device.path} sent nothing yet"
    assert read_fault(sensor) is None
    await clock.advance(8)
    assert read_fault(sensor) == f"{device.path} sent nothing for 11.0 s"


async def test_outdated_line_is_not_returned(
    client: SensorClient, sensor: SerialSensor, device: Device, clock: ManualClock
) -> None:
    device.send(b'{"t": 1}\n')
    await wait_for_status(client, lines=1)
    await clock.advance(10)
    assert read_fault(sensor) is None
    await clock.advance(0.5)
    words = f"{device.path} sent nothing for 10.5 s"
    assert read_fault(sensor) == words
    with refused() as told:
        await client.get_readings()
    assert (told.status, told.words) == (Status.UNAVAILABLE, words)
    device.send(b"noise\n")
    await wait_for_status(client, unreadable=1)
    assert read_fault(sensor) == (
        f'{device.path} sent no valid "json" line for 10.5 s '
        '(it is not JSON: Expecting value: line 1 column 1 (char 0)); check "baud_rate"'
    )
    device.send(b'{"t": 2}\n')
    await wait_for_status(client, lines=2)
    assert await client.get_readings() == {"t": 2}


async def test_noise_is_skipped(client: SensorClient, device: Device) -> None:
    device.send(b'{"t": 1}\n' + bytes(range(256)) + b"\n" + b"\x00\xff" * 500 + b"\n")
    # All bytes together contain two line ends.
    await wait_for_status(client, lines=1, unreadable=4)
    assert await client.get_readings() == {"t": 1}


async def test_endless_line_takes_bounded_memory(client: SensorClient, device: Device) -> None:
    await device.send_all(b"x" * 1_000_000)
    await wait_for_status(client, why_unreadable="it is too long")
    await device.send_all(b'\n{"t": 1}\n')
    await wait_for_status(client, lines=1)
    assert await client.get_readings() == {"t": 1}


async def test_unplugged_device_is_reported_and_reopened(
    client: SensorClient,
    sensor: SerialSensor,
    device: Device,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    device.send(b'{"t": 1}\n')
    await wait_for_status(client, lines=1)
    device.unplug()
    await wait_for_status(client, is_open=False)

    async def is_unplugged() -> bool:
        return sensor.fault is not None

    await poll(is_unplugged)
    with refused() as told:
        await client.get_readings()
    assert told.status is Status.UNAVAILABLE
    assert told.words.startswith(
        (f"{device.path} cannot be read: ", f"{device.path} does not exist")
    )
    assert told.words.endswith("; the last line is 0.0 s old")
    device.plug_in()
    await wait_for_status(client, is_open=True)
    assert sensor.fault is None
    device.send(b'{"t": 2}\n')
    await wait_for_status(client, lines=2)
    assert await client.get_readings() == {"t": 2}
    lost, again = [record.getMessage() for record in caplog.records if "tty" in record.message]
    assert lost.endswith("; retrying")
    assert again == f"{device.path} is open again"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (termios.error(errno.EIO, "Input/output error"), "cannot be read: (5, 'Input/output error"),
        (termios.error(errno.EACCES, "Permission denied"), "permission denied for"),
        (ValueError("not a valid baudrate"), "cannot be read: not a valid baudrate"),
    ],
)
async def test_opening_is_retried_after_any_error(
    device: Device, fault: Exception, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyserial raises more than its own errors."""
    opening, faults = serial.Serial.open, [fault]

    def open_after_failing_once(port: serial.Serial) -> None:
        if faults:
            raise faults.pop()
        opening(port)

    monkeypatch.setattr(serial.Serial, "open", open_after_failing_once)
    attributes = SerialSensorAttributes(port=str(device.path), format="text")
    sensor = await SerialSensor.new(NAME, attributes, {})
    try:
        with pytest.raises(PortFault) as error:
            await sensor.get_readings()
        assert words in str(error.value)

        async def is_open() -> bool:
            return bool((await sensor.get_status())["is_open"])

        await poll(is_open)
        device.send(b"hello\n")

        async def has_line() -> bool:
            return bool((await sensor.get_status())["lines"])

        await poll(has_line)
        assert await sensor.get_readings() == {"text": "hello"}
    finally:
        await sensor.close()


async def test_sensor_starts_before_its_device_is_plugged_in(tmp_path: Path, serve: Serve) -> None:
    device = Device(tmp_path / "tty")
    attributes = SerialSensorAttributes(port=str(device.path), format="text")
    sensor = await SerialSensor.new(NAME, attributes, {})
    try:
        async with serve(sensor) as channel:
            client = SensorClient("s", channel)
            with refused() as told:
                await client.get_readings()
            assert told.status is Status.UNAVAILABLE
            assert told.words.startswith(
                f'{device.path} does not exist: plug the device in or change "port"; '
            )
            with refused() as told:
                await client.do_command({"write": "x"})
            assert told.words.startswith(f"{device.path} does not exist")
            device.plug_in()
            await wait_for_status(client, is_open=True)
            device.send(b"hello\n")
            await wait_for_status(client, lines=1)
            assert await client.get_readings() == {"text": "hello"}
    finally:
        await sensor.close()
        device.unplug()


async def test_port_has_only_one_reader(client: SensorClient, device: Device) -> None:
    """Two readers would get half of the lines each."""
    other = await SerialSensor.new(NAME, SerialSensorAttributes(port=str(device.path)), {})
    try:

        async def is_refused() -> bool:
            return other.fault == f"{device.path} is in use by another program: stop that program"

        await poll(is_refused)
    finally:
        await other.close()


async def test_write_command_sends_a_line(client: SensorClient, device: Device) -> None:
    assert await client.do_command({"write": "héllo"}) == {}
    received = b""

    async def is_received() -> bool:
        nonlocal received
        received += device.receive()
        await run_others()
        return b"\n" in received

    await poll(is_received)
    assert received.decode().rstrip() == "héllo"
    commands: list[Any] = [{"write": 1}, {"read": "x"}, {"write": "a", "b": 1}]
    for command in commands:
        with refused() as told:
            await client.do_command(command)
        assert told.status is Status.INVALID_ARGUMENT
        assert told.words == ('sensor "s" supports one command, to send a line: {"write": "text"}')


async def test_status_of_the_sensor(client: SensorClient, device: Device) -> None:
    device.send(b'{"t": 1}\n')
    await wait_for_status(client, lines=1)
    assert await client.get_geometries() == []
    assert await client.get_status() == {
        "is_open": True,
        "reason": "",
        "lines": 1,
        "unreadable": 0,
        "why_unreadable": "",
        "age_seconds": 0,
    }


def test_port_errors_are_explained() -> None:
    assert "sudo usermod -aG dialout $USER" in explain_error("p", OSError(errno.EACCES, "no"))
    assert (
        explain_error("p", OSError(errno.EBUSY, "no"))
        == "p is in use by another program: stop that program"
    )
    assert explain_error("p", OSError("what?")) == "p cannot be read: what?"


@pytest.mark.parametrize(
    "attributes", [{}, {"port": ""}, {"format": "csv"}, {"fields": ["a"]}, {"baud_rate": 1}]
)
def test_invalid_attributes_are_refused(attributes: dict[str, Any]) -> None:
    given = {"port": "p", **attributes} if attributes else {}
    with pytest.raises(ValidationError):
        SerialSensorAttributes.model_validate(given)

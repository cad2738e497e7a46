"""Tests of lgpio run it in separate processes: its import starts a thread that does not end."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from cogwork.drivers.gpio.factory import NoPins, check_devices, open_pin_factory

needs_lgpio = pytest.mark.skipif(
    find_spec("lgpio") is None,
    reason="lgpio is not installed; newer versions of Python have no wheel of it",
)


async def test_computer_without_gpio_device_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("cogwork.drivers.gpio.factory.DEVICES", tmp_path)
    with pytest.raises(NoPins) as error:
        await open_pin_factory("lgpio")
    assert str(error.value) == (
        f"this computer has no GPIO pins: {tmp_path}/gpiochip0 does not exist; "
        'to try the configuration without pins, set "pin_factory" to "mock"'
    )


def test_missing_permission_for_the_gpio_device_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "gpiochip0").touch()
    check_devices(tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may do anything
    with pytest.raises(NoPins) as error:
        check_devices(tmp_path)
    assert str(error.value) == (
        f"permission denied for {tmp_path}/gpiochip0: run `sudo usermod -aG gpio $USER`, log in "
        "again and restart the server"
    )


async def test_mock_factory_needs_no_device() -> None:
    factory = await open_pin_factory("mock")
    assert factory.pin("GPIO17").frequency is None
    factory.close()


def run_python(code: str, directory: Path) -> str:
    """Run the code in the directory and return its output; errors and warnings fail the test."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=directory,
        env={
            "TMPDIR": str(directory),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "HOME": str(directory),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_importing_the_factory_imports_no_lgpio_and_starts_no_thread(tmp_path: Path) -> None:
    code = """
import threading
import cogwork.resource.sdk.clean_import
before = threading.active_count()
import cogwork.drivers.gpio.factory
import sys
print(threading.active_count() - before, "lgpio" in sys.modules)
"""
    assert run_python(code, tmp_path) == "0 False\n"
    assert not list(tmp_path.iterdir())


@needs_lgpio
def test_lgpio_leaves_no_file_in_the_working_directory(tmp_path: Path) -> None:
    """By itself it creates a pipe there, or changes the working directory."""
    code = """
import asyncio, os, pathlib
import cogwork.resource.sdk.clean_import
from cogwork.drivers.gpio import factory

factory.check_devices = lambda _: None
try:
    asyncio.run(factory.open_pin_factory("lgpio"))
except factory.NoPins as error:
    print(error)
print(os.getcwd(), os.listdir(), os.environ.get("LG_WD"))
import lgpio
print(lgpio._notify_thread.is_alive())
"""
    words, *rest = run_python(code, tmp_path).splitlines()
    assert "not a Raspberry Pi" in words or "cannot be opened" in words
    assert rest == [f"{tmp_path} [] None", "True"]


FAKE_LGPIO = """
import cogwork.resource.sdk.clean_import
from cogwork.drivers.gpio import factory

factory._import_lgpio()
import lgpio

told = []


def _is_output(gpio):
    claims = [each[0] for each in told if "claim" in each[0] and each[2] == gpio]
    return claims[-1] == "gpio_claim_output"


def write_down(name, answer):
    setattr(lgpio, name, lambda *given: told.append((name, *given)) or answer)


for name in ("gpiochip_close", "gpio_claim_input", "gpio_claim_output", "gpio_free", "gpio_write"):
    write_down(name, 0)
write_down("gpiochip_open", 7)
lgpio.gpio_get_mode = lambda _, gpio: 2 if _is_output(gpio) else 0
write_down("tx_pwm", 0)

from cogwork.drivers.gpio.lgpio_patches import PatchedLgpioFactory
PatchedLgpioFactory._get_revision = lambda self: 0xa02082
"""
"""A lgpio that writes down what it is told instead of doing it."""


@needs_lgpio
def test_pin_is_set_to_rest_when_the_pwm_queue_is_full(tmp_path: Path) -> None:
    code = f"""{FAKE_LGPIO}
def full(*_):
    raise lgpio.error("TX queue full")

pin = PatchedLgpioFactory().pin("GPIO18")
pin.function = "output"
pin.frequency = 50
pin.state = 0.5
lgpio.tx_pwm = full
try:
    pin.frequency = 60
except lgpio.error as error:
    print(error)
told.clear()
pin.frequency = None
print(told, pin.frequency)
"""
    assert run_python(code, tmp_path).splitlines() == [
        "'TX queue full'",
        "[('gpio_free', 7, 18), ('gpio_claim_output', 7, 18, 0)] None",
    ]


@needs_lgpio
def test_duty_cycle_is_not_rounded_to_percent(tmp_path: Path) -> None:
    code = f"""{FAKE_LGPIO}
one, other = PatchedLgpioFactory(), PatchedLgpioFactory()
pin = one.pin("GPIO18")
pin.function = "output"
pin.frequency = 50
pin.state = 0.0755
print(told[-1], pin.state)
other.pin("GPIO18")
other.close()
print(list(map(str, one.pins.values())))
"""
    assert run_python(code, tmp_path).splitlines() == [
        "('tx_pwm', 7, 18, 50, 7.55) 0.0755",
        "['GPIO18']",
    ]


@needs_lgpio
def test_pin_never_has_an_unrequested_level(tmp_path: Path) -> None:
    """Otherwise an active-low relay would switch on for a moment."""
    code = f"""{FAKE_LGPIO}
import asyncio
from cogwork.drivers.board.attributes import GpioBoardAttributes
from cogwork.drivers.board.gpio import GpioBoard
from cogwork.graph.name import ResourceName


async def main():
    name = ResourceName.parse("rdk:component:board/b")
    board = GpioBoard(name, GpioBoardAttributes(), PatchedLgpioFactory())
    await (await board.gpio_pin_by_name("17")).set(True)
    await (await board.gpio_pin_by_name("18")).set_pwm(0.5)
    await (await board.gpio_pin_by_name("22")).set(False)
    await board.close()


asyncio.run(main())
for gpio in (17, 18, 22):
    print([(what, *map(float, at[1:3])) for what, _, *at in told if at[:1] == [gpio]])
"""
    held, pulsed, low = run_python(code, tmp_path).splitlines()
    let_go = "('gpio_claim_input', 128.0)"
    assert held == (f"[{let_go}, ('gpio_claim_output', 1.0), ('gpio_write', 1.0), {let_go}]")
    assert pulsed == (
        f"[{let_go}, ('gpio_claim_output', 0.0), ('tx_pwm', 1000.0, 0.0), "
        "('tx_pwm', 1000.0, 50.0), ('tx_pwm', 0.0, 0.0), ('gpio_write', 0.0), "
        f"{let_go}]"
    )
    assert low == f"[{let_go}, ('gpio_claim_output', 0.0), ('gpio_write', 0.0), {let_go}]"

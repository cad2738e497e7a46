"""Pin factories: the GPIO pins of this computer, or mock pins."""

from __future__ import annotations

import asyncio
import importlib
import os
import tempfile
import threading
from pathlib import Path
from typing import Any, Protocol

from gpiozero import PinUnknownPi
from gpiozero.pins.mock import MockFactory, MockPWMPin

from cogwork.core.errors import CogworkError
from cogwork.resource.model import MissingExtra

DEVICES = Path("/dev")
_MOCK_HINT = 'to try the configuration without pins, set "pin_factory" to "mock"'


class NoPins(CogworkError):
    """The computer has no GPIO pins, or does not allow using them."""

    status = "FAILED_PRECONDITION"


class PinFactory(Protocol):
    """A pin factory of gpiozero.

    Each board has its own; gpiozero's default factory is not used.
    """

    def pin(self, name: str) -> Any: ...

    def close(self) -> None: ...


async def open_pin_factory(kind: str) -> PinFactory:
    """Open the factory in a thread, because it imports modules and opens files."""
    return await asyncio.to_thread(_open_hardware if kind == "lgpio" else _open_mock)


def _open_mock() -> PinFactory:
    factory: PinFactory = MockFactory(pin_class=MockPWMPin)
    return factory


def _open_hardware() -> PinFactory:
    check_devices(DEVICES)
    with _IMPORT_LOCK:
        _import_lgpio()
        patches = importlib.import_module("cogwork.drivers.gpio.lgpio_patches")
    try:
        factory: PinFactory = patches.PatchedLgpioFactory()
    except PinUnknownPi:
        raise NoPins(
            "this computer has GPIO pins, but is not a Raspberry Pi, the only kind gpiozero "
            f"supports; use a board from a module, or, {_MOCK_HINT}"
        ) from None
    except Exception as error:
        raise NoPins(f"the GPIO pins cannot be opened: {error}") from error
    return factory


def check_devices(devices: Path) -> None:
    """Raise NoPins with a helpful reason; lgpio only reports "can not open gpiochip"."""
    chips = sorted(devices.glob("gpiochip*"))
    if not chips:
        raise NoPins(
            f"this computer has no GPIO pins: {devices / 'gpiochip0'} does not exist; {_MOCK_HINT}"
        )
    if not any(os.access(chip, os.R_OK | os.W_OK) for chip in chips):
        raise NoPins(
            f"permission denied for {chips[0]}: run `sudo usermod -aG gpio $USER`, log in again "
            "and restart the server"
        )


_IMPORT_LOCK = threading.Lock()
"""Serializes the imports of lgpio: two boards may be built at the same time."""


def _import_lgpio() -> None:
    """Import lgpio without side effects on the working directory.

    On import, lgpio creates a pipe in the working directory, which may not be writable, or changes
    to the directory in LG_WD and stays there. So LG_WD is set to a temporary directory during the
    import, and the working directory is restored afterwards. The thread that lgpio starts runs
    until the process ends.
    """
    working_directory = Path.cwd()
    before = os.environ.get("LG_WD")
    with tempfile.TemporaryDirectory() as directory:
        os.environ["LG_WD"] = directory
        try:
            importlib.import_module("lgpio")
        except ImportError as error:
            raise MissingExtra("lgpio", "gpio", error) from error
        finally:
            os.chdir(working_directory)
            if before is None:
                del os.environ["LG_WD"]
            else:
                os.environ["LG_WD"] = before

"""Where a board's pins come from: this computer, or nowhere at all to try things out."""

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
_TRY_WITHOUT = 'to try the configuration without pins, set "pin_factory" to "mock"'


class NoPins(CogworkError):
    """A computer without pins, or one that does not let its pins be used."""

    status = "FAILED_PRECONDITION"


class Factory(Protocol):
    """What gpiozero calls a pin factory. Each board has one of its own: gpiozero's common one is
    left alone."""

    def pin(self, name: str) -> Any: ...

    def close(self) -> None: ...


async def opened(kind: str) -> Factory:
    """In a thread: it imports, and opens files."""
    return await asyncio.to_thread(_hardware if kind == "lgpio" else _mock)


def _mock() -> Factory:
    factory: Factory = MockFactory(pin_class=MockPWMPin)
    return factory


def _hardware() -> Factory:
    check_devices(DEVICES)
    with _IMPORTING:
        _import_lgpio()
        fine = importlib.import_module("cogwork.drivers.gpio.fine")
    try:
        factory: Factory = fine.FineFactory()
    except PinUnknownPi:
        raise NoPins(
            "this computer has GPIO pins, but is not a Raspberry Pi, and gpiozero knows no other; "
            f"use a board of a module for it, or, {_TRY_WITHOUT}"
        ) from None
    except Exception as error:
        raise NoPins(f"the GPIO pins cannot be opened: {error}") from error
    return factory


def check_devices(devices: Path) -> None:
    """What lgpio says about all of this is "can not open gpiochip"."""
    chips = sorted(devices.glob("gpiochip*"))
    if not chips:
        raise NoPins(
            f"this computer has no GPIO pins: there is no {devices / 'gpiochip0'}; {_TRY_WITHOUT}"
        )
    if not any(os.access(chip, os.R_OK | os.W_OK) for chip in chips):
        raise NoPins(
            f"this user may not use {chips[0]}: run `sudo usermod -aG gpio $USER`, log in again "
            "and start the server anew"
        )


_IMPORTING = threading.Lock()
"""Two boards may be built at once."""


def _import_lgpio() -> None:
    """Imported, lgpio makes a pipe in the current directory, which it may not be allowed to, or
    changes to the directory that LG_WD names, and stays there. It gets one that nobody needs, and
    the process is brought back. Its one thread stays until the process ends."""
    here = Path.cwd()
    before = os.environ.get("LG_WD")
    with tempfile.TemporaryDirectory() as directory:
        os.environ["LG_WD"] = directory
        try:
            importlib.import_module("lgpio")
        except ImportError as error:
            raise MissingExtra(
                f"lgpio cannot be imported ({error}); install it with `pip install 'cogwork[gpio]'`"
            ) from error
        finally:
            os.chdir(here)
            if before is None:
                del os.environ["LG_WD"]
            else:
                os.environ["LG_WD"] = before

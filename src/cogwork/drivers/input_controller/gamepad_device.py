"""Finds and opens gamepads. Blocks: for a thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evdev import InputDevice

from cogwork.core.errors import CogworkError
from cogwork.drivers.input_controller.gamepad_controls import looks_like_gamepad

DEVICES = Path("/dev/input")


class GamepadFault(CogworkError):
    """There is no gamepad, and why."""

    status = "UNAVAILABLE"


def opened(path: str) -> Any:
    """evdev's device of that path; without a path, of the first gamepad."""
    if not path:
        return _first()
    try:
        return InputDevice(path)
    except FileNotFoundError:
        raise GamepadFault(f'there is no {path}: plug it in, or change "device"') from None
    except PermissionError:
        raise GamepadFault(_not_permitted(path)) from None
    except OSError as error:
        raise GamepadFault(f"{path} cannot be opened: {error}") from None


def _first() -> Any:
    forbidden = None
    for path in sorted(DEVICES.glob("event*"), key=lambda path: int(path.name[5:] or 0)):
        try:
            device = InputDevice(str(path))
        except PermissionError:
            forbidden = path
            continue
        except OSError:  # gone already, or none of evdev's
            continue
        if _is_gamepad(device):
            return device
        device.close()
    if forbidden is not None:
        raise GamepadFault(_not_permitted(str(forbidden)))
    raise GamepadFault("no gamepad is plugged in: none of the devices in /dev/input looks like one")


def _is_gamepad(device: Any) -> bool:
    try:
        return looks_like_gamepad(device.capabilities())
    except OSError:
        return False


def _not_permitted(path: str) -> str:
    return (
        f"this user may not open {path}: run `sudo usermod -aG input $USER`, log in again and "
        "start the server anew"
    )

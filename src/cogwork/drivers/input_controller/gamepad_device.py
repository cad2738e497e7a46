"""The search for gamepads. All functions block: call them in a thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evdev import InputDevice

from cogwork.core.errors import CogworkError
from cogwork.drivers.input_controller.gamepad_controls import looks_like_gamepad

DEVICES = Path("/dev/input")


class GamepadFault(CogworkError):
    """No gamepad can be used; the message is the reason."""

    status = "UNAVAILABLE"


def open_gamepad(path: str) -> Any:
    """Return the evdev device for the path, or the first gamepad if the path is empty."""
    if not path:
        return _open_first_gamepad()
    try:
        return InputDevice(path)
    except FileNotFoundError:
        raise GamepadFault(
            f'{path} does not exist: plug the gamepad in or change "device"'
        ) from None
    except PermissionError:
        raise GamepadFault(_permission_hint(path)) from None
    except OSError as error:
        raise GamepadFault(f"{path} cannot be opened: {error}") from None


def _open_first_gamepad() -> Any:
    forbidden = None
    for path in sorted(DEVICES.glob("event*"), key=lambda path: int(path.name[5:] or 0)):
        try:
            device = InputDevice(str(path))
        except PermissionError:
            forbidden = path
            continue
        except OSError:  # already removed, or not an evdev device
            continue
        if _is_gamepad(device):
            return device
        device.close()
    if forbidden is not None:
        raise GamepadFault(_permission_hint(str(forbidden)))
    raise GamepadFault("no gamepad is plugged in: no device in /dev/input is a gamepad")


def _is_gamepad(device: Any) -> bool:
    try:
        return looks_like_gamepad(device.capabilities())
    except OSError:
        return False


def _permission_hint(path: str) -> str:
    return (
        f"permission denied for {path}: run `sudo usermod -aG input $USER`, log in again and "
        "restart the server"
    )

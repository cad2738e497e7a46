"""What is plugged into this computer, and how it would be configured.

Asking takes time: call it in a thread.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cogwork.drivers.camera.v4l2 import Device, Ioctl, list_devices
from cogwork.drivers.discovery.attributes import Discovered

Look = Callable[[], list[Discovered]]

_LONGEST_NAME = 50


def cameras(root: Path, ioctl: Ioctl) -> list[Discovered]:
    return [_camera(device) for device in list_devices(root, ioctl) if device.captures]


def gamepads(root: Path) -> list[Discovered]:
    """By the links that stay the same wherever a gamepad is plugged in."""
    links = sorted((root / "input" / "by-id").glob("*-event-joystick"))
    return [_gamepad(link) for link in links]


def serial_ports(root: Path) -> list[Discovered]:
    """None where pyserial is not installed, without which none could be read either."""
    try:
        found: Any = importlib.import_module("serial.tools.list_ports")
    except ImportError:
        return []
    links = {link.resolve(): link for link in sorted((root / "serial" / "by-id").glob("*"))}
    ports = sorted(found.comports(), key=lambda port: str(port.device))
    return [_serial_sensor(port, links) for port in ports]


def distinct(found: Iterable[Discovered]) -> Iterator[Discovered]:
    """No two have the same name: they may all be pasted into one machine."""
    taken: set[str] = set()
    for each in found:
        name, number = each.name, 1
        while name in taken:
            number += 1
            name = f"{each.name}-{number}"
        taken.add(name)
        yield each.model_copy(update={"name": name})


def _camera(device: Device) -> Discovered:
    path = device.by_id or device.by_path or device.path
    return _discovered(device.name or "camera", "camera", "webcam", {"video_path": path})


def _gamepad(link: Path) -> Discovered:
    name = link.name.removeprefix("usb-").removesuffix("-event-joystick")
    return _discovered(name or "gamepad", "input_controller", "gamepad", {"device": str(link)})


def _serial_sensor(port: Any, links: Mapping[Path, Path]) -> Discovered:
    path = Path(port.device)
    called = port.product or f"serial {path.name}"
    # Whatever is at the other end: lines of text are what nearly everything sends.
    attributes = {"port": str(links.get(path.resolve(), path)), "format": "text"}
    return _discovered(called, "sensor", "serial", attributes)


def _discovered(called: str, component: str, model: str, attributes: dict[str, str]) -> Discovered:
    return Discovered.model_validate(
        {
            "name": _name(called, component),
            "api": f"rdk:component:{component}",
            "model": model,
            "attributes": attributes,
        }
    )


def _name(text: str, otherwise: str) -> str:
    """As a resource may be called."""
    words = re.sub(r"[^a-zA-Z0-9]+", "-", text).strip("-").lower()
    return words[:_LONGEST_NAME].rstrip("-") or otherwise

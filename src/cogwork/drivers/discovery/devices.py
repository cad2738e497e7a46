"""Devices that are connected to this computer, and their configuration.

Searching takes time: call these functions in a thread.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cogwork.drivers.camera.v4l2 import Device, Ioctl, list_devices
from cogwork.drivers.discovery.attributes import Discovered

DeviceSearch = Callable[[], list[Discovered]]

_MAX_NAME_LENGTH = 50


def find_cameras(root: Path, ioctl: Ioctl) -> list[Discovered]:
    return [_describe_camera(device) for device in list_devices(root, ioctl) if device.can_capture]


def find_gamepads(root: Path) -> list[Discovered]:
    """Find gamepads by their links in `by-id`, which stay the same on another USB port."""
    links = sorted((root / "input" / "by-id").glob("*-event-joystick"))
    return [_describe_gamepad(link) for link in links]


def find_gpio_pins(root: Path) -> list[Discovered]:
    """Find the GPIO pins of a Raspberry Pi, which is recognized by its gpiomem device."""
    if next(root.glob("gpiomem*"), None) is None:
        return []
    return [_make_discovered("pins", "board", "gpio", {})]


def find_serial_ports(root: Path) -> list[Discovered]:
    """Find serial ports. Return an empty list if pyserial is missing, because serial sensors need
    it, too."""
    try:
        found: Any = importlib.import_module("serial.tools.list_ports")
    except ImportError:
        return []
    links = {link.resolve(): link for link in sorted((root / "serial" / "by-id").glob("*"))}
    ports = sorted(found.comports(), key=lambda port: str(port.device))
    return [_describe_serial_sensor(port, links) for port in ports]


def make_names_unique(found: Iterable[Discovered]) -> Iterator[Discovered]:
    """Make names unique, so that all resources can be pasted into one configuration."""
    used: set[str] = set()
    for each in found:
        name, number = each.name, 1
        while name in used:
            number += 1
            name = f"{each.name}-{number}"
        used.add(name)
        yield each.model_copy(update={"name": name})


def _describe_camera(device: Device) -> Discovered:
    path = device.by_id or device.by_path or device.path
    return _make_discovered(device.name or "camera", "camera", "webcam", {"video_path": path})


def _describe_gamepad(link: Path) -> Discovered:
    name = link.name.removeprefix("usb-").removesuffix("-event-joystick")
    return _make_discovered(name or "gamepad", "input_controller", "gamepad", {"device": str(link)})


def _describe_serial_sensor(port: Any, links: Mapping[Path, Path]) -> Discovered:
    path = Path(port.device)
    label = port.product or f"serial {path.name}"
    # Suggest the format "text": the actual format is unknown, but most serial devices send text.
    attributes = {"port": str(links.get(path.resolve(), path)), "format": "text"}
    return _make_discovered(label, "sensor", "serial", attributes)


def _make_discovered(
    label: str, component: str, model: str, attributes: dict[str, str]
) -> Discovered:
    return Discovered.model_validate(
        {
            "name": _make_resource_name(label, component),
            "api": f"rdk:component:{component}",
            "model": model,
            "attributes": attributes,
        }
    )


def _make_resource_name(text: str, default: str) -> str:
    """Convert a text to a valid resource name."""
    words = re.sub(r"[^a-zA-Z0-9]+", "-", text).strip("-").lower()
    return words[:_MAX_NAME_LENGTH].rstrip("-") or default

from __future__ import annotations

import logging
import struct
import sys
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from tests.support.machine.served import Serve
from viam.services.discovery.client import DiscoveryClient

from cogwork.drivers.board.attributes import GpioBoardAttributes
from cogwork.drivers.builtin_models import builtin_models
from cogwork.drivers.discovery.attributes import Discovered, SystemDiscoveryAttributes
from cogwork.drivers.discovery.devices import DeviceSearch, find_gamepads
from cogwork.drivers.discovery.system import SystemDiscovery
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:service:discovery/d")
CAPTURE, METADATA = 0x0420_0001, 0x04A0_0000
OPEN_FILES = Path("/proc/self/fd")


class Computer:
    """A directory in place of /dev, and ioctl answers for its cameras."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.hangs = threading.Event()
        self.hangs.set()
        self._cameras: dict[str, tuple[str, int]] = {}

    def plug_camera(self, node: str, card: str, flags: int = CAPTURE, link: str = "") -> None:
        (self.root / node).touch()
        self._cameras[node] = (card, flags)
        if link:
            self._link(f"v4l/by-id/{link}", f"../../{node}")

    def plug_gamepad(self, link: str) -> None:
        self._link(f"input/by-id/{link}", "../event7")

    def plug_serial(self, link: str, node: str) -> None:
        self._link(f"serial/by-id/{link}", f"../../{node}")

    def ioctl(self, file: int, request: int, buffer: bytearray) -> int:
        assert self.hangs.wait(10)
        assert request == 0x80685600  # VIDIOC_QUERYCAP
        card, flags = self._cameras[(OPEN_FILES / str(file)).readlink().name]
        struct.pack_into("=16s32s", buffer, 0, b"uvcvideo", card.encode())
        struct.pack_into("=II", buffer, 84, flags, flags)
        return 0

    def _link(self, name: str, to: str) -> None:
        at = self.root / name
        at.parent.mkdir(parents=True, exist_ok=True)
        at.symlink_to(to)


@pytest.fixture
def computer(tmp_path: Path) -> Computer:
    return Computer(tmp_path)


@pytest.fixture(autouse=True)
def hide_serial_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the serial ports of the test computer, whether pyserial is installed or not."""
    module: Any = ModuleType("serial.tools.list_ports")
    module.comports = list
    monkeypatch.setitem(sys.modules, "serial.tools.list_ports", module)


@pytest.fixture
async def discovery(computer: Computer) -> AsyncIterator[SystemDiscovery]:
    attributes = SystemDiscoveryAttributes.model_validate({"patience": "200ms"})
    made = await SystemDiscovery.new(NAME, attributes, {}, computer.root, computer.ioctl)
    yield made
    computer.hangs.set()
    await made.close()


@pytest.fixture
async def client(discovery: SystemDiscovery, serve: Serve) -> AsyncIterator[DiscoveryClient]:
    async with serve(discovery) as channel:
        yield DiscoveryClient("d", channel)


async def discover(client: DiscoveryClient) -> list[dict[str, Any]]:
    return [MessageToDict(each) for each in await client.discover_resources()]


async def test_camera_is_returned_as_configuration(
    client: DiscoveryClient, computer: Computer
) -> None:
    computer.plug_camera("video0", "HD Pro Webcam C920", link="usb-046d_HD_Pro-video-index0")
    computer.plug_camera("video1", "HD Pro Webcam C920", METADATA)
    assert await discover(client) == [
        {
            "name": "hd-pro-webcam-c920",
            "namespace": "rdk",
            "type": "camera",
            "api": "rdk:component:camera",
            "model": "rdk:builtin:webcam",
            "attributes": {
                "video_path": str(computer.root / "v4l/by-id/usb-046d_HD_Pro-video-index0")
            },
        }
    ]


async def test_gamepad_is_returned_as_configuration(
    client: DiscoveryClient, computer: Computer
) -> None:
    link = "usb-Logitech_Gamepad_F310_2A1B-event-joystick"
    computer.plug_gamepad(link)
    computer.plug_gamepad("usb-Logitech_Gamepad_F310_2A1B-joystick")
    computer.plug_gamepad("usb-Dell_Keyboard-event-kbd")
    (gamepad,) = await discover(client)
    assert gamepad["name"] == "logitech-gamepad-f310-2a1b"
    assert (gamepad["api"], gamepad["model"]) == (
        "rdk:component:input_controller",
        "rdk:builtin:gamepad",
    )
    assert gamepad["attributes"] == {"device": str(computer.root / "input/by-id" / link)}


@pytest.mark.usefixtures("two_serial_ports")
async def test_found_attributes_are_valid_for_their_models(
    client: DiscoveryClient, computer: Computer
) -> None:
    computer.plug_camera("video0", "Webcam")
    computer.plug_gamepad("usb-Pad-event-joystick")
    read = {
        (str(model.api), str(model.name)): model.load_attributes() for model in builtin_models()
    }
    discovered = await discover(client)
    assert len(discovered) == 4
    for each in discovered:
        read[each["api"], each["model"]].model_validate(each["attributes"])


async def test_found_names_are_unique(client: DiscoveryClient, computer: Computer) -> None:
    for number in range(3):
        computer.plug_camera(f"video{number}", "Webcam")
    computer.plug_camera("video3", "日本")
    assert [each["name"] for each in await discover(client)] == [
        "webcam",
        "webcam-2",
        "webcam-3",
        "camera",
    ]
    assert (await client.get_status())["found"] == {
        "cameras": 4,
        "gamepads": 0,
        "GPIO pins": 0,
        "serial ports": 0,
    }


async def test_pins_of_a_raspberry_pi_are_found(
    client: DiscoveryClient, computer: Computer
) -> None:
    (computer.root / "gpiomem0").touch()
    (pins,) = await discover(client)
    assert (pins["api"], pins["model"]) == ("rdk:component:board", "rdk:builtin:gpio")
    GpioBoardAttributes.model_validate(pins["attributes"])


async def test_computer_without_devices_finds_nothing(client: DiscoveryClient) -> None:
    assert await discover(client) == []
    assert await client.get_status() == {
        "found": {"cameras": 0, "gamepads": 0, "GPIO pins": 0, "serial ports": 0},
        "trouble": {},
    }


async def test_search_that_times_out_is_skipped(
    client: DiscoveryClient, computer: Computer, caplog: pytest.LogCaptureFixture
) -> None:
    computer.plug_camera("video0", "Webcam")
    computer.plug_gamepad("usb-Pad-event-joystick")
    computer.hangs.clear()
    with caplog.at_level(logging.WARNING, f"rdk.resource_manager.{NAME}"):
        assert [each["name"] for each in await discover(client)] == ["pad"]
    assert "the search for cameras failed: it took longer than 0.2 s" in caplog.messages
    assert (await client.get_status())["trouble"] == {"cameras": "it took longer than 0.2 s"}
    computer.hangs.set()
    assert [each["name"] for each in await discover(client)] == ["webcam", "pad"]
    assert (await client.get_status())["trouble"] == {}


async def test_search_that_fails_is_skipped(computer: Computer) -> None:
    def fail() -> list[Discovered]:
        raise OSError("the bus is on fire")

    computer.plug_gamepad("usb-Pad-event-joystick")
    looks: dict[str, DeviceSearch] = {
        "cameras": fail,
        "gamepads": partial(find_gamepads, computer.root),
    }
    discovery = SystemDiscovery(NAME, SystemDiscoveryAttributes(), looks)
    assert [each.name for each in await discovery.discover_resources()] == ["pad"]
    assert await discovery.get_status() == {
        "found": {"gamepads": 1},
        "trouble": {"cameras": "the bus is on fire"},
    }
    await discovery.close()


@pytest.fixture
def two_serial_ports(computer: Computer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plug in two serial ports, one of them with a persistent link."""
    usb = computer.root / "ttyUSB0"
    usb.touch()
    computer.plug_serial("usb-Silicon_Labs_CP2102-if00-port0", usb.name)
    ports = [
        SimpleNamespace(device=str(usb), product="CP2102 USB to UART"),
        SimpleNamespace(device=str(computer.root / "ttyS7"), product=None),
    ]
    monkeypatch.setattr(sys.modules["serial.tools.list_ports"], "comports", lambda: ports)


@pytest.mark.usefixtures("two_serial_ports")
async def test_serial_port_is_returned_as_sensor_configuration(
    client: DiscoveryClient, computer: Computer
) -> None:
    link = computer.root / "serial/by-id/usb-Silicon_Labs_CP2102-if00-port0"
    built_in, usb = await discover(client)
    assert (built_in["name"], usb["name"]) == ("serial-ttys7", "cp2102-usb-to-uart")
    assert (usb["api"], usb["model"]) == ("rdk:component:sensor", "rdk:builtin:serial")
    assert usb["attributes"] == {"port": str(link), "format": "text"}
    assert built_in["attributes"]["port"] == str(computer.root / "ttyS7")


async def test_serial_ports_are_not_found_without_pyserial(
    client: DiscoveryClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "serial.tools.list_ports", None)
    assert await discover(client) == []
    assert (await client.get_status())["trouble"] == {}

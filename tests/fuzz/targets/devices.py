"""Parsers of what devices send: serial lines, sound, gamepads."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from evdev import ecodes
from google.protobuf.struct_pb2 import Struct
from tests.fuzz.target import ContractViolation, Target, allow_errors

from cogwork.drivers.audio_out.pcm import CODECS
from cogwork.drivers.input_controller.gamepad_controls import GamepadControls, looks_like_gamepad
from cogwork.drivers.sensor.serial_lines import (
    MAX_LINE_BYTES,
    BadLine,
    SerialLineSplitter,
    parse_line,
)
from cogwork.resource.messages.structs import to_struct

_KINDS = ("text", "json", "csv", "key=value")
_FIELDS = ("t", "state", "n")


def target_serial(data: bytes) -> None:
    """Check that lines do not depend on chunks and that readings fit into a reply."""
    whole = SerialLineSplitter()
    lines = whole.feed(data + b"\n")
    pieces = SerialLineSplitter()
    cut = [line for at in range(0, len(data), 7) for line in pieces.feed(data[at : at + 7])]
    if [*cut, *pieces.feed(b"\n")] != lines or any(len(line) > MAX_LINE_BYTES for line in lines):
        raise ContractViolation("the lines depend on how the bytes are cut")
    for line in lines[:100]:
        for kind in _KINDS:
            with allow_errors(data, BadLine):
                found = parse_line(kind, _FIELDS, line)
                Struct.FromString(to_struct(found).SerializeToString())


def target_pcm(data: bytes) -> None:
    for codec in CODECS.values():
        samples = codec.decode(data[: len(data) // 4 * 4])
        for other in CODECS.values():
            other.encode(samples)


@dataclass
class _Range:
    min: int
    max: int
    flat: int


def target_gamepad(data: bytes) -> None:
    """Parse the capabilities of a device and then its events, all in 32-bit numbers."""
    numbers = [number for (number,) in struct.iter_unpack("<i", data[: len(data) // 4 * 4])]
    keys, rest = numbers[:8], numbers[8:]
    axes = [(code, _Range(*range_)) for code, *range_ in zip(*(iter(rest[:32]),) * 4, strict=False)]
    capabilities = {ecodes.EV_KEY: keys, ecodes.EV_ABS: axes}
    looks_like_gamepad(capabilities)
    controls = GamepadControls(capabilities)
    for kind, code, value in zip(*(iter(rest[32:]),) * 3, strict=False):
        event = controls.to_event(kind, code, value, 0.0)
        if event is not None and not -1.0 <= event.value <= 1.0:
            raise ContractViolation(f"{event.control} is at {event.value}")


def _gamepad_seed() -> bytes:
    keys = [ecodes.BTN_SOUTH, ecodes.BTN_START, ecodes.BTN_TL, *[0] * 5]
    axes = [ecodes.ABS_X, -32768, 32767, 10, ecodes.ABS_Z, 0, 255, 0, *[0] * 24]
    events = [ecodes.EV_KEY, ecodes.BTN_SOUTH, 1, ecodes.EV_ABS, ecodes.ABS_X, -32768,
              ecodes.EV_ABS, ecodes.ABS_Z, 128, ecodes.EV_KEY, ecodes.BTN_START, 2]  # fmt: skip
    return struct.pack(f"<{8 + 32 + len(events)}i", *keys, *axes, *events)


TARGETS = (
    Target(
        "devices.serial",
        target_serial,
        lambda: [
            b'{"t": 21.5, "ok": true, "at": [1, "x"]}\r\n21.5, on,3\nt=21.5 hum = 40;state=on\n',
            b'1,"a, b",nan\n"\\ud83d\\ude00"\n42\n\xff\n',
        ],
        ("cogwork.drivers.sensor.serial_lines",),
        (b"\n", b"\r", b"=", b",", b'"', b"{", b"}", b"[", b"NaN", b"1e999", b"\\ud800", b"\0"),
    ),
    Target(
        "devices.pcm",
        target_pcm,
        lambda: [struct.pack("<4h", 0, 32767, -32768, 5), struct.pack("<3f", 0.5, -1.0, 2.0)],
        ("cogwork.drivers.audio_out.pcm",),
        (struct.pack("<f", float("nan")), struct.pack("<f", float("inf"))),
    ),
    Target(
        "devices.gamepad",
        target_gamepad,
        lambda: [_gamepad_seed()],
        ("cogwork.drivers.input_controller.gamepad_controls",),
        (struct.pack("<i", ecodes.ABS_X), struct.pack("<i", -(1 << 31)), struct.pack("<i", 2)),
        largest=512,
    ),
)

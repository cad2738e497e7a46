"""What a gamepad reads from its configuration."""

from __future__ import annotations

from cogwork.config.fields import Attributes


class GamepadAttributes(Attributes):
    device: str = ""
    """The device, such as `/dev/input/by-id/usb-…-event-joystick`; without it, the first that looks
    like a gamepad."""

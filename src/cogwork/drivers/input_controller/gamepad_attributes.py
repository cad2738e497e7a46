"""Attributes of the gamepad model."""

from __future__ import annotations

from cogwork.config.fields import Attributes


class GamepadAttributes(Attributes):
    device: str = ""
    """Input device, such as `/dev/input/by-id/usb-…-event-joystick`; by default the first gamepad
    that is found."""

"""Attributes of the input controller models."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from cogwork.config.schema import codes
from cogwork.config.schema.fields import Attributes, Duration, fault

ControlName = Literal[
    "AbsoluteX",
    "AbsoluteY",
    "AbsoluteZ",
    "AbsoluteRX",
    "AbsoluteRY",
    "AbsoluteRZ",
    "AbsoluteHat0X",
    "AbsoluteHat0Y",
    "ButtonSouth",
    "ButtonEast",
    "ButtonWest",
    "ButtonNorth",
    "ButtonLT",
    "ButtonRT",
    "ButtonLT2",
    "ButtonRT2",
    "ButtonLThumb",
    "ButtonRThumb",
    "ButtonSelect",
    "ButtonStart",
    "ButtonMenu",
    "ButtonRecord",
    "ButtonEStop",
    "AbsolutePedalAccelerator",
    "AbsolutePedalBrake",
    "AbsolutePedalClutch",
]
EventName = Literal[
    "Connect",
    "Disconnect",
    "ButtonPress",
    "ButtonRelease",
    "ButtonHold",
    "PositionChangeAbs",
    "PositionChangeRel",
]
Value = Annotated[float, Field(ge=-1, le=1)]

_MIN_INTERVAL = 0.01


class ScriptedEvent(Attributes):
    """An event of a control, repeated in every round."""

    at: Annotated[Duration, Field(ge=0)] = 0.0
    """Time of the event, from the beginning of the round."""
    control: ControlName
    """Control of the event."""
    event: EventName
    """Type of the event."""
    value: Value = 0.0
    """Value of the control after the event: 0 or 1 for buttons, -1 to 1 for axes."""


class FakeInputControllerAttributes(Attributes):
    """A gamepad without hardware that plays a script of events."""

    controls: list[ControlName] = ["AbsoluteX", "AbsoluteY", "ButtonSouth", "ButtonStart"]
    """Buttons and axes."""
    events: list[ScriptedEvent] = []
    """Events to generate in every round, such as `{"at": "500ms", "control": "ButtonSouth",
    "event": "ButtonPress", "value": 1}`."""
    round: Annotated[Duration, Field(ge=_MIN_INTERVAL)] | None = None
    """Duration of a round; by default one second longer than its last event."""
    callback_delay_sec: Annotated[float, Field(ge=_MIN_INTERVAL)] | None = None
    """Interval in seconds at which every control reports `event_value`. Cannot be combined with
    `events`."""
    event_value: Value = 0.7
    """Position that all controls report every `callback_delay_sec`."""

    @property
    def script(self) -> list[ScriptedEvent]:
        if self.callback_delay_sec is None:
            return sorted(self.events, key=lambda event: event.at)
        return [
            ScriptedEvent(control=control, event="PositionChangeAbs", value=self.event_value)
            for control in self.controls
        ]

    @property
    def round_seconds(self) -> float:
        last = max((event.at for event in self.events), default=0.0)
        return self.callback_delay_sec or self.round or last + 1

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.events and self.callback_delay_sec is not None:
            raise fault(
                codes.BAD_VALUE, '"events" and "callback_delay_sec" exclude each other: remove one'
            )
        for event in self.events:
            if event.control not in self.controls:
                raise fault(
                    codes.BAD_VALUE, f'an event needs {event.control}, which is not in "controls"'
                )
            if event.at > self.round_seconds:
                raise fault(
                    codes.BAD_VALUE,
                    f"an event at {event.at:g} s is after the end of the round, "
                    f"which is {self.round_seconds:g} s long",
                )
        return self


class GamepadAttributes(Attributes):
    """A gamepad that is connected to this computer."""

    device: str = ""
    """Input device, such as `/dev/input/by-id/usb-…-event-joystick`; by default the first gamepad
    that is found."""

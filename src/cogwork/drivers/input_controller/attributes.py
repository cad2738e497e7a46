"""What the input controllers read from their configuration."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from cogwork.config import codes
from cogwork.config.fields import Attributes, Duration, fault

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

_SHORTEST = 0.01


class ScriptedEvent(Attributes):
    """Something that happens to a control, again and again."""

    at: Annotated[Duration, Field(ge=0)] = 0.0
    """When it happens, from the beginning of the round."""
    control: ControlName
    """What it happens to."""
    event: EventName
    """What happens."""
    value: Value = 0.0
    """Where the control is then: 0 or 1 for buttons, -1 to 1 for axes."""


class FakeInputControllerAttributes(Attributes):
    controls: list[ControlName] = ["AbsoluteX", "AbsoluteY", "ButtonSouth", "ButtonStart"]
    """The buttons and axes that it has."""
    events: list[ScriptedEvent] = []
    """What happens by itself, round after round, such as
    `{"at": "500ms", "control": "ButtonSouth", "event": "ButtonPress", "value": 1}`."""
    round: Annotated[Duration, Field(ge=_SHORTEST)] | None = None
    """How long a round takes; a second longer than its last event when left out."""
    callback_delay_sec: Annotated[float, Field(ge=_SHORTEST)] | None = None
    """Instead of `events`: how many seconds pass until every control reports `event_value`
    again."""
    event_value: Value = 0.7
    """The position that all controls report, with `callback_delay_sec`."""

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
    def _agree(self) -> Self:
        if self.events and self.callback_delay_sec is not None:
            raise fault(
                codes.BAD_VALUE, '"events" and "callback_delay_sec" do not agree: leave one out'
            )
        for event in self.events:
            if event.control not in self.controls:
                raise fault(
                    codes.BAD_VALUE, f'an event needs {event.control}, which is not in "controls"'
                )
            if event.at > self.round_seconds:
                raise fault(
                    codes.BAD_VALUE,
                    f"an event at {event.at:g} s is beyond the end of the round, "
                    f"which takes {self.round_seconds:g} s",
                )
        return self

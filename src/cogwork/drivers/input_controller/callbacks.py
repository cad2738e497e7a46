"""Callbacks for the events of an input controller."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from viam.components.input import Control, ControlFunction, Event, EventType


class Callbacks:
    """One callback for each control and event type."""

    def __init__(self, logger: logging.Logger) -> None:
        self._log = logger
        self._functions: dict[tuple[Control, EventType], ControlFunction] = {}

    def __len__(self) -> int:
        return len(self._functions)

    def register(
        self, control: Control, triggers: Sequence[EventType], function: ControlFunction | None
    ) -> None:
        """Register a function for the event types; None removes the registered function."""
        for trigger in _expand_triggers(triggers):
            if function is None:
                self._functions.pop((control, trigger), None)
            else:
                self._functions[control, trigger] = function

    def dispatch(self, event: Event) -> None:
        for trigger in (event.event, EventType.ALL_EVENTS):
            function = self._functions.get((event.control, trigger))
            if function is not None:
                self._call(function, event)

    def clear(self) -> None:
        self._functions.clear()

    def _call(self, function: ControlFunction, event: Event) -> None:
        try:
            function(event)
        except Exception:
            # Continue after a failure, so that the other callbacks are called.
            self._log.exception("a callback for the control %s failed", event.control.value)


def _expand_triggers(triggers: Sequence[EventType]) -> Sequence[EventType]:
    """If the triggers contain ButtonChange, add the events it stands for: press and release."""
    if EventType.BUTTON_CHANGE not in triggers:
        return triggers
    return [*triggers, EventType.BUTTON_PRESS, EventType.BUTTON_RELEASE]

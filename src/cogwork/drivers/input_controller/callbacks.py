"""Callbacks for the events of an input controller."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from viam.components.input import Control, ControlFunction, Event, EventType


class Callbacks:
    """One function per control and event type."""

    def __init__(self, logger: logging.Logger) -> None:
        self._log = logger
        self._functions: dict[tuple[Control, EventType], ControlFunction] = {}

    def __len__(self) -> int:
        return len(self._functions)

    def register(
        self, control: Control, triggers: Sequence[EventType], function: ControlFunction | None
    ) -> None:
        """Register a function, or remove it with None."""
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
            # A failing callback must not keep the others from being called.
            self._log.exception("a callback for %s failed", event.control.value)


def _expand_triggers(triggers: Sequence[EventType]) -> Sequence[EventType]:
    """Replace the change of a button by its events: press and release."""
    if EventType.BUTTON_CHANGE not in triggers:
        return triggers
    return [*triggers, EventType.BUTTON_PRESS, EventType.BUTTON_RELEASE]

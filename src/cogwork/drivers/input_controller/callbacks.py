"""Who listens to the controls of an input controller."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from viam.components.input import Control, ControlFunction, Event, EventType


class Callbacks:
    """One function for each kind of event of a control."""

    def __init__(self, logger: logging.Logger) -> None:
        self._log = logger
        self._functions: dict[tuple[Control, EventType], ControlFunction] = {}

    def __len__(self) -> int:
        return len(self._functions)

    def register(
        self, control: Control, triggers: Sequence[EventType], function: ControlFunction | None
    ) -> None:
        """None takes away what was there."""
        for trigger in _expanded(triggers):
            if function is None:
                self._functions.pop((control, trigger), None)
            else:
                self._functions[control, trigger] = function

    def tell(self, event: Event) -> None:
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
            # The others shall hear of it, too.
            self._log.exception("a callback for %s failed", event.control.value)


def _expanded(triggers: Sequence[EventType]) -> Sequence[EventType]:
    """A change is a press or a release: nothing happens that is called so."""
    if EventType.BUTTON_CHANGE not in triggers:
        return triggers
    return [*triggers, EventType.BUTTON_PRESS, EventType.BUTTON_RELEASE]

"""Forwards the log of a child process to the server."""

from __future__ import annotations

import logging

from cogwork.helpers.control_channel import ControlChannel


class LogForwarder(logging.Handler):
    """Sends log records of level INFO and above to the server, which applies its log rules to
    them."""

    def __init__(self, control: ControlChannel) -> None:
        super().__init__()
        self._control = control

    def emit(self, record: logging.LogRecord) -> None:
        self._control.send(
            {"log": record.name, "level": record.levelno, "text": self.format(record)}
        )

"""The SDK, tamed: the one place that undoes what importing it does to the process.

It replaces `sys.excepthook`, and each of its loggers gets a level and two handlers of its own, so
that every line would appear twice and obey nobody's rules. Whoever uses the SDK imports this file
first.
"""

from __future__ import annotations

import logging
import sys

_hook = sys.excepthook

import viam  # noqa: E402
import viam.logging as _sdk_logging  # noqa: E402

sys.excepthook = _hook


def _plain_logger(name: str) -> logging.Logger:
    """A logger as anybody's: no handler and no level of its own."""
    return logging.getLogger(name)


def _no_handlers(*_: object, **__: object) -> None:
    pass


def _undo_handlers() -> None:
    for logger in _sdk_logging.LOGGERS.values():
        logger.handlers.clear()
        logger.setLevel(logging.NOTSET)


_undo_handlers()
_sdk_logging.getLogger = _plain_logger
_sdk_logging.addHandlers = _no_handlers
_sdk_logging._addHandlers = _no_handlers  # noqa: SLF001 - called by its own setLevel and setParent

VERSION: str = viam.__version__

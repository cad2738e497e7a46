"""The SDK, tamed: the one place that undoes what importing it does to the process.

It replaces `sys.excepthook`, and each of its loggers gets a level and two handlers of its own, so
that every line would appear twice and obey nobody's rules. Its images measure themselves slowly,
and wrongly for some. Whoever uses the SDK imports this file first.
"""

from __future__ import annotations

import logging
import sys

_hook = sys.excepthook

import viam  # noqa: E402
import viam.logging as _sdk_logging  # noqa: E402
from viam.media import video as _video  # noqa: E402

from cogwork.resource.image_header import size_at_a_glance  # noqa: E402

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


def _dimensions(image: bytes, mime_type: str) -> tuple[int | None, int | None]:
    """Theirs walks through the bytes one by one, on the loop: 10 MB take nine seconds."""
    del mime_type  # the bytes know better
    return size_at_a_glance(image) or (None, None)


_video._getDimensions = _dimensions  # noqa: SLF001 - every image is made through it

VERSION: str = viam.__version__

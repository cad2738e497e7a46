"""Import the SDK and undo the side effects of the import.

Import this module before the SDK. The SDK replaces `sys.excepthook`, and gives each of its loggers
a level and two handlers. Without this module, every line would appear twice and ignore the log
rules. The SDK's detection of image sizes is replaced, too, because it is slow and incorrect for
some images.
"""

from __future__ import annotations

import logging
import sys

_original_excepthook = sys.excepthook

import viam  # noqa: E402
import viam.logging as _sdk_logging  # noqa: E402
from viam.media import video as _video  # noqa: E402

from cogwork.media.image_header import peek_size  # noqa: E402

sys.excepthook = _original_excepthook


def _plain_logger(name: str) -> logging.Logger:
    """Return a standard logger, without its own handlers and level."""
    return logging.getLogger(name)


def _no_handlers(*_: object, **__: object) -> None:
    pass


def _remove_handlers() -> None:
    for logger in _sdk_logging.LOGGERS.values():
        logger.handlers.clear()
        logger.setLevel(logging.NOTSET)


_remove_handlers()
_sdk_logging.getLogger = _plain_logger
_sdk_logging.addHandlers = _no_handlers
_sdk_logging._addHandlers = _no_handlers  # noqa: SLF001 - called by its own setLevel and setParent


def _peek_dimensions(image: bytes, mime_type: str) -> tuple[int | None, int | None]:
    """Replace the SDK's function, which iterates over the bytes on the event loop: 10 MB take nine
    seconds."""
    del mime_type  # the type is detected from the data
    return peek_size(image) or (None, None)


_video._getDimensions = _peek_dimensions  # noqa: SLF001 - every image calls it

VERSION: str = viam.__version__

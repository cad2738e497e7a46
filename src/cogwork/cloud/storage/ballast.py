"""Space that is given up when a disk is full.

Another program on the same disk may leave nothing, not even for removing a key. The space of this
file is then enough for many small changes of the records.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

_SIZE: Final = 8 << 20


class Ballast:
    """A file that takes space and has no content. Threads may use it."""

    def __init__(self, path: Path, size: int = _SIZE) -> None:
        self._path = path
        self._size = size

    def restore(self) -> None:
        """Take the space again. Raise OSError if there is none."""
        if self._path.exists():
            return
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, self._size)
        except OSError:
            self.release()
            raise
        finally:
            os.close(descriptor)

    def release(self) -> bool:
        """Give the space up, and return whether there was any."""
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
            return True
        return False

"""Reserved disk space that is released when the disk is full.

Another program may fill the disk completely, so that not even a key can be removed. The released
space is enough for many small changes of the records.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

_SIZE: Final = 8 << 20


class Ballast:
    """A file that occupies disk space and has no content. Threads may use it."""

    def __init__(self, path: Path, size: int = _SIZE) -> None:
        self._path = path
        self._size = size

    def restore(self) -> None:
        """Occupy the space again. Raise OSError if the disk is full."""
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
        """Release the space. Return False if it was already released."""
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
            return True
        return False

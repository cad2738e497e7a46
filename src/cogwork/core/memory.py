"""How the process keeps memory: large blocks are used again instead of returned at once.

Otherwise every message of a megabyte is mapped and unmapped, and each of its pages faults: twice
the time of moving it.
"""

from __future__ import annotations

import ctypes

_M_TRIM_THRESHOLD = -1
_M_TOP_PAD = -2
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

_SETTINGS = {
    _M_MMAP_THRESHOLD: 32 << 20,
    _M_TRIM_THRESHOLD: 256 << 20,
    _M_TOP_PAD: 16 << 20,
    _M_ARENA_MAX: 2,
}


def keep_large_blocks() -> bool:
    """Whether the C library can be told so; only glibc can."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return all(mallopt(option, value) == 1 for option, value in _SETTINGS.items())

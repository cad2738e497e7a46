"""Tune malloc to reuse large blocks instead of returning them to the system.

Otherwise, every message of a megabyte is mapped and unmapped, and each of its pages faults, which
takes twice as long as copying the message.
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


def tune_malloc() -> bool:
    """Set the options, and return whether that succeeded: only glibc supports them."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return all(mallopt(option, value) == 1 for option, value in _SETTINGS.items())

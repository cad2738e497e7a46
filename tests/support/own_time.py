"""A clock for measurements on a computer that others share."""

from __future__ import annotations

import time

import psutil


def own_time() -> float:
    """Return seconds, without those in which our processors worked for other virtual machines.

    Such a pause may last for a second and hit every measurement of that moment. It is counted for
    each processor, so that short times may become negative.
    """
    steal: float = getattr(psutil.cpu_times(), "steal", 0.0)  # only Linux knows
    return time.monotonic() - steal

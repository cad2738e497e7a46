"""Signals by name or number, as users write them."""

from __future__ import annotations

import signal


def parse_signal(value: str | int) -> int:
    """Return the number of a signal such as `SIGINT`, `int` or `2`. Raise ValueError."""
    text = str(value).strip().upper()
    name = text if text.startswith("SIG") else f"SIG{text}"
    if name in signal.Signals.__members__:
        return signal.Signals[name].value
    if text.isascii() and text.isdigit() and int(text) in signal.valid_signals():
        return int(text)
    raise ValueError(f'"{value}" is not a signal')


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

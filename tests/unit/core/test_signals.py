from __future__ import annotations

import signal

import pytest

from cogwork.core.signals import parse_signal, signal_name


@pytest.mark.parametrize("value", ["SIGINT", "INT", "int", " sigint ", 2, "2"])
def test_signal_by_name_or_number(value: str | int) -> None:
    assert parse_signal(value) == signal.SIGINT


@pytest.mark.parametrize("value", ["", "SIG", "SIGNONE", 0, 65, -1, "1.5", "²", "SIG_IGN"])
def test_invalid_signal(value: str | int) -> None:
    with pytest.raises(ValueError, match="is not a signal"):
        parse_signal(value)


def test_signal_name() -> None:
    assert signal_name(15) == "SIGTERM"
    assert signal_name(40) == "signal 40"

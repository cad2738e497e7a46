from __future__ import annotations

import pytest

from cogwork.media.h264_encoder import ENCODERS, OPTIONS, SOFTWARE, choose_encoder, is_suitable


def test_encoder_in_software_is_suitable() -> None:
    """It is not tried in operation, but shows that the check can succeed."""
    assert is_suitable(SOFTWARE)
    assert choose_encoder() in ENCODERS


def test_encoder_that_delays_pictures_is_not_suitable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPTIONS, SOFTWARE, {"preset": "superfast"})  # it looks ahead
    assert not is_suitable(SOFTWARE)


def test_encoder_that_is_not_there_is_not_suitable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPTIONS, "h264_nowhere", {})
    assert not is_suitable("h264_nowhere")

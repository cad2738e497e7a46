from __future__ import annotations

import pytest

from cogwork.front.client_mistakes import INTERVAL, MAX_ADDRESSES, ClientMistakes


def test_each_address_is_reported_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    attempts = ClientMistakes(lambda: now)
    for _ in range(3):
        attempts.report_tls("192.0.2.1", 8080)
        attempts.report_tls("192.0.2.2", 8080)
    assert len(caplog.records) == 2
    now = INTERVAL
    attempts.report_tls("192.0.2.1", 8080)
    assert len(caplog.records) == 3


def test_number_of_reports_is_limited(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    attempts = ClientMistakes(lambda: now)
    for number in range(MAX_ADDRESSES + 10):
        attempts.report_tls(f"host {number}", 8080)
    assert len(caplog.records) == MAX_ADDRESSES
    now = INTERVAL
    attempts.report_tls("one more", 8080)
    assert len(caplog.records) == MAX_ADDRESSES + 1

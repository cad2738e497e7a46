from __future__ import annotations

import json

import pytest
from tests.unit.config.workshop import load_context, sensor

from cogwork.config.check.diagnostic_collector import CheckCancelled
from cogwork.config.check.loader import load


def test_check_stops_soon_after_it_is_cancelled() -> None:
    text = json.dumps({"components": [sensor(f"s{n}") for n in range(100)]})
    calls = 0

    def is_cancelled() -> bool:
        nonlocal calls
        calls += 1
        return calls > 20

    with pytest.raises(CheckCancelled):
        load(text, load_context(), is_cancelled)
    assert calls == 21

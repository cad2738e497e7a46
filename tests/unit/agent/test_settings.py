"""The settings of the agent: defaults, and mistakes that are named."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cogwork.agent.errors import BadSettings
from cogwork.agent.settings import AgentSettings, WindowSettings, load_settings
from cogwork.agent.window.calendar import CalendarWindow


def load(directory: Path, settings: Any) -> AgentSettings:
    path = directory / "agent.json"
    path.write_text(settings if isinstance(settings, str) else json.dumps(settings))
    return load_settings(path)


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    found = load_settings(tmp_path / "missing.json")
    assert found == AgentSettings()
    assert (found.check_interval, found.start_timeout, found.stop_timeout) == (60, 60, 75)
    assert found.calendar() == ()


def test_settings_of_a_newer_agent_are_read_as_far_as_they_are_known(tmp_path: Path) -> None:
    window = {"start": "0 2 * * SAT", "duration": "2h30m"}
    found = load(tmp_path, {"windows": [window], "updates": "/mnt", "telepathy": True})
    assert found.updates == "/mnt"
    assert found.windows == (WindowSettings(**window),)
    assert found.calendar() == (CalendarWindow("0 2 * * SAT", timedelta(hours=2, minutes=30)),)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ("{", "cannot be read"),
        ("[]", "agent.json: : Input should be"),
        ({"check_interval": 0}, "agent.json: check_interval: Input should be greater than 0"),
        ({"start_timeout": 3601}, "agent.json: start_timeout: Input should be less than"),
        ({"windows": [{"start": "0 2 * * *"}]}, r"agent.json: windows\.0\.duration: Field req"),
        ({"windows": [{"start": "x", "duration": "1h"}]}, "agent.json: windows: .* not a cron"),
        ({"windows": [{"start": "0 2 * * *", "duration": "0s"}]}, "has no duration"),
        ({"windows": [{"start": "0 2 * * *", "duration": "1 parsec"}]}, r"windows\.0\.duration"),
    ],
)
def test_mistake_is_named(tmp_path: Path, settings: Any, reason: str) -> None:
    with pytest.raises(BadSettings, match=reason):
        load(tmp_path, settings)


def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"cannot be read: .*Is a directory"):
        load_settings(tmp_path)

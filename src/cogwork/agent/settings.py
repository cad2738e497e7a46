"""The settings of the agent: `agent.json` in its directory."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from cogwork.agent.errors import BadSettings
from cogwork.agent.window.calendar import CalendarWindow
from cogwork.core import duration

DEFAULT_CONFIG = Path("/etc/cogwork/machine.json")


def _check_duration(text: str) -> str:
    duration.parse(text)
    return text


class WindowSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    start: str
    """A cron line in local time."""
    duration: Annotated[str, AfterValidator(_check_duration)]
    """The length of the window, such as "2h30m"."""


class AgentSettings(BaseModel):
    # Unknown keys are ignored, because they may be settings of another version of the agent.
    model_config = ConfigDict(extra="ignore", frozen=True)

    config: Path = DEFAULT_CONFIG
    """The path of the machine's configuration."""
    updates: str | None = None
    """A folder or an address with releases; None for the cloud that the machine has joined."""
    windows: tuple[WindowSettings, ...] = ()
    """The maintenance windows. If empty, the maintenance sensor alone decides."""
    server_arguments: tuple[str, ...] = ()
    start_timeout: float = Field(default=60.0, gt=0, le=3600)
    """Seconds within which a new version must answer."""
    probe_interval: float = Field(default=20.0, gt=0, le=3600)
    """Seconds between the three probes of a new version."""
    stop_timeout: float = Field(default=75.0, gt=0, le=3600)
    """Seconds until a stopping server is killed. The server forces its own exit after 60
    seconds."""
    check_interval: float = Field(default=60.0, gt=0, le=86400)
    """Seconds between two checks for updates."""

    def calendar(self) -> tuple[CalendarWindow, ...]:
        """Return the maintenance windows. Raise BadSettings."""
        try:
            return tuple(
                CalendarWindow(each.start, timedelta(seconds=duration.parse(each.duration)))
                for each in self.windows
            )
        except ValueError as error:
            raise BadSettings(f"windows: {error}") from None


def load_settings(path: Path) -> AgentSettings:
    """Return the settings in the file, or the defaults if it does not exist. Raise BadSettings."""
    try:
        settings = AgentSettings.model_validate(json.loads(path.read_bytes()))
        settings.calendar()
    except FileNotFoundError:
        return AgentSettings()
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise BadSettings(f"{path}: {where}: {first['msg']}") from None
    except (OSError, ValueError) as error:
        raise BadSettings(f"{path} cannot be read: {error}") from None
    except BadSettings as error:
        raise BadSettings(f"{path}: {error}") from None
    return settings

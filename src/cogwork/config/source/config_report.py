"""The verdict on the newest version of the configuration file, for the status of the machine."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, NamedTuple

from cogwork.core import duration

MAX_REPORTED = 10
"""Maximum number of diagnostics in the status; `cogwork config check` shows all."""


class ConfigState(enum.StrEnum):
    VALID = "valid"
    """The file has no errors. It may have warnings."""
    FAULTY = "faulty"
    """The machine can use the file, except for the parts that have errors."""
    REFUSED = "refused"
    """The machine cannot use the file."""


class RunningConfig(enum.StrEnum):
    """The configuration that the machine uses."""

    THIS = "this"
    EARLIER = "earlier"
    LAST_GOOD = "last_good"
    NONE = "none"


_RUNNING_INSTEAD = {
    RunningConfig.EARLIER: "; the machine keeps its earlier configuration",
    RunningConfig.LAST_GOOD: "; the machine runs the last good configuration instead",
    RunningConfig.NONE: ", and there is no earlier configuration to run",
}


class ConfigReport(NamedTuple):
    file: str | None
    state: ConfigState
    running: RunningConfig
    since: float
    """The time at which the file entered this state, in seconds since 1970."""
    errors: int
    warnings: int
    diagnostics: tuple[Mapping[str, Any], ...]
    """The first diagnostics as JSON, errors first."""


def describe_report(view: Mapping[str, Any], now: float) -> str | None:
    """Return a sentence about the report in a machine's status; None if there are no problems."""
    file = view["file"] or "the configuration"
    since = duration.render(max(0, round(now - view["since"])))
    counts = ", ".join(
        f"{count} {noun}{'' if count == 1 else 's'}"
        for count, noun in ((view["errors"], "error"), (view["warnings"], "warning"))
        if count
    )
    if view["state"] == ConfigState.REFUSED:
        instead = _RUNNING_INSTEAD.get(view["running"], "")
        return f"{file} has been refused for {since} ({counts}){instead}"
    return f"{file} has had {counts} for {since}" if counts else None


def format_reported(diagnostic: Mapping[str, Any]) -> str:
    """Format a diagnostic of the status as `machine.json:19:9  error  …  [E103]`."""
    place = diagnostic.get("file") or diagnostic["pointer"] or "/"
    if "line" in diagnostic:
        place = f"{place}:{diagnostic['line']}:{diagnostic['column']}"
    hint = f"; {diagnostic['hint']}" if diagnostic["hint"] else ""
    return (
        f"{place}  {diagnostic['severity']}  {diagnostic['message']}{hint}  [{diagnostic['code']}]"
    )

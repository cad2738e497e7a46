"""The parts of a machine's status that need attention. Pure functions."""

from __future__ import annotations

from typing import Any

from cogwork.config.source.config_report import ConfigState

_READY = "ready"


def is_healthy(view: dict[str, Any]) -> bool:
    report = view.get("configuration")
    if report is not None and report["state"] != ConfigState.VALID:
        return False
    ready = all(resource["state"] == _READY for resource in view["resources"])
    running = all(process["state"] != "unhealthy" for process in view.get("processes", ()))
    return ready and running and bool(view["state"] == "running")


def keep_unhealthy(view: dict[str, Any]) -> dict[str, Any]:
    """Return the status without what is healthy. Its own state and revision stay."""
    kept: dict[str, Any] = {
        key: [each for each in view[key] if each["state"] != _READY]
        for key in ("resources", "modules", "packages")
        if key in view
    }
    if "processes" in view:
        kept["processes"] = [each for each in view["processes"] if each["state"] == "unhealthy"]
    if "jobs" in view:
        kept["jobs"] = [each for each in view["jobs"] if has_failed_last(each)]
    if "updates" in view:
        kept["updates"] = [each for each in view["updates"] if each["phase"] == "failed"]
    tls = view.get("tls")
    if tls is not None and not (tls["warning"] or tls["fault"]):
        kept["tls"] = None
    report = view.get("configuration")
    if report is not None and report["state"] == ConfigState.VALID:
        kept["configuration"] = None
    return {**view, **kept}


def has_failed_last(job: dict[str, Any]) -> bool:
    """Return whether the last run of a job failed."""
    failed = max((each["time"] for each in job["failures"]), default=None)
    return failed is not None and failed > max(job["successes"], default=0.0)

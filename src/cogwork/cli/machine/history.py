"""The events of a machine's history as sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cogwork.cli.terminal import paint
from cogwork.config.check.diagnostics import replace_unprintable
from cogwork.core.sentences import join_names

_MAX_NAMES = 8
_CHANGES = ("added", "changed", "removed")


def format_event(event: Mapping[str, Any]) -> str:
    """Format an event as a line that starts with its time."""
    time, sentence = str(event.get("time")), _describe(event)
    line = f"{replace_unprintable(time)}  {replace_unprintable(sentence)}"
    is_fault = event.get("state") in ("unhealthy", "failed") or bool(event.get("unfinished"))
    return paint(line, "red") if is_fault else line


def _describe(event: Mapping[str, Any]) -> str:
    details = {key: value for key, value in event.items() if key not in ("time", "event")}
    try:
        match event.get("event"):
            case "resource":
                return _describe_resource(details)
            case "module":
                return _describe_program(f"module {details['module']}", details)
            case "process":
                return _describe_program(f"process {details['process']}", details)
            case "configuration":
                return _describe_configuration(details)
            case "client":
                return _describe_client(details)
            case "started":
                return f"cogwork-server {details['version']} started with {details['file']}"
            case "stopping":
                return f"the server is stopping: {details['reason']}"
            case "stopped":
                return _describe_stop(details["unfinished"])
    except (KeyError, TypeError, ValueError):
        pass  # Another release wrote the event in another format, so print the details as they are.
    return " ".join((str(event.get("event", "")), _list_details(details))).strip()


def _describe_resource(details: Mapping[str, Any]) -> str:
    name, state = details["resource"], str(details["state"])
    if state.startswith("gave up "):
        sentence = f"{state} {name}"
    elif state.endswith(" failed"):
        sentence = f"{state.removesuffix(' failed')} {name} failed"
    else:
        sentence = f"{name} is {state}"
    if details.get("seconds") is not None:
        sentence += f" after {details['seconds']:.0f}s"
    return f"{sentence}: {details['reason']}" if details.get("reason") else sentence


def _describe_program(name: str, details: Mapping[str, Any]) -> str:
    if details["state"] == "started":
        return f"{name} started as process {details['pid']}"
    if details["state"] == "finished":
        return f"{name} finished"
    again = details.get("retry_after")
    retry = f"; restarting in {again:.1f}s" if again is not None else ""
    return f"{name} {details['state']}: {details['reason']}{retry}"


def _describe_configuration(details: Mapping[str, Any]) -> str:
    changes = "; ".join(
        f"{change} {join_names(details[change], _MAX_NAMES)}"
        for change in _CHANGES
        if details.get(change)
    )
    return (
        f"configuration {details['revision']} applied in {details['seconds']:g}s: "
        f"{details['ready']} ready, {details['unhealthy']} not"
    ) + (f"; {changes}" if changes else "")


def _describe_client(details: Mapping[str, Any]) -> str:
    sentence = f"client {details['peer']} {details['state']}"
    untold = details.get("untold")
    return f"{sentence} ({untold} earlier events were not recorded)" if untold else sentence


def _describe_stop(unfinished: list[Any]) -> str:
    if not unfinished:
        return "the server stopped"
    return f"the server stopped; {join_names(unfinished, _MAX_NAMES)} did not close in time"


def _list_details(details: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{key} {join_names(value, _MAX_NAMES) if isinstance(value, list) else value}"
        for key, value in details.items()
    )

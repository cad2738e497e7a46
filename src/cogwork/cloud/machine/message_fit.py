"""Puts a configuration into the message for machines, without what does not fit."""

from __future__ import annotations

from typing import Any, NamedTuple

from viam.gen.app.v1.robot_pb2 import RobotConfig

from cogwork.core.errors import InvalidRequest
from cogwork.resource.messages.config_message import to_message


class FittedMessage(NamedTuple):
    message: RobotConfig
    mistakes: list[str]
    """What is left out, and why."""


def fit_message(config: dict[str, Any]) -> FittedMessage:
    """Return the message of a configuration.

    What an owner saves is checked, but not every combination with a fragment. One value that does
    not fit must not keep a machine from all others.
    """
    try:
        return FittedMessage(to_message(config), [])
    except InvalidRequest:
        found, mistakes = _leave_out(config)
        return FittedMessage(to_message(found), mistakes)


def _leave_out(config: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the sections, and the items of those that are lists, that fit by themselves."""
    found: dict[str, Any] = {}
    mistakes: list[str] = []
    for section, value in config.items():
        items = value if isinstance(value, list) else [value]
        fitting = []
        for item in items:
            alone = [item] if isinstance(value, list) else item
            try:
                to_message({section: alone})
            except InvalidRequest as error:
                name = item.get("name") if isinstance(item, dict) else None
                what = f'"{name}" in {section}' if isinstance(name, str) else section
                mistakes.append(f"{what} is left out: {error}")
            else:
                fitting.append(item)
        if isinstance(value, list):
            found[section] = fitting
        elif fitting:
            found[section] = value
    return found, mistakes

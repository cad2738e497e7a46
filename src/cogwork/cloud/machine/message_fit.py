"""Conversion of a configuration to a message, without the items that cannot be converted."""

from __future__ import annotations

from typing import Any, NamedTuple

from viam.gen.app.v1.robot_pb2 import RobotConfig

from cogwork.core.errors import InvalidRequest
from cogwork.resource.messages.config_message import to_message


class FittedMessage(NamedTuple):
    message: RobotConfig
    mistakes: list[str]
    """The items that are left out, with the reasons."""


def fit_message(config: dict[str, Any]) -> FittedMessage:
    """Return the message of a configuration, without items that cannot be converted.

    Edits are checked, but not every combination with a fragment. A single wrong value must not
    prevent the delivery of all others.
    """
    try:
        return FittedMessage(to_message(config), [])
    except InvalidRequest:
        found, mistakes = _leave_out(config)
        return FittedMessage(to_message(found), mistakes)


def _leave_out(config: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the sections and list items that can be converted, and the mistakes in the others."""
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

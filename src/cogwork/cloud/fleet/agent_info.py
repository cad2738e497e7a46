"""The last report of a machine: its host, its addresses and the version of its server."""

from __future__ import annotations

import json
from typing import Any, Final

from viam.gen.app.v1.robot_pb2 import AgentInfo

from cogwork.cloud.storage.insert import upsert
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import select_one
from cogwork.cloud.storage.tables import PartAgentRow
from cogwork.core.versions.named_version import is_another_make

_MAX_LENGTH: Final = 256
_MAX_ENTRIES: Final = 100
_TEXTS: Final = ("host", "os", "version", "git_revision", "platform")
_LISTS: Final = ("ips", "platform_tags")


def format_agent_info(info: AgentInfo) -> str:
    """Return the fields that are set as JSON, shortened if necessary; empty if none is set."""
    found: dict[str, Any] = {name: getattr(info, name)[:_MAX_LENGTH] for name in _TEXTS}
    for name in _LISTS:
        found[name] = [each[:_MAX_LENGTH] for each in getattr(info, name)[:_MAX_ENTRIES]]
    known = {name: value for name, value in found.items() if value}
    return json.dumps(known) if known else ""


def read_agent_info(tx: Transaction, part: str) -> str:
    """Return the stored report; empty if the part has not reported yet."""
    found = select_one(tx, PartAgentRow, "WHERE part_id = ?", part)
    return found.info if found is not None else ""


def runs_another_make(tx: Transaction, part: str) -> bool:
    """Return whether the server of a part is from another vendor, according to its last report."""
    return is_another_make(json.loads(read_agent_info(tx, part) or "{}"))


def save_agent_info(tx: Transaction, part: str, info: str) -> None:
    upsert(tx, PartAgentRow(part, info), "part_id")

"""The section `agent` of a part's configuration."""

from __future__ import annotations

from typing import Any

from cogwork.cloud.configuration.config_text import parse_config
from cogwork.cloud.configuration.fragment_lookup import merge_for_part
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.tables import PartRow


def read_agent_section(tx: Transaction, part: PartRow) -> dict[str, Any]:
    """Return the section, including the content of fragments; empty if it is missing."""
    config = parse_config(part.config)
    if "fragments" in config:
        config = merge_for_part(tx, part, config).config
    section = config.get("agent")
    return section if isinstance(section, dict) else {}

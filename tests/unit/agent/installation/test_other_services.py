"""Units that the agent has written are known from those of others."""

from __future__ import annotations

from pathlib import Path

from cogwork.agent.installation.other_services import is_ours
from cogwork.agent.installation.units import format_agent_unit, format_server_unit


def test_units_of_the_agent_are_known_by_their_content(tmp_path: Path) -> None:
    unit = tmp_path / "cogwork-server.service"
    assert not is_ours(unit)
    unit.write_bytes(b"[Service]\n\xff")
    assert not is_ours(unit)
    unit.write_text(format_server_unit(tmp_path, tmp_path, "root"))
    assert is_ours(unit)
    unit.write_text(format_agent_unit(tmp_path, tmp_path))
    assert is_ours(unit)

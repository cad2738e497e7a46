"""Services of the same name: those of the agent, of a package, and of a person."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.agent.installation.computer import Computer

from cogwork.agent.installation.other_services import find_packaged_unit, is_ours
from cogwork.agent.installation.units import format_agent_unit, format_server_unit


@pytest.fixture
def computer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Computer:
    return Computer(tmp_path, monkeypatch)


def test_units_of_the_agent_are_known_by_their_content(tmp_path: Path) -> None:
    unit = tmp_path / "cogwork-server.service"
    assert not is_ours(unit)
    unit.write_bytes(b"[Service]\n\xff")
    assert not is_ours(unit)
    unit.write_text(format_server_unit(tmp_path, tmp_path, "root"))
    assert is_ours(unit)
    unit.write_text(format_agent_unit(tmp_path, tmp_path))
    assert is_ours(unit)


def test_unit_of_a_package_is_found_where_packages_put_it(computer: Computer) -> None:
    assert find_packaged_unit() is None
    unit = computer.add_package()
    assert find_packaged_unit() == unit

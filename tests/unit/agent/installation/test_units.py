"""The unit files of the agent and its server, as systemd reads them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from cogwork.agent.installation.units import (
    AGENT_SERVICE,
    format_agent_unit,
    format_server_script,
    format_server_unit,
    read_user,
)
from cogwork.agent.supervision.systemd_server import SERVICE


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("user", ["root", "daemon"])
def test_systemd_accepts_every_line(tmp_path: Path, user: str) -> None:
    # It checks that the programs exist, too.
    script = tmp_path / "run-server"
    script.write_text(format_server_script(tmp_path, tmp_path / "machine.json"))
    script.chmod(0o755)
    units = {
        AGENT_SERVICE: format_agent_unit(Path("/bin/true"), tmp_path),
        SERVICE: format_server_unit(tmp_path, Path("/var/lib/cogwork"), user),
    }
    for name, text in units.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / name) for name in units)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    # Units of this computer are none of ours.
    assert [line for line in done.stderr.splitlines() if "cogwork" in line] == []
    assert done.returncode == 0, done.stderr


def test_user_is_read_from_a_unit_of_the_agent_only(tmp_path: Path) -> None:
    unit = format_server_unit(tmp_path, tmp_path, "press")
    assert read_user(unit) == "press"
    assert read_user("[Service]\nUser=press\n") is None
    assert read_user(unit.replace("User=press\n", "")) is None


@pytest.mark.parametrize(("user", "has_rights"), [("root", False), ("press", True)])
def test_user_gets_the_rights_that_root_has(tmp_path: Path, user: str, has_rights: bool) -> None:
    unit = format_server_unit(tmp_path, tmp_path, user)
    assert ("AmbientCapabilities=" in unit) is has_rights

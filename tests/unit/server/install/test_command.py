"""Who may install, and what the others are told."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cogwork.server.install.command import format_root_command
from cogwork.server.main import main

NOBODY = 65534


@pytest.mark.parametrize("option", ["-aix-install", "--aix-uninstall"])
def test_server_of_a_python_environment_says_what_to_do_instead(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([option]) == 1
    said = capsys.readouterr().err
    assert "only the one-file executable installs itself" in said
    assert f"run `{Path(sys.executable).with_name('cogwork-server')} -config /etc/cog" in said


def test_line_for_root_is_quoted_for_the_shell() -> None:
    words = ["/tmp/my cogwork-server", "--aix-install"]
    assert format_root_command(words, has_sudo=True) == (
        "sudo '/tmp/my cogwork-server' --aix-install"
    )
    program, option, line = shlex.split(format_root_command(words, has_sudo=False))
    assert (program, option) == ("su", "-c")
    assert shlex.split(line) == words


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become someone else")
@pytest.mark.parametrize("option", ["--aix-install", "--aix-uninstall"])
def test_without_root_the_command_to_type_is_printed(option: str) -> None:
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from cogwork.server.main import main\n"
        # Afterwards, it may not be allowed to read this Python.
        "import cogwork.server.install.command\n"
        f"os.setuid({NOBODY})\n"
        f"sys.exit(main([{option!r}], Path('/tmp/cogwork-server')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    line = format_root_command(
        ["/tmp/cogwork-server", option], has_sudo=shutil.which("sudo") is not None
    )
    assert done.stderr == f"cogwork-server: {option} needs the rights of root; run: {line}\n"

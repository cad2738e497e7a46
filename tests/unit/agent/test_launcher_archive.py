"""The launcher in one file, which needs the standard library only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import cogwork
from cogwork.agent.launcher_archive import make_launcher, write_launcher


def run(launcher: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Isolated, and without site-packages.
    command = [sys.executable, "-I", "-S", str(launcher), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_needs_only_the_standard_library(tmp_path: Path) -> None:
    write_launcher(tmp_path / "launcher.pyz")
    done = run(tmp_path / "launcher.pyz", str(tmp_path))
    # It has loaded everything, and found no version.
    assert done.stderr == (
        f"ERROR agent.launcher no version of the agent is installed in {tmp_path}/versions\n"
    )
    assert done.returncode == 1


def test_wrong_arguments_are_explained(tmp_path: Path) -> None:
    write_launcher(tmp_path / "launcher.pyz")
    done = run(tmp_path / "launcher.pyz")
    assert (done.returncode, done.stderr) == (2, "ERROR agent.launcher usage: launcher DIRECTORY\n")


def test_same_source_is_packed_into_the_same_file(tmp_path: Path) -> None:
    sources = Path(cogwork.__file__).parent
    write_launcher(tmp_path / "launcher.pyz")
    assert make_launcher(sources) == (tmp_path / "launcher.pyz").read_bytes()

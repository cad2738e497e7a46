"""An older version is built from source at its tag, and runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from scripts.release.tags import find_tags, main
from tests.support.machine.running import run_server
from tests.support.paths import REPOSITORY

# Building takes minutes.
pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

SENSOR = {"name": "scale", "api": "rdk:component:sensor", "model": "fake"}


def run(*command: str, cwd: Path, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not (REPOSITORY / ".git").exists(), reason="needs the history")
async def test_executable_of_the_oldest_tag_runs_a_machine(tmp_path: Path) -> None:
    clone, tree = tmp_path / "clone", tmp_path / "tree"
    # In a clone, so that this repository keeps its tags as they are.
    run(
        "git",
        "clone",
        "--quiet",
        "--shared",
        "--no-checkout",
        str(REPOSITORY),
        str(clone),
        cwd=tmp_path,
    )
    run("git", "checkout", "--quiet", "HEAD", "--", "CHANGELOG.md", cwd=clone)
    assert main(["--create"], clone) == 0
    tag = find_tags(clone)[0].name
    run("git", "worktree", "add", "--quiet", str(tree), tag, cwd=clone)
    outside = {key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"}
    run("make", "server", cwd=tree, environment=outside)
    (executable,) = tree.glob("bin/*/cogwork-server")
    plain = {"PATH": os.defpath, "COGWORK_HOME": str(tmp_path / "home")}
    version = run(str(executable), "-version", cwd=tmp_path, environment=plain)
    assert version == f"cogwork-server {tag.removeprefix('v')}\n"
    (tmp_path / "machine").mkdir()
    async with run_server(
        {"components": [SENSOR]}, tmp_path / "machine", program=[str(executable)]
    ) as server:
        await server.out.wait_for("scale is ready")

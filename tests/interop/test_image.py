"""The container image: what its Dockerfile says, and its health check on a real server."""

from __future__ import annotations

import asyncio
import fnmatch
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.machine.running import run_server
from tests.support.paths import REPOSITORY

INSTRUCTIONS = [
    tuple(line.split(None, 1))
    for line in re.sub(
        r"\\\n|^#.*\n", "", (REPOSITORY / "packaging/Dockerfile").read_text(), flags=re.MULTILINE
    ).splitlines()
    if line.strip()
]
WHEEL = "build/image/*.whl"
"""Where `make image` puts the wheel."""


def find(name: str) -> list[str]:
    """Return the arguments of an instruction, wherever it is."""
    return [arguments for instruction, arguments in INSTRUCTIONS if instruction == name]


def last_stage() -> list[tuple[str, ...]]:
    starts = [index for index, each in enumerate(INSTRUCTIONS) if each[0] == "FROM"]
    return INSTRUCTIONS[starts[-1] :]


def test_server_does_not_run_as_root() -> None:
    names = [name for name, _ in last_stage()]
    (user,) = find("USER")
    assert user not in ("root", "0")
    # Nothing is created with other rights after it, and the server starts with it.
    assert "RUN" not in names[names.index("USER") :]
    assert f" {user} " in next(arguments for name, arguments in last_stage() if name == "RUN")


def test_base_is_small() -> None:
    assert "PYTHON=3.11" in find("ARG")
    assert find("FROM") == ["python:${PYTHON}-slim AS build", "python:${PYTHON}-slim"]


def test_extras_are_a_build_argument() -> None:
    (argument,) = [each for each in find("ARG") if each.startswith("EXTRAS=")]
    known = (REPOSITORY / "pyproject.toml").read_text()
    for extra in argument.removeprefix("EXTRAS=").split(","):
        assert f"\n{extra} = [" in known
    assert any('[${EXTRAS}]"' in each for each in find("RUN"))


def test_server_and_its_file_are_the_command() -> None:
    assert [json.loads(each) for each in find("ENTRYPOINT")] == [["cogwork-server"]]
    ((option, config),) = [json.loads(each) for each in find("CMD")]
    assert option == "-config"
    assert any(config in each for each in find("RUN"))
    (volumes,) = [json.loads(each) for each in find("VOLUME")]
    # The whole directory: the control page replaces the file.
    assert str(Path(config).parent) in volumes


def copied() -> list[str]:
    words = [shlex.split(each)[:-1] for each in find("COPY")]
    return [word for line in words if not line[0].startswith("--from") for word in line]


def test_every_copied_file_exists() -> None:
    assert WHEEL in copied()
    for source in set(copied()) - {WHEEL}:
        assert (REPOSITORY / source).is_file(), source


def test_wheel_is_built_where_it_is_copied_from() -> None:
    made = subprocess.run(
        ["make", "--dry-run", "image"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    assert "-m build --wheel --outdir build/image" in made
    assert made.index("docker info") < made.index("-m build") < made.index("docker build")


def test_only_copied_files_are_sent_to_docker() -> None:
    lines = (REPOSITORY / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    allowed = [rule.removeprefix("!") for rule in rules[1:]]
    assert sorted(allowed) == sorted(copied())
    assert not any(fnmatch.fnmatch(".git/config", each) for each in allowed)


def test_without_docker_make_says_what_is_missing(tmp_path: Path) -> None:
    for program in ("make", "sh"):
        found = subprocess.run(["which", program], capture_output=True, text=True, check=True)
        (tmp_path / program).symlink_to(found.stdout.strip())
    done = subprocess.run(
        ["make", "docker", "SHELL=/bin/sh"],
        cwd=REPOSITORY,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "docker is missing; install it first" in done.stderr


class TestHealthCheck:
    @pytest.fixture
    def command(self) -> list[str]:
        (check,) = find("HEALTHCHECK")
        options, _, command = check.partition(" CMD ")
        assert "--interval=" in options
        assert "--timeout=" in options
        python, script = json.loads(command)
        (source,) = [each for each in copied() if each.endswith(Path(script).name)]
        assert python == "python"
        return [sys.executable, str(REPOSITORY / source)]

    async def check(self, command: list[str], address: str) -> int:
        process = await asyncio.create_subprocess_exec(
            *command,
            env={**os.environ, "COGWORK_PROBE_URL": address},
            stderr=asyncio.subprocess.DEVNULL,
        )
        return await asyncio.wait_for(process.wait(), 60)

    async def test_running_server_is_healthy(self, command: list[str], tmp_path: Path) -> None:
        broken = {"name": "eye", "api": "rdk:component:camera", "model": "no-such-model"}
        async with run_server({"components": [broken]}, tmp_path) as server:
            address = server.url
            assert await self.check(command, address) == 0
        assert await self.check(command, address) == 1

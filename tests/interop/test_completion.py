"""Completion in real shells: keys are typed, and the resulting line is read."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.machine.running import DEADLINE, Server, run_server
from tests.support.waiting import poll

PROGRAM = f"""
import sys
from cogwork.cli import machine_names
from cogwork.cli.main import main

machine_names.DEADLINE = {DEADLINE}
sys.exit(main())
"""
"""`cogwork`, with the deadline of tests: other tests may keep the machine from answering soon."""
LINES = [
    ("cogwork conf\tche\t--js\t", "cogwork config check --json"),
    ("cogwork config check mach\t", "cogwork config check machine.json"),
    ("cogwork demo fol\t", "cogwork demo folder"),
    ("cogwork graph --format s\t", "cogwork graph --format svg"),
    ("cogwork-server -conf\tmach\t", "cogwork-server -config machine.json"),
    ("cogwork-server -config=mach\t", "cogwork-server -config=machine.json"),
    ("cogwork-agent unin\t", "cogwork-agent uninstall"),
]
STARTS = {
    "bash": (["--noprofile", "--norc", "-i"], 'eval "$(cogwork completion bash)"'),
    "zsh": (
        ["-f", "-i"],
        'autoload -U compinit && compinit -u -D && eval "$(cogwork completion zsh)"',
    ),
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Create a directory with names to complete, and Cogwork on the path."""
    (tmp_path / "machine.json").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "cogwork"
    program.write_text(f"#!{sys.executable}\n{PROGRAM}")
    program.chmod(0o755)
    for name in ("cogwork-server", "cogwork-agent"):
        (tmp_path / "bin" / name).symlink_to(program)
    return tmp_path


def environment(directory: Path) -> dict[str, str]:
    path = f"{directory / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HOME": str(directory), "TERM": "dumb", "PS1": "$ "}


@pytest.mark.parametrize("shell", STARTS)
def test_bash_and_zsh_complete_a_typed_line(shell: str, directory: Path) -> None:
    check_lines(shell, directory, LINES)


def check_lines(shell: str, directory: Path, lines: list[tuple[str, str]]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    with open_shell(shell, directory) as keyboard:
        type_and_wait(keyboard, f"{STARTS[shell][1]}; echo read''y\n", "ready")
        for typed, expected in lines:
            # Ctrl-A and an echo in front: the line is printed, not run.
            keys, marks = typed.split("\t"), "echo '<' "
            for part in keys[:-1]:
                os.write(keyboard, f"{part}\t".encode())
            printed = type_and_wait(keyboard, f"\x01{marks}\x05'>'\n", ">\r\n")
            assert f"< {expected}" in printed.replace("\\", ""), printed


@contextmanager
def open_shell(shell: str, directory: Path) -> Iterator[int]:
    """Start a shell in a pseudo terminal and yield its other end."""
    keyboard, screen = pty.openpty()
    with subprocess.Popen(
        [shell, *STARTS[shell][0]],
        stdin=screen,
        stdout=screen,
        stderr=screen,
        cwd=directory,
        env=environment(directory),
        start_new_session=True,
    ) as process:
        os.close(screen)
        try:
            yield keyboard
        finally:
            process.kill()
            os.close(keyboard)


def type_and_wait(keyboard: int, keys: str, expected: str) -> str:
    os.write(keyboard, keys.encode())
    printed, deadline = "", time.monotonic() + DEADLINE
    while expected not in printed:
        assert time.monotonic() < deadline, printed
        if select.select([keyboard], [], [], 0.1)[0]:
            printed += os.read(keyboard, 4096).decode(errors="replace")
    return printed


NAMES = [
    ("cogwork call bel\tgo_f\t", "cogwork call belt go_for"),
    ("cogwork call board:to\tGetRea\t", "cogwork call board:top GetReadings"),
    ("cogwork camera snap ey\t", "cogwork camera snap eye"),
    ("cogwork status --history ey\t", "cogwork status --history eye"),
]


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Server]:
    fakes = {"belt": "motor", "eye": "camera"}
    components = [
        {"name": name, "api": f"rdk:component:{kind}", "model": "fake"}
        for name, kind in fakes.items()
    ]
    top = {"name": "top", "api": "rdk:component:sensor", "model": "fake"}
    for name in ("board", "machine"):
        (tmp_path / name).mkdir()
    async with run_server({"components": [top]}, tmp_path / "board") as board:
        remote = {"name": "board", "address": f"localhost:{board.port}", "insecure": True}
        config = {"components": components, "remotes": [remote]}
        async with run_server(config, tmp_path / "machine") as server:
            await server.wait_for_status(state="running")
            await poll(server.status, lambda view: "board:top" in json.dumps(view["resources"]))
            yield server


@pytest.mark.parametrize("shell", STARTS)
async def test_names_of_a_running_machine_are_completed(
    shell: str, directory: Path, machine: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COGWORK_ADDRESS", f"localhost:{machine.port}")
    await asyncio.to_thread(check_lines, shell, directory, NAMES)


@pytest.mark.parametrize(
    ("line", "candidate"),
    [
        ("cogwork conf", "config"),
        ("cogwork config ", "schema"),
        ("cogwork config check --js", "--json"),
        ("cogwork config check mach", "machine.json"),
        ("cogwork demo fol", "folder/"),
        ("cogwork graph --format ", "svg"),
        ("cogwork-server -conf", "-config"),
        ("cogwork-server -config mach", "machine.json"),
    ],
)
def test_fish_completes_a_line(line: str, candidate: str, directory: Path) -> None:
    assert candidate in run_fish(line, directory)


async def test_fish_completes_names_of_a_running_machine(
    directory: Path, machine: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COGWORK_ADDRESS", f"localhost:{machine.port}")
    for line, expected in NAMES[1:]:
        words = expected.split()
        typed = " ".join(words[:-1]) + f" {words[-1][:2]}"
        assert words[-1] in await asyncio.to_thread(run_fish, typed, directory), line


def run_fish(line: str, directory: Path) -> list[str]:
    """Return the candidates that fish offers for a line."""
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    script = "cogwork completion fish | source; complete --do-complete $argv"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script, line],
        capture_output=True,
        text=True,
        cwd=directory,
        env=environment(directory),
        timeout=DEADLINE,
        check=True,
    )
    return [word.partition("\t")[0] for word in done.stdout.splitlines()]

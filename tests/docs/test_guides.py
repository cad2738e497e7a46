"""Every command of README and the guides is run, and must print the shown output."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.docs.guide import Command, File, parse_steps
from tests.support.paths import REPOSITORY

DOCS = REPOSITORY / "docs"
GUIDES = [
    REPOSITORY / "README.md",
    DOCS / "index.md",
    DOCS / "tutorial.md",
    *sorted((DOCS / "guides").glob("*.md")),
]
_EXTRAS = (
    *("camera", "onnx", "tflite", "tensorflow", "torch", "openvino"),
    *("contracts", "gpio", "serial", "gamepad"),
)
# Tests have no package index; their environment has Cogwork installed.
INSTEAD = {
    "pip install cogwork": "true",
    **{f"pip install 'cogwork[{extra}]'": "true" for extra in _EXTRAS},
    **{
        f"pip install {what}": (
            f"pip install -q --no-index --no-deps --no-build-isolation -t installed {what}"
        )
        for what in (".", "./demo")
    },
    # A reader ends it with Ctrl-C.
    "cogwork demo": "cogwork demo demo --seconds 3 --port 8081",
    # A reader copies the key from one terminal to the other.
    "cogwork-cloud init": "cogwork-cloud init | tee init.txt",
    "cogwork fleet login http://localhost:8090": (
        "cogwork fleet login http://localhost:8090 --key-id $(awk '/key ID:/ {print $3}' init.txt) "
        "--key-file <(awk '/key: / {print $2}' init.txt)"
    ),
    "cogwork fleet machines": (
        "until cogwork fleet machines | grep -q online; do sleep 0.2; done; cogwork fleet machines"
    ),
    "cogwork fleet logs press": (
        "until cogwork fleet logs press | grep -q 'wheel is ready'; do sleep 0.2; done; "
        "cogwork fleet logs press"
    ),
    # It takes a moment until the saved file is running.
    "cogwork config history": (
        "until cogwork config history 2>/dev/null | grep -q ^2; do sleep 0.2; done; "
        "cogwork config history"
    ),
    "cp next.json machine.json": (
        "until cogwork config history 2>/dev/null | grep -q ^1; do sleep 0.2; done; "
        "cp next.json machine.json"
    ),
    "cogwork call motor set_rpm '{\"rpm\": 90}' 2>&1": (
        "until cogwork call motor set_rpm '{\"rpm\": 90}' 2>&1 | grep INVALID; do sleep 0.2; done"
    ),
}


@pytest.mark.timeout(240, func_only=True)
@pytest.mark.usefixtures("default_port")
@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_commands_print_what_the_guide_shows(guide: Path, tmp_path: Path) -> None:
    with ExitStack() as terminals:
        for step in parse_steps(guide):
            if isinstance(step, File):
                path = tmp_path / step.path
                path.parent.mkdir(exist_ok=True)
                path.write_text(step.text)
            elif step.line.startswith(SERVERS):
                terminals.enter_context(start_server(step, tmp_path))
            else:
                printed = run_command(step, tmp_path)
                assert step.matches(printed), f"$ {step.line}\n{printed}"


SERVERS = ("cogwork-server -config", "cogwork-cloud serve", "cogwork module run")
PRCTL = ctypes.CDLL(None).prctl
PR_SET_PDEATHSIG = 1
PATIENCE = 60.0
"""Seconds until a server has printed what the guide shows."""
INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended."""


@contextmanager
def start_server(command: Command, directory: Path) -> Iterator[None]:
    """Run the command in the background until the guide ends."""
    with subprocess.Popen(
        command.line.split(),
        cwd=directory,
        env=environment_for(directory),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=end_with_parent,
    ) as server:
        assert server.stdout is not None
        printed = ""
        # It ends the loop if the line never comes.
        patience = threading.Timer(PATIENCE, server.terminate)
        patience.start()
        while not command.matches(printed):
            line = server.stdout.readline()
            assert line, f"$ {command.line}\n{printed}"
            printed += line
        patience.cancel()
        try:
            yield
        finally:
            server.send_signal(signal.SIGINT)
            rest = server.communicate(timeout=30)[0]
        expected = INTERRUPTED if command.line.startswith("cogwork module") else 0
        assert server.returncode == expected, printed + rest


def end_with_parent() -> None:
    """Runs in a child. The next guide needs the port, also if this one is ended by its timeout."""
    PRCTL(PR_SET_PDEATHSIG, signal.SIGTERM)


def environment_for(directory: Path) -> dict[str, str]:
    scripts = str(Path(sys.executable).parent)
    return {
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(directory),
        "PYTHONPATH": str(directory / "installed"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def run_command(command: Command, directory: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", INSTEAD.get(command.line, command.line)],
        cwd=directory,
        env=environment_for(directory),
        text=True,
        timeout=120,
        capture_output=True,
        check=False,
    )
    assert not done.stderr, done.stderr
    return done.stdout

"""Every command of README and the guides is run, and must print what they say it prints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.docs.guide import Command, File, steps

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GUIDES = [
    ROOT / "README.md",
    DOCS / "index.md",
    DOCS / "tutorial.md",
    *sorted((DOCS / "guides").glob("*.md")),
]
_EXTRAS = (
    *("camera", "onnx", "tflite", "tensorflow", "torch", "openvino"),
    *("contracts", "gpio", "serial", "gamepad"),
)
# Tests have no package index at hand; the environment they run in has Cogwork installed.
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
    # It takes a moment until what was saved runs.
    "cogwork call motor set_rpm '{\"rpm\": 90}' 2>&1": (
        "until cogwork call motor set_rpm '{\"rpm\": 90}' 2>&1 | grep INVALID; do sleep 0.2; done"
    ),
}


@pytest.mark.usefixtures("default_port")
@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_the_commands_print_what_the_guide_says(guide: Path, tmp_path: Path) -> None:
    with ExitStack() as terminals:
        for step in steps(guide):
            if isinstance(step, File):
                path = tmp_path / step.path
                path.parent.mkdir(exist_ok=True)
                path.write_text(step.text)
            elif step.line.startswith(("cogwork-server -config", "cogwork module run")):
                terminals.enter_context(serving(step, tmp_path))
            else:
                printed = run(step, tmp_path)
                assert step.printed_as_shown(printed), f"$ {step.line}\n{printed}"


@contextmanager
def serving(command: Command, directory: Path) -> Iterator[None]:
    """In a terminal of its own, until the guide ends."""
    with subprocess.Popen(
        command.line.split(),
        cwd=directory,
        env=environment_in(directory),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as server:
        assert server.stdout is not None
        printed = ""
        while not command.printed_as_shown(printed):
            line = server.stdout.readline()
            assert line, f"$ {command.line}\n{printed}"
            printed += line
        try:
            yield
        finally:
            server.send_signal(signal.SIGINT)
            rest = server.communicate(timeout=30)[0]
        assert server.returncode == 0, printed + rest


def environment_in(directory: Path) -> dict[str, str]:
    scripts = str(Path(sys.executable).parent)
    return {
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(directory),
        "PYTHONPATH": str(directory / "installed"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def run(command: Command, directory: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", INSTEAD.get(command.line, command.line)],
        cwd=directory,
        env=environment_in(directory),
        text=True,
        timeout=60,
        capture_output=True,
        check=False,
    )
    assert not done.stderr, done.stderr
    return done.stdout

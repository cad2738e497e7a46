"""The man pages are in the wheel, and `man` renders them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from scripts.man_pages import ROOT, escape, main

from cogwork.cli.command_tree import programs, walk


def render(page: Path) -> str:
    if shutil.which("man") is None:
        pytest.skip("man is not installed")
    done = subprocess.run(
        ["man", "--warnings", "-E", "ascii", "-l", str(page)],
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "200", "MANPAGER": "cat"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr, done.stderr
    if "minimized" in done.stdout:
        pytest.skip("man is a stub in this image of Ubuntu")
    return done.stdout


def test_man_pages_contain_every_command_and_option(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 0
    for program in programs():
        shown = " ".join(render(tmp_path / f"{program.name}.1").split())
        for command in walk(program):
            assert command.commands or " ".join(command.usage.split()) in shown
            assert all(argument.usage in shown for argument in command.options[1:])


@pytest.mark.parametrize(
    ("text", "roff"),
    [
        ("--json", "\\-\\-json"),
        (".jpg says the type", "\\&.jpg says the type"),
        ("'rdk.*' matches", "\\&'rdk.*' matches"),
        ('a "word"', "a \\(dqword\\(dq"),
        ("back\\slash", "back\\eslash"),
    ],
)
def test_text_is_escaped_for_roff(text: str, roff: str) -> None:
    assert escape(text) == roff


def test_wheel_contains_man_pages_and_completions(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    pages = [name.partition(".data/")[2] for name in names if name.endswith(".1")]
    assert sorted(pages) == [
        "data/share/man/man1/cogwork-agent.1",
        "data/share/man/man1/cogwork-cloud.1",
        "data/share/man/man1/cogwork-server.1",
        "data/share/man/man1/cogwork.1",
    ]
    assert "cogwork/cli/completions/cogwork.bash" in names

"""Reads a guide as a list of things to do: files to write, and commands with what they print."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r'^```(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<body>.*?)^```', re.MULTILINE | re.DOTALL
)
_ANYTHING = "…"


@dataclass(frozen=True)
class File:
    path: str
    text: str


@dataclass(frozen=True)
class Command:
    line: str
    output: list[str]

    def printed_as_shown(self, printed: str) -> bool:
        pattern = "\n".join(
            r"[\s\S]*" if line == _ANYTHING else re.escape(line) for line in self.output
        )
        return re.fullmatch(pattern, printed.rstrip("\n")) is not None


def steps(guide: Path) -> list[File | Command]:
    found: list[File | Command] = []
    for block in _BLOCK.finditer(guide.read_text()):
        if block["title"]:
            found.append(File(block["title"], block["body"]))
        elif block["kind"] == "console":
            found += _commands(block["body"])
    return found


def _commands(body: str) -> list[Command]:
    commands: list[Command] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            commands.append(Command(line[2:], []))
        else:
            commands[-1].output.append(line)
    return commands

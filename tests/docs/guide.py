"""Parses a guide into steps: files to write, and commands with their output."""

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

    def matches(self, printed: str) -> bool:
        pattern = "\n".join(_pattern(line) for line in self.output)
        return re.fullmatch(pattern, printed.rstrip("\n")) is not None


def _pattern(line: str) -> str:
    """`…` alone matches any number of lines, within a line any text."""
    if line == _ANYTHING:
        return r"[\s\S]*"
    return r".*".join(re.escape(part) for part in line.split(_ANYTHING))


def parse_steps(guide: Path) -> list[File | Command]:
    found: list[File | Command] = []
    for block in _BLOCK.finditer(guide.read_text()):
        if block["title"]:
            found.append(File(block["title"], block["body"]))
        elif block["kind"] == "console":
            found += _parse_commands(block["body"])
    return found


def _parse_commands(body: str) -> list[Command]:
    commands: list[Command] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            commands.append(Command(line[2:], []))
        else:
            commands[-1].output.append(line)
    return commands
